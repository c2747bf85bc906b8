//! Identities of the servers that have answered a call.
//!
//! - Membership never allows a call. Questions about a server outside the set do not offer permanent grants.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(super) struct KnownServers(Mutex<HashSet<String>>);

impl KnownServers {
    /// Creates the set from the identities stored in the database.
    pub(super) fn of(stored: HashSet<String>) -> Self {
        Self(Mutex::new(stored))
    }

    pub(super) fn has(&self, server: &str) -> bool {
        self.lock().contains(server)
    }

    /// Adds an identity. Returns `false` if the set already contained it.
    pub(super) fn add(&self, server: &str) -> bool {
        let mut all = self.lock();
        !all.contains(server) && all.insert(server.to_owned())
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
