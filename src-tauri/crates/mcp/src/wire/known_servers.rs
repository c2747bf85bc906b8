//! Stored properties of server programs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of programs with a stored property.
const MAX_COUNT: usize = 1000;

/// Kind of protocol version that a server uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolVersion {
    /// A version until 2025-11-25, with an `initialize` handshake.
    Handshake,
    /// The stateless version, 2026-07-28.
    Stateless,
}

/// Kind of protocol version of each program that is known to use only one of the two kinds.
pub type KnownVersions = KnownServers<ProtocolVersion>;

/// Instructions returned by each program, or `None` if a program returned no instructions.
pub type KnownInstructions = KnownServers<Option<Arc<str>>>;

/// One property of each server program, keyed by command line.
#[derive(Debug, Clone)]
pub struct KnownServers<T>(Arc<Mutex<HashMap<String, T>>>);

impl<T> Default for KnownServers<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> KnownServers<T> {
    /// Returns the stored property of a program, or `None` if it is unknown.
    #[must_use]
    pub fn get(&self, program: &str) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(program).cloned()
    }

    /// Stores the property of a program. Ignores new programs once the maximum number is reached.
    pub fn insert(&self, program: &str, property: T) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_COUNT || known.contains_key(program) {
            known.insert(program.to_owned(), property);
        }
    }

    /// Removes the stored property of a program, because it turned out to be wrong.
    pub fn remove(&self, program: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(program);
    }
}
