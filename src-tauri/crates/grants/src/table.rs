//! Publishes the table of active grants.
//!
//! - INVARIANT: revoking a grant first publishes a table without it, in a single step and without waiting. Only then
//!   is the termination stored.
//! - A grant is active only until either of the two clocks reaches its expiry time.

use super::StandingGrant;
use super::ending::{EndReason, PendingTermination};
use ironcurtain_audit::clock::{Clock, Moment, millis};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// Snapshot of the active grants.
#[derive(Debug, Clone, Default)]
pub struct GrantTable {
    /// Version of the table, incremented with every change.
    pub version: u64,
    /// Active grants, in order of creation.
    pub grants: Vec<StandingGrant>,
    /// Terminations of grants that are not stored yet.
    pub(super) ending: Vec<PendingTermination>,
    /// Expiry times by grant id, in milliseconds since boot.
    deadlines: BTreeMap<String, u64>,
}

impl GrantTable {
    /// Creates an unpublished table that contains these grants.
    #[must_use]
    pub fn of(grants: Vec<StandingGrant>) -> Self {
        Self { version: 1, grants, ..Self::default() }
    }

    /// Returns `true` if the grant with this id is active.
    fn is_active(&self, id: &str, now: impl Fn() -> Moment) -> bool {
        match self.grants.iter().find(|grant| grant.id == id) {
            Some(grant) if grant.expires_ms.is_some() => !self.has_ended(grant, now()),
            Some(_) => true,
            None => false,
        }
    }

    fn has_ended(&self, grant: &StandingGrant, now: Moment) -> bool {
        grant.expires_ms.is_some_and(|at| at <= now.wall_ms)
            || self.deadlines.get(&grant.id).is_some_and(|at| *at <= now.boot_ms)
    }

    /// Returns a grant's remaining time in milliseconds, or `None` if it does not expire.
    pub(super) fn left_ms(&self, grant: &StandingGrant, now: Moment) -> Option<u64> {
        let by_wall = grant.expires_ms?.saturating_sub(now.wall_ms);
        let by_boot = self.deadlines.get(&grant.id).map(|at| at.saturating_sub(now.boot_ms));
        Some(by_boot.map_or(by_wall, |left| left.min(by_wall)))
    }

    /// Returns the time of the next expiry on each clock, or `None` if no grant expires.
    fn next_end(&self) -> Option<Moment> {
        let timed = self.grants.iter().filter(|grant| grant.expires_ms.is_some());
        let wall_ms = timed.clone().filter_map(|grant| grant.expires_ms).min()?;
        let boot_ms = timed.filter_map(|grant| self.deadlines.get(&grant.id)).min();
        Some(Moment { wall_ms, boot_ms: boot_ms.copied().unwrap_or(u64::MAX / 2) })
    }
}

/// Publisher of the table, with the clocks that determine when grants expire.
#[derive(Debug)]
pub(super) struct TablePublisher {
    table: watch::Sender<Arc<GrantTable>>,
    pub(super) clock: Clock,
    /// Maximum lifetime of every grant in milliseconds, or `u64::MAX` if it is unlimited.
    max_ms: AtomicU64,
}

impl TablePublisher {
    pub(super) fn new(clock: Clock) -> Self {
        Self { table: watch::Sender::new(Arc::default()), clock, max_ms: AtomicU64::new(u64::MAX) }
    }

    pub(super) fn now(&self) -> Arc<GrantTable> {
        self.table.borrow().clone()
    }

