//! Counts the uses of grants in memory. The thread that owns the database stores the counts in batches.
//!
//! - Only uses of active grants are counted, so the number of counters is limited.

use super::StandingGrant;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A grant's use count and time of last use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Uses {
    pub(super) count: u64,
    pub(super) last_ms: Option<u64>,
    stored: bool,
}

/// Uses of all active grants, by id.
#[derive(Debug, Default)]
pub(super) struct AllUses(Mutex<HashMap<String, Uses>>);

impl AllUses {
    /// Starts counting for these grants, from their stored counts.
    pub(super) fn begin<'a>(&self, grants: impl Iterator<Item = &'a StandingGrant>) {
        let uses =
            |grant: &StandingGrant| Uses { count: grant.uses, last_ms: grant.last_used_ms, stored: true };
        self.all().extend(grants.map(|grant| (grant.id.clone(), uses(grant))));
    }

    /// Counts one use of each grant. Returns `true` if any of the grants had no unstored uses before.
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

    /// Returns the grant with its current use count.
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

    /// Returns the counts that have not been stored, and marks them as stored.
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

    /// Marks the counts of these grants as not stored. Call this if storing them failed.
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
