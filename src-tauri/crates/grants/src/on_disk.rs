//! The grants as the disk has them, for a look without the trusted process.

use super::ending::Why;
use super::journal::Journal;
use super::store::{Store, StoredEnd};
use super::{StandingGrant, StoreError};
use ironcurtain_audit::clock::Clock;
use std::path::Path;

impl StandingGrant {
    /// The grants that outlive their session, as the database has them: for a look without the trusted process, whether
    /// it runs or not. Those that have ended by the clock are left out.
    ///
    /// # Errors
    /// [`StoreError`], when the database cannot be read. Without one, nothing is granted.
    pub fn on_disk(database: &Path) -> Result<Vec<Self>, StoreError> {
        let Some(store) = Store::open_to_read(database)? else { return Ok(Vec::new()) };
        let clock = Clock::of_machine().map_err(StoreError::Clock)?;
        let ended = Journal::read(database)?;
        let mut grants = store.load()?;
        grants.retain(|(grant, end)| {
            let is_over = StoredEnd::left(grant, end.as_ref(), &clock) == Some(0);
            !is_over && !ended.iter().any(|left| left.why != Why::NotKept && left.id == grant.id)
        });
        Ok(grants.into_iter().map(|(grant, _)| grant).collect())
    }
}
