//! The troubles of the moment, in sentences for people. Empty when nothing is wrong.

use std::collections::BTreeMap;
use tokio::sync::watch;

/// A part that can be in trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// No sandbox can be made.
    Sandbox,
    /// The audit log cannot be written, so every call is denied.
    Audit,
    /// The policy was changed to something that cannot be taken.
    Policy,
    /// So were the configured servers.
    Servers,
    /// So were the settings.
    Settings,
    /// Changes of the files are not noticed.
    Watching,
    /// The files do not get read.
    Reading,
    /// Entries may be missing from the end of the record.
    Record,
    /// A grant, or the end of one, is not stored.
    Grants,
    /// No more files can be created.
    Storage,
    /// Another program has the name of a server.
    Identities,
}

/// A handle to the list.
#[derive(Debug, Clone, Default)]
pub struct Health(watch::Sender<BTreeMap<Concern, String>>);

impl Health {
    /// Notes what is wrong, or that nothing is any more.
    pub fn set(&self, concern: Concern, trouble: Option<String>) {
        self.0.send_if_modified(|all| match trouble {
            Some(text) => all.insert(concern, text.clone()).as_ref() != Some(&text),
            None => all.remove(&concern).is_some(),
        });
    }

    /// All of it.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.0.borrow().values().cloned().collect()
    }

    /// For waiting until it changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<BTreeMap<Concern, String>> {
        self.0.subscribe()
    }
}
