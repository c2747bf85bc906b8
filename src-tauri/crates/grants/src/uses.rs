//! Counts uses of grants in memory; the owner stores them in batches.
//!
//! - Bounded by the number of grants: only grants in force are counted.

use super::StandingGrant;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Uses of one grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Uses {
    pub(super) count: u64,
    pub(super) last_ms: Option<u64>,
    stored: bool,
}

/// Uses of all grants in force.
#[derive(Debug, Default)]
pub(super) struct AllUses(Mutex<HashMap<String, Uses>>);

impl AllUses {
    /// Starts counting from the stored values.
    pub(super) fn begin<'a>(&self, grants: impl Iterator<Item = &'a StandingGrant>) {
        let uses =
            |grant: &StandingGrant| Uses { count: grant.uses, last_ms: grant.last_used_ms, stored: true };
        self.all().extend(grants.map(|grant| (grant.id.clone(), uses(grant))));
    }

    /// Counts one use of each grant. Returns `true` if no earlier count was waiting to be stored.
    pub(super) fn count(&self, ids: &[String], now_ms: u64) -> bool {
        let mut all = self.all();
        let mut first = false;
        for id in ids {
            if let Some(uses) = all.get_mut(id) {
                first |= uses.stored;
                *uses = Uses { count: uses.count + 1, last_ms: Some(now_ms), stored: false };
            }
        }
        first
    }

    /// Returns a grant with its current uses.
    pub(super) fn with(&self, mut grant: StandingGrant) -> StandingGrant {
        if let Some(uses) = self.all().get(&grant.id) {
            (grant.uses, grant.last_used_ms) = (uses.count, uses.last_ms);
        }
        grant
    }

    /// Forgets grants that are no longer in force.
    pub(super) fn forget_all_but(&self, grants: &[StandingGrant]) {
        self.all().retain(|id, _| grants.iter().any(|grant| grant.id == *id));
    }

    /// Takes the counts that are not stored yet.
    pub(super) fn unstored(&self) -> Vec<(String, Uses)> {
        let mut all = self.all();
        let unstored = all.iter_mut().filter(|(_, uses)| !uses.stored);
        unstored
            .map(|(id, uses)| {
                uses.stored = true;
                (id.clone(), *uses)
            })
            .collect()
    }

    /// Marks counts as not stored.
    pub(super) fn not_stored(&self, ids: impl Iterator<Item = String>) {
        let mut all = self.all();
        for id in ids {
            if let Some(uses) = all.get_mut(&id) {
                uses.stored = false;
            }
        }
    }

    /// Returns the number of grants that are counted.
    #[cfg(test)]
    pub(super) fn counted(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Uses>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
