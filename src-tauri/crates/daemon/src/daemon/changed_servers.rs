//! The servers that are another program now, for the user's own window.

use super::Daemon;
use crate::identity_gate::trouble;

/// The servers that the user has to decide about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedServers {
    /// Their names, in order.
    pub names: Vec<String>,
    /// The sentence on them among the troubles of the status.
    pub trouble: Option<String>,
}

impl Daemon {
    /// The servers of which something is suspended.
    pub async fn changed_servers(&self) -> ChangedServers {
        let names: Vec<String> = self.0.services.identities.suspended().await.into_iter().collect();
        let trouble = (!names.is_empty()).then(|| trouble(&names));
        ChangedServers { names, trouble }
    }

    /// Notices a decision of the user at once.
    pub async fn server_decided(&self) {
        self.0.services.identities.is_suspending().await;
        self.0.services.changed();
    }
}
