//! Current problems, as sentences for the user.

use std::collections::BTreeMap;
use tokio::sync::watch;

/// Component that can have a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// Sandboxes cannot be created.
    Sandbox,
    /// Writing the audit log fails, so every call is denied.
    Audit,
    /// The changed policy is invalid.
    Policy,
    /// The changed list of servers is invalid.
    Servers,
    /// The changed settings are invalid.
    Settings,
    /// Changes of the files are not detected.
    Watching,
    /// Reading the files timed out.
    Reading,
    /// Entries may be missing at the end of the audit log.
    Record,
    /// The audit log is not exported.
    Export,
    /// A grant or a revocation is not stored.
    Grants,
    /// The disk is full.
    Storage,
    /// The program of a server changed.
    Identities,
    /// A server changed its tools.
    Tools,
}

/// Handle to the list of problems.
#[derive(Debug, Clone, Default)]
pub struct Health(watch::Sender<BTreeMap<Concern, String>>);

impl Health {
    /// Sets or clears the problem of a component.
    pub fn set(&self, concern: Concern, trouble: Option<String>) {
        self.0.send_if_modified(|all| match trouble {
            Some(text) => all.insert(concern, text.clone()).as_ref() != Some(&text),
            None => all.remove(&concern).is_some(),
        });
    }

    /// Returns all problems.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.0.borrow().values().cloned().collect()
    }

    /// Subscribes to changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<BTreeMap<Concern, String>> {
        self.0.subscribe()
    }
}
