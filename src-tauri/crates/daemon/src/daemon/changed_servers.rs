//! Servers whose program changed, shown in the window.

use super::Daemon;
use crate::identity_gate::trouble;

/// Servers whose program changed. The user must decide on their grants, data and secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedServers {
    /// Server names, sorted.
    pub names: Vec<String>,
    /// Health message about these servers, or `None` if there are none.
    pub trouble: Option<String>,
}

impl Daemon {
    /// Returns the servers whose grants, data or secrets are suspended.
    pub async fn changed_servers(&self) -> ChangedServers {
        let names: Vec<String> = self.0.services.identities.suspended().await.into_iter().collect();
        let trouble = (!names.is_empty()).then(|| trouble(&names));
        ChangedServers { names, trouble }
    }

    /// Applies the user's decision immediately, without waiting for the next periodic check.
    pub async fn server_decided(&self) {
        self.0.services.identities.is_suspending().await;
        self.0.services.changed();
    }
}
