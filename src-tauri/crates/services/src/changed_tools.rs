//! Reports servers with suspended tools in the health status, until the user has decided on the changes.

use crate::health::{Health, HealthComponent};
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_grants::{Pins, ToolPin};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval between checks for the user's decision while a tool or a server is suspended.
pub const DECISION_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Servers with suspended tools.
#[derive(Debug, Clone)]
pub struct ChangedTools {
    pins: Pins,
    health: Health,
    /// Server identities by server name.
    servers: Arc<Mutex<BTreeMap<String, String>>>,
}

impl ChangedTools {
    /// Opens the pins. Call [`ChangedTools::resume`] to report servers that already have suspended tools.
    pub fn new(home: &Home, health: Health) -> Self {
        Self { pins: Pins::of(&home.database()), health, servers: Arc::default() }
    }

    /// Reports the configured servers whose tools were suspended earlier. Blocks on database access.
    pub fn resume(&self, servers: &Servers) {
        let is_suspended = |identity: &str| {
            self.pins.for_server(identity).is_ok_and(|pins| pins.iter().any(ToolPin::needs_decision))
        };
        for server in servers.iter().filter(|server| is_suspended(&server.identity())) {
            self.monitor(&server.name, server.identity());
        }
    }

    /// Returns the names of the servers with suspended tools, sorted.
    pub fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Returns the health message about these servers.
    pub fn trouble(names: &[String]) -> Option<String> {
        names.first().map(|first| trouble(first, names.len() - 1))
    }

    /// Keeps a server in the health status while one of its tools is suspended.
    pub fn monitor(&self, name: &str, identity: String) {
        let mut servers = self.lock();
        let is_first = servers.is_empty();
        servers.insert(name.to_owned(), identity);
        drop(servers);
        if !is_first {
            return;
        }
        let all = self.clone();
        tokio::spawn(async move {
            loop {
                let blocking = all.clone();
                if !tokio::task::spawn_blocking(move || blocking.update()).await.unwrap_or(false) {
                    return;
                }
                tokio::time::sleep(DECISION_POLL_INTERVAL).await;
            }
        });
    }

    /// Updates the health status. Returns `true` if a tool is suspended. Blocks on database access.
    pub fn update(&self) -> bool {
        let before = self.lock().clone();
        // A server whose pins cannot be read stays in the status.
        let is_decided = |identity: &str| {
            self.pins.for_server(identity).is_ok_and(|pins| !pins.iter().any(ToolPin::needs_decision))
        };
        let decided: Vec<_> = before.into_iter().filter(|(_, identity)| is_decided(identity)).collect();
        let mut servers = self.lock();
        for (name, identity) in decided {
            if servers.get(&name) == Some(&identity) {
                servers.remove(&name);
            }
        }
        let names: Vec<String> = servers.keys().cloned().collect();
        self.health.set(HealthComponent::Tools, Self::trouble(&names));
        !names.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds the message about servers that changed their tools.
fn trouble(first: &str, others: usize) -> String {
    let more = match others {
        0 => String::new(),
        1 => " One more server changed its tools.".to_owned(),
        n => format!(" {n} more servers changed their tools."),
    };
    format!(
        "The server `{first}` changed its tools. They are suspended until you decide, under Servers or with `ironcurtain servers diff {first}`.{more}"
    )
}
