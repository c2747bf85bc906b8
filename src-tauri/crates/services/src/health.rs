//! Health status: messages about current problems, worded for the user.

use std::collections::BTreeMap;
use tokio::sync::watch;

/// Component whose problems are reported separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthComponent {
    /// Sandboxes cannot be created.
    Sandbox,
    /// The audit log cannot be written, so every call is denied.
    Audit,
    /// The organization's rules could not be updated.
    Managed,
    /// The policy files changed and are now invalid.
    Policy,
    /// `mcp-servers.json` changed and is now invalid.
    Servers,
    /// `config.json` changed and is now invalid.
    Settings,
    /// Changes to the configuration files cannot be detected.
    Watching,
    /// Reading the configuration files timed out.
    Reading,
    /// The newest entries may be missing from the audit log.
    Record,
    /// The audit log is not exported.
    Export,
    /// A grant or a revocation could not be stored.
    Grants,
    /// The disk is full.
    Storage,
    /// The program of a server changed, so the server's grants, data and secrets are suspended.
    Identities,
    /// A server changed its tools, so the changed tools are suspended.
    Tools,
}

/// Shared map of current problems. Clones refer to the same map.
#[derive(Debug, Clone, Default)]
pub struct Health(watch::Sender<BTreeMap<HealthComponent, String>>);

impl Health {
    /// Sets a component's problem, or clears it if `trouble` is `None`.
    pub fn set(&self, component: HealthComponent, trouble: Option<String>) {
        self.0.send_if_modified(|all| match trouble {
            Some(text) => all.insert(component, text.clone()).as_ref() != Some(&text),
            None => all.remove(&component).is_some(),
        });
    }

    /// Returns a component's problem.
    #[must_use]
    pub fn get(&self, component: HealthComponent) -> Option<String> {
        self.0.borrow().get(&component).cloned()
    }

    /// Returns one message per current problem.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.0.borrow().values().cloned().collect()
    }

    /// Returns a receiver that holds the current problems and is notified of changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<BTreeMap<HealthComponent, String>> {
        self.0.subscribe()
    }
}
