//! Reads the stored grants without the daemon.

use super::ending::EndReason;
use super::journal::Journal;
use super::store::{Store, StoredEnd};
use super::{StandingGrant, StoreError};
use ironcurtain_audit::clock::Clock;
use std::path::Path;

impl StandingGrant {
    /// Returns the stored grants that have not expired, whether or not the daemon is running. Does not include grants
    /// for a single session, because they are not stored. Returns no grants if the database does not exist.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database or the journal cannot be read.
    pub fn on_disk(database: &Path) -> Result<Vec<Self>, StoreError> {
        let Some(store) = Store::open_to_read(database)? else { return Ok(Vec::new()) };
        let clock = Clock::system().map_err(StoreError::Clock)?;
        let ended = Journal::read(database)?;
        let mut grants = store.load()?;
        grants.retain(|(grant, end)| {
            let is_over = StoredEnd::remaining_ms(grant, end.as_ref(), &clock) == Some(0);
            !is_over && !ended.iter().any(|left| left.why != EndReason::NotStored && left.id == grant.id)
        });
        Ok(grants.into_iter().map(|(grant, _)| grant).collect())
    }
}
