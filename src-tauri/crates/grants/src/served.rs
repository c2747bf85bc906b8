//! The servers that have answered a call before, by the identity of what was started.
//!
//! - Nothing is allowed by that: a server that is not among them is new, and nothing of it is offered for always.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(super) struct ServedBefore(Mutex<HashSet<String>>);

impl ServedBefore {
    /// Those that are stored.
    pub(super) fn of(stored: HashSet<String>) -> Self {
        Self(Mutex::new(stored))
    }

    pub(super) fn has(&self, server: &str) -> bool {
        self.lock().contains(server)
    }

    /// Adds one; `false` where it was there.
    pub(super) fn add(&self, server: &str) -> bool {
        let mut all = self.lock();
        !all.contains(server) && all.insert(server.to_owned())
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
