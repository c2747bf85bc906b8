//! Access that is added for a single call because the call needs it or the user approved it.
//!
//! - INVARIANT: this access is removed when the call ends. Until then, it is listed among the grants if the user
//!   approved it.

use crate::session::Session;
use crate::session::authorize::Authorization;
use crate::session::one_time::{OneTimeGrant, to_grant};
use ironcurtain_grants::Granted;
use ironcurtain_server::MountLease;
use ironcurtain_server::network::HostLease;

/// Mounts and hosts that are available during a single call.
#[derive(Default)]
pub(super) struct CallResources {
    pub(super) lease: Option<MountLease>,
    pub(super) hosts: Option<HostLease>,
    /// Entry in the list of grants, or `None` if the user approved nothing. Declared last so that the access is removed
    /// before the entry.
    pub(super) one_time: Option<OneTimeGrant>,
}

impl CallResources {
    pub(super) fn is_some(&self) -> bool {
        self.lease.is_some() || self.hosts.is_some()
    }

    /// Completes when the user has revoked the approval or the approval has expired. Never completes without an
    /// approval.
    pub(super) async fn wait_for_revocation(once: Option<&mut OneTimeGrant>) {
        match once {
            Some(once) => once.wait_for_end().await,
            None => std::future::pending().await,
        }
    }
}

impl Session {
    /// Adds access that the user approved for one call to the list of grants. Removes the access if it cannot be
    /// listed.
    pub(super) fn list_one_time(
        &self,
        authorization: &Authorization,
        resources: CallResources,
    ) -> CallResources {
        if authorization.approved.is_empty() || !resources.is_some() {
            return resources;
        }
        let requested =
            authorization.inspected.paths.requested(&authorization.approved, self.config.file_writes);
        let mut open: Vec<Granted> = requested.iter().map(to_grant).collect();
        if resources.hosts.is_some() {
            open.extend(self.allowed_hosts(&authorization.approved).into_iter().map(Granted::Host));
        }
        match self.add_one_time(open) {
            Ok(once) => CallResources { one_time: Some(once), ..resources },
            Err(problem) => {
                tracing::error!(%problem, "failed to list a one-time grant; removing its access");
                CallResources::default()
            }
        }
    }
}
