//! Access that is open for one call alone, because the call needs it or the user approved it.
//!
//! - INVARIANT: access that is open for one call alone is either listed as a grant or closed.

use crate::network::HostLease;
use crate::server::MountLease;
use crate::session::Session;
use crate::session::authorize::Authorization;
use crate::session::one_time::{OneTimeGrant, opened};
use ironcurtain_grants::Granted;

/// Mounts and hosts that are open for one call alone.
#[derive(Default)]
pub(super) struct CallResources {
    pub(super) lease: Option<MountLease>,
    pub(super) hosts: Option<HostLease>,
    /// Listed grant, if the user approved one. Declared last, so that the access is closed before the grant is unlisted.
    pub(super) one_time: Option<OneTimeGrant>,
}

impl CallResources {
    pub(super) fn is_some(&self) -> bool {
        self.lease.is_some() || self.hosts.is_some()
    }

    /// Completes when the access must be closed.
    pub(super) async fn over(once: Option<&mut OneTimeGrant>) {
        match once {
            Some(once) => once.over().await,
            None => std::future::pending().await,
        }
    }
}

impl Session {
    /// Lists what is open for a call because the user approved it. Closes it if it cannot be listed.
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
        let mut open: Vec<Granted> = requested.iter().map(opened).collect();
        if resources.hosts.is_some() {
            open.extend(self.hosts_of(&authorization.approved).into_iter().map(Granted::Host));
        }
        match self.open_one_time(open) {
            Ok(once) => CallResources { one_time: Some(once), ..resources },
            Err(problem) => {
                tracing::error!(%problem, "failed to list one-time access, so it is closed");
                CallResources::default()
            }
        }
    }
}
