//! Counts the uses of grants in memory. The thread that owns the database stores the counts in batches.
//!
//! - Only grants in force are counted, so the number of counters is bounded.

use super::StandingGrant;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number and time of a grant's uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Uses {
    pub(super) count: u64,
    pub(super) last_ms: Option<u64>,
    stored: bool,
}

/// Uses of all grants in force, by id.
#[derive(Debug, Default)]
pub(super) struct AllUses(Mutex<HashMap<String, Uses>>);

impl AllUses {
    /// Starts counting for these grants, from their stored values.
    pub(super) fn begin<'a>(&self, grants: impl Iterator<Item = &'a StandingGrant>) {
        let uses =
            |grant: &StandingGrant| Uses { count: grant.uses, last_ms: grant.last_used_ms, stored: true };
        self.all().extend(grants.map(|grant| (grant.id.clone(), uses(grant))));
    }

    /// Counts a use of each grant. Returns `true` if the stored counts were up to date before.
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

    /// Returns a grant with its current use count.
    pub(super) fn with(&self, mut grant: StandingGrant) -> StandingGrant {
        if let Some(uses) = self.all().get(&grant.id) {
            (grant.uses, grant.last_used_ms) = (uses.count, uses.last_ms);
        }
        grant
    }

    /// Removes the counters of grants that are not in the list.
    pub(super) fn forget_all_but(&self, grants: &[StandingGrant]) {
        self.all().retain(|id, _| grants.iter().any(|grant| grant.id == *id));
    }

    /// Returns the counts that are not stored yet and marks them as stored.
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

    /// Marks the counts of these grants as not stored, after storing them failed.
    pub(super) fn not_stored(&self, ids: impl Iterator<Item = String>) {
        let mut all = self.all();
        for id in ids {
            if let Some(uses) = all.get_mut(&id) {
                uses.stored = false;
            }
        }
    }

    /// Returns the number of counters.
    #[cfg(test)]
    pub(super) fn counted(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Uses>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
