//! The uses of grants: counted in memory on the way of a call, stored in batches off it.
//!
//! - Bounded by the grants there are: what is not granted is not counted.

use super::StandingGrant;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The uses of one grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Uses {
    pub(super) count: u64,
    pub(super) last_ms: Option<u64>,
    stored: bool,
}

/// The uses of all grants that hold.
#[derive(Debug, Default)]
pub(super) struct AllUses(Mutex<HashMap<String, Uses>>);

impl AllUses {
    /// Begins to count for these, from what is stored of them.
    pub(super) fn begin<'a>(&self, grants: impl Iterator<Item = &'a StandingGrant>) {
        let uses =
            |grant: &StandingGrant| Uses { count: grant.uses, last_ms: grant.last_used_ms, stored: true };
        self.all().extend(grants.map(|grant| (grant.id.clone(), uses(grant))));
    }

    /// Counts a use of each. True, when nothing else was left to store.
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

    /// Gives a grant with its uses so far.
    pub(super) fn with(&self, mut grant: StandingGrant) -> StandingGrant {
        if let Some(uses) = self.all().get(&grant.id) {
            (grant.uses, grant.last_used_ms) = (uses.count, uses.last_ms);
        }
        grant
    }

    /// Forgets what holds no longer.
    pub(super) fn forget_all_but(&self, grants: &[StandingGrant]) {
        self.all().retain(|id, _| grants.iter().any(|grant| grant.id == *id));
    }

    /// Takes what is to be stored.
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

    /// Takes back that these are stored.
    pub(super) fn not_stored(&self, ids: impl Iterator<Item = String>) {
        let mut all = self.all();
        for id in ids {
            if let Some(uses) = all.get_mut(&id) {
                uses.stored = false;
            }
        }
    }

    /// The number of grants whose uses are counted.
    #[cfg(test)]
    pub(super) fn counted(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Uses>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
