//! Resources that are open for one call alone, because it needs them or a person said yes.
//!
//! - INVARIANT: what is open for one call alone is on the list or closed.

use crate::network::HostLease;
use crate::server::MountLease;
use crate::session::Session;
use crate::session::authorize::Authorization;
use crate::session::one_time::{OneTimeGrant, opened};
use ironcurtain_grants::Granted;

/// The mounts and hosts that are there for one call alone.
#[derive(Default)]
pub(super) struct CallResources {
    pub(super) lease: Option<MountLease>,
    pub(super) hosts: Option<HostLease>,
    /// The grant on the list, if the person said yes. It is dropped after what it is about.
    pub(super) one_time: Option<OneTimeGrant>,
}

impl CallResources {
    pub(super) fn is_some(&self) -> bool {
        self.lease.is_some() || self.hosts.is_some()
    }

    /// Completes when it is not to be open any more.
    pub(super) async fn over(once: Option<&mut OneTimeGrant>) {
        match once {
            Some(once) => once.over().await,
            None => std::future::pending().await,
        }
    }
}

impl Session {
    /// Puts on the list what is open for a call because the person said yes to it. What cannot be listed is closed.
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
                tracing::error!(%problem, "what was allowed once cannot be listed, and is closed");
                CallResources::default()
            }
        }
    }
}
