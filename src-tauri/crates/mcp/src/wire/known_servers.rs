//! Facts about server programs, as far as they are known.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of programs that are remembered.
const MOST: usize = 1000;

/// A version of the protocol, as far as its handshake goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolVersion {
    /// With a handshake.
    Handshake,
    /// Without one.
    Stateless,
}

/// The eras of the programs that answered in one alone.
pub type KnownVersions = KnownServers<ProtocolVersion>;

/// The words of programs about their own use; nothing for one that says none.
pub type KnownInstructions = KnownServers<Option<Arc<str>>>;

/// A fact about each of many programs, by their command lines.
#[derive(Debug, Clone)]
pub struct KnownServers<T>(Arc<Mutex<HashMap<String, T>>>);

impl<T> Default for KnownServers<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> KnownServers<T> {
    /// The fact about a program, if it is known.
    #[must_use]
    pub fn of(&self, program: &str) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(program).cloned()
    }

    /// Remembers the fact about a program.
    pub fn remember(&self, program: &str, fact: T) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST || known.contains_key(program) {
            known.insert(program.to_owned(), fact);
        }
    }

    /// Forgets what turned out not to hold.
    pub fn forget(&self, program: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(program);
    }
}
