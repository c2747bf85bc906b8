//! The era of each server program, as far as it is known.

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

/// The eras of the programs that answered in one alone, by their command lines.
#[derive(Debug, Clone, Default)]
pub struct KnownEras(Arc<Mutex<HashMap<String, Era>>>);

impl KnownEras {
    /// The era of a program, if it is known.
    #[must_use]
    pub fn of(&self, program: &str) -> Option<Era> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(program).copied()
    }

    /// Remembers that a program speaks this one and not the other.
    pub fn remember(&self, program: &str, era: Era) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST || known.contains_key(program) {
            known.insert(program.to_owned(), era);
        }
    }

    /// Forgets what turned out not to hold.
    pub fn forget(&self, program: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(program);
    }
}