    /// Returns the number of active grants, of terminations that are not stored, and of expiry times.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let table = self.now();
        (table.grants.len(), table.ending.len(), table.deadlines.len())
    }

    pub(super) fn watch(&self) -> watch::Receiver<Arc<GrantTable>> {
        self.table.subscribe()
    }

    /// Returns `true` if all of these grants are active.
    pub(super) fn are_active(&self, ids: &[String]) -> bool {
        let table = self.table.borrow();
        ids.iter().all(|id| table.is_active(id, || self.clock.now()))
    }

    pub(super) fn next_end(&self) -> Option<Moment> {
        self.table.borrow().next_end()
    }

    /// Sets the maximum lifetime of all grants, including the existing ones.
    pub(super) fn limit(&self, max_ms: u64) {
        self.max_ms.store(max_ms, Ordering::SeqCst);
        let now = self.clock.now();
        self.change(|table| {
            let mut changed = false;
            for grant in &mut table.grants {
                let end = expiry_ms(grant, max_ms);
                if end != grant.expires_ms {
                    grant.expires_ms = end;
                    // The clock may have been set back since the grant was created.
                    let left = end.unwrap_or(u64::MAX).saturating_sub(now.wall_ms).min(max_ms);
                    let deadline = now.boot_ms.saturating_add(left);
                    let known = table.deadlines.entry(grant.id.clone()).or_insert(deadline);
                    *known = deadline.min(*known);
                    changed = true;
                }
            }
            changed
        });
    }

    pub(super) fn max_lifetime(&self) -> Option<Duration> {
        let max_ms = self.max_ms.load(Ordering::SeqCst);
        (max_ms != u64::MAX).then(|| Duration::from_millis(max_ms))
    }

    /// Limits the lifetime of a new grant.
    pub(super) fn with_limit(&self, mut grant: StandingGrant) -> StandingGrant {
        grant.expires_ms = expiry_ms(&grant, self.max_ms.load(Ordering::SeqCst));
        grant
    }

    /// Adds grants and returns the new version of the table. Each grant comes with its remaining time in
    /// milliseconds, or `None` if it does not expire.
    pub(super) fn add(&self, grants: Vec<(StandingGrant, Option<u64>)>) -> u64 {
        let now = self.clock.now();
        self.change(|table| {
            for (grant, left_ms) in grants {
                let grant = self.with_limit(grant);
                if let Some(left) = left_ms {
                    table.deadlines.insert(grant.id.clone(), now.boot_ms.saturating_add(left));
                }
                table.grants.push(grant);
            }
            true
        });
        self.table.borrow().version
    }

    /// Removes a grant. Returns its termination and the new version of the table, or `None` if the grant is not active.
    pub(super) fn remove(&self, id: &str) -> Option<(PendingTermination, u64)> {
        let mut ended = self.end(EndReason::Revoked, |grant| grant.id == id);
        ended.1.pop().map(|ending| (ending, ended.0))
    }

    /// Removes the grants that have expired and returns their terminations.
    pub(super) fn expire(&self) -> Vec<PendingTermination> {
        let now = self.clock.now();
        let table = self.now();
        let has_expired = |grant: &StandingGrant| table.has_ended(grant, now);
        if table.grants.iter().any(has_expired) {
            self.end(EndReason::Expired, has_expired).1
        } else {
            Vec::new()
        }
    }

    /// Removes the grants for a closed session. They are not stored, and their termination is recorded with the end
    /// of the session.
    pub(super) fn end_session(&self, session: &str) {
        let is_of_session = |grant: &StandingGrant| grant.subject.session.as_deref() == Some(session);
        self.change(|table| table.grants.extract_if(.., |grant| is_of_session(grant)).count() > 0);
    }

    fn end(
        &self,
        why: EndReason,
        is_ended: impl Fn(&StandingGrant) -> bool,
    ) -> (u64, Vec<PendingTermination>) {
        let at_ms = self.clock.now().wall_ms;
        let mut ended = Vec::new();
        self.change(|table| {
            let terminated = table.grants.extract_if(.., |grant| is_ended(grant));
            ended = terminated.map(|grant| PendingTermination::new(grant, why, at_ms)).collect();
            for PendingTermination { id, .. } in &ended {
                table.deadlines.remove(id);
            }
            table.ending.extend(ended.iter().cloned());
            !ended.is_empty()
        });
        (self.table.borrow().version, ended)
    }

    /// Adds terminations that are not stored yet: those in the previous process's journal, or those of grants that
    /// could not be stored.
    pub(super) fn add_terminations(&self, endings: &[PendingTermination]) {
        self.table.send_if_modified(|table| {
            Arc::make_mut(table).ending.extend(endings.iter().cloned());
            !endings.is_empty()
        });
    }

    /// Sets the error from storing a termination. If `trouble` is `None`, the termination has been stored and is
    /// removed from the table.
    pub(super) fn set_termination_error(&self, id: &str, trouble: Option<&str>) {
        self.table.send_if_modified(|table| {
            let Some(at) = table.ending.iter().position(|ending| ending.id == id) else { return false };
            let table = Arc::make_mut(table);
            match (trouble, table.ending.get_mut(at)) {
                (Some(trouble), Some(ending)) => {
                    let old = ending.trouble.replace(trouble.to_owned());
                    old.as_deref() != Some(trouble)
                }
                _ => {
                    table.ending.remove(at);
                    true
                }
            }
        });
    }

    fn change(&self, with: impl FnOnce(&mut GrantTable) -> bool) {
        self.table.send_if_modified(|table| {
            let table = Arc::make_mut(table);
            let changed = with(table);
            table.version += u64::from(changed);
            changed
        });
    }
}

/// Returns the wall-clock time at which a grant expires, given the maximum lifetime in milliseconds.
fn expiry_ms(grant: &StandingGrant, max_ms: u64) -> Option<u64> {
    let limit = grant.created_ms.checked_add(max_ms);
    grant.expires_ms.into_iter().chain(limit).min()
}

/// Returns a new grant's duration in milliseconds: the shorter of its lifetime and the time until its wall-clock
/// expiry.
pub(super) fn initial_time_left(grant: &StandingGrant, now: Moment) -> Option<u64> {
    let by_wall = grant.expires_ms?.saturating_sub(now.wall_ms);
    Some(grant.lifetime.duration().map_or(by_wall, |length| millis(length).min(by_wall)))
}
