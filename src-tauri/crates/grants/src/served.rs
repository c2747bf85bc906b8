//! Servers that have answered a call before, by identity.
//!
//! - Never allows a call. A server that is not listed is new, and its grants are not offered for always.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(super) struct ServedBefore(Mutex<HashSet<String>>);

impl ServedBefore {
    /// Creates the set from the stored identities.
    pub(super) fn of(stored: HashSet<String>) -> Self {
        Self(Mutex::new(stored))
    }

    pub(super) fn has(&self, server: &str) -> bool {
        self.lock().contains(server)
    }

    /// Adds a server. Returns `false` if it was present.
    pub(super) fn add(&self, server: &str) -> bool {
        let mut all = self.lock();
        !all.contains(server) && all.insert(server.to_owned())
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
