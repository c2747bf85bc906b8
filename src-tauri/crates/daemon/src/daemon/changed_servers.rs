//! Servers whose program or tools changed, for the settings window.

use super::Daemon;
use ironcurtain_services::{ChangedTools, identity_trouble};

/// Servers that require the user's decision because their program or tools changed.
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
        let trouble = (!names.is_empty()).then(|| identity_trouble(&names));
        ChangedServers { names, trouble }
    }

    /// Returns the servers with suspended tools.
    #[must_use]
    pub fn servers_with_changed_tools(&self) -> ChangedServers {
        let names = self.0.services.changed_tools.names();
        ChangedServers { trouble: ChangedTools::trouble(&names), names }
    }

    /// Applies the user's decision about a server's tool immediately, including in running sessions.
    pub async fn apply_tool_decision(&self, server: &str) {
        let live = self.0.sessions();
        live.iter().for_each(|session| session.apply_tool_decision(server));
        let changed_tools = self.0.services.changed_tools.clone();
        // Fails only at shutdown.
        let _ = tokio::task::spawn_blocking(move || changed_tools.update()).await;
        self.0.services.changed();
    }

    /// Applies the user's decision immediately, without waiting for the next periodic check.
    pub async fn apply_server_decision(&self) {
        self.0.services.identities.refresh_health().await;
        self.0.services.changed();
    }
}
