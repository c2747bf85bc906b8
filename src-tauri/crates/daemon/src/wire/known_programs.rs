//! Facts about server programs, as far as they are known.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of programs that are remembered.
const MOST: usize = 1000;

/// An era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// With a handshake.
    Legacy,
    /// Without one.
    Modern,
}

/// The eras of the programs that answered in one alone.
pub type KnownEras = KnownPrograms<Era>;

/// The words of programs about their own use; nothing for one that says none.
pub type KnownInstructions = KnownPrograms<Option<Arc<str>>>;

/// A fact about each of many programs, by their command lines.
#[derive(Debug, Clone)]
pub struct KnownPrograms<T>(Arc<Mutex<HashMap<String, T>>>);

impl<T> Default for KnownPrograms<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> KnownPrograms<T> {
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
