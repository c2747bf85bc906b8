//! Standing grants. The exceptions to the policy, the servers' roots and the servers' mounts are derived from them.
//!
//! - Readers take the published [`GrantTable`] without waiting. Revoking a grant first removes it from the table. A
//!   thread then records and stores the termination.
//! - The table contains no expired grants, so the judge needs no clock.
//! - A permission for a single call or connection is not a grant.
//! - This crate neither asks the user nor judges calls. Callers ask the user before they create a grant.
//!
//! ```no_run
//! use ironcurtain_audit::Audit;
//! use ironcurtain_audit::clock::{Clock, millis};
//! use ironcurtain_grants::{GrantParts, Grants};
//! use std::path::Path;
//!
//! let parts = GrantParts {
//!     database: Path::new("state.db"),
//!     audit: Audit::open(Path::new("audit"), |_| ())?,
//!     on_trouble: Box::new(|trouble| eprintln!("{trouble:?}")),
//!     clock: Clock::system()?,
//! };
//! let grants = Grants::open(parts)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bindings;
mod client;
mod ending;
mod journal;
mod known_servers;
mod lifetime;
mod limits;
mod listed_definition;
pub mod mounts;
mod on_disk;
mod owner;
mod pins;
mod standing;
mod store;
mod table;
mod timing;
mod tool_list_cache;
mod uses;

pub use bindings::{Binding, Bindings, IdentityDecision};
pub use client::{Client, UNKNOWN};
pub use ending::{EndReason, PendingTermination, StoredTermination};
pub use lifetime::Lifetime;
pub use limits::GrantLimits;
pub use listed_definition::ListedDefinition;
pub use owner::Stored;
pub use pins::{Listing, MAX_TOOLS, PinDecision, PinKey, PinState, Pins, ToolPin};
pub use standing::{Files, GrantSubject, Granted, StandingGrant};
pub use store::StoreError;
pub use table::GrantTable;
pub use tool_list_cache::{CachedTools, ToolListCache};

use ironcurtain_audit::clock::{Clock, millis};
use ironcurtain_audit::{Audit, AuditError, Entry};
use journal::Journal;
use known_servers::KnownServers;
use owner::{Command, GrantsOwner, Shared};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use store::{Store, StoredEnd};
use table::TablePublisher;
use tokio::sync::{oneshot, watch};
use uses::AllUses;

/// Reason a grant was not created.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The grant could not be recorded in the audit log.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The grant could not be stored in the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Callback that receives a description of the current problem, or `None` once the problem is resolved.
pub type ProblemCallback = Box<dyn Fn(Option<String>) + Send + Sync>;

/// Arguments of [`Grants::open`].
pub struct GrantParts<'a> {
    /// Path of the database. The journal is in the same folder.
    pub database: &'a Path,
    /// Audit log in which grants and their terminations are recorded.
    pub audit: Audit,
    /// Called when a termination cannot be stored, and again once it is stored.
    pub on_trouble: ProblemCallback,
    /// Clocks that determine when grants expire.
    pub clock: Clock,
}

/// Handle to the grants. Clones share the state.
#[derive(Debug, Clone)]
pub struct Grants {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    _timing: Arc<timing::Timing>,
}

/// Grant that was just revoked.
#[derive(Debug)]
pub struct RevokedGrant {
    /// Grant as it was before it was revoked.
    pub grant: StandingGrant,
    /// Version of the first table that does not contain the grant.
    pub version: u64,
    stored: oneshot::Receiver<Stored>,
}

impl RevokedGrant {
    /// Waits until the first attempt to store the termination is complete.
    pub async fn stored(self) -> Stored {
        self.stored
            .await
            .unwrap_or_else(|_| Stored::NotStored("the trusted process is shutting down".to_owned()))
    }
}

/// State of a grant that is not in the table.
#[derive(Debug, Clone, PartialEq)]
pub enum GrantState {
    /// The grant has ended, but its termination is not stored yet.
    Terminating(Box<PendingTermination>),
    /// The grant has ended, and its termination is stored.
    Terminated(StoredTermination),
    /// No grant has this id, or the record of its termination was removed to make room for newer records.
    Unknown,
}

impl Grants {
    /// Opens the database and spawns the thread that owns it. The thread first stores the changes that the previous
    /// process could not store.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database or its journal cannot be read, or if the thread cannot be spawned.
    pub fn open(parts: GrantParts<'_>) -> Result<Self, StoreError> {
        let GrantParts { database, audit, on_trouble, clock } = parts;
        let store = Store::open(database)?;
        let (journal, journal_entries) = Journal::open(database)?;
        let mut grants: Vec<_> = store.load()?;
        let mut take_grant = |id: &str| {
            let at = grants.iter().position(|(grant, _)| grant.id == id)?;
            Some(grants.remove(at).0)
        };
        let mut endings: Vec<PendingTermination> = Vec::new();
        for entry in journal_entries.iter().filter(|entry| entry.why != EndReason::NotStored).cloned() {
            let grant = take_grant(&entry.id);
            endings.push(PendingTermination::from_journal(entry, grant));
        }
        // The database contains only grants that were recorded in the audit log, so a grant that it contains stays
        // active.
        for lost in journal_entries.into_iter().filter(|entry| entry.why == EndReason::NotStored) {
            let is_known = |id: &str| endings.iter().any(|ending| ending.id == id);
            if !is_known(&lost.id) && !grants.iter().any(|(grant, _)| grant.id == lost.id) {
                endings.push(PendingTermination::from_journal(lost, None));
            }
        }
        let known_servers = KnownServers::of(store.known_servers()?);
        let shared = Arc::new(Shared {
            published: TablePublisher::new(clock.clone()),
            uses: AllUses::default(),
            known_servers,
        });
        shared.published.add_terminations(&endings);
        shared.uses.begin(grants.iter().map(|(grant, _)| grant));
        let with_time = |(grant, end): (StandingGrant, Option<StoredEnd>)| {
            let journal_entries = StoredEnd::remaining_ms(&grant, end.as_ref(), &clock);
            (grant, journal_entries)
        };
        shared.published.add(grants.into_iter().map(with_time).collect());
        let over = shared.published.expire();
        let (commands, inbox) = mpsc::channel();
        send_ends(&commands, over);
        let owner = GrantsOwner::new(shared.clone(), (store, journal), (audit, on_trouble), endings);
        std::thread::Builder::new()
            .name("grants".to_owned())
            .spawn(move || owner.run(&inbox))
            .map_err(|e| StoreError::Thread(e.to_string()))?;
        let timing = timing::start(shared.clone(), commands.clone()).map_err(StoreError::Clock)?;
        Ok(Self { shared, commands, _timing: Arc::new(timing) })
    }

    /// Returns the active grants, with their use counts as of the start of the process.
    #[must_use]
    pub fn now(&self) -> Arc<GrantTable> {
        self.shared.published.now()
    }

    /// Returns a receiver that holds the table and is notified of every change.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<GrantTable>> {
        self.shared.published.watch()
    }

    /// Returns the active grants for display, with current use counts. If the two clocks disagree, the expiry time is
    /// the earlier one.
    #[must_use]
    pub fn for_display(&self) -> Vec<StandingGrant> {
        let (table, now) = (self.now(), self.shared.published.clock.now());
        let listed = |grant: &StandingGrant| {
            let mut grant = self.shared.uses.with(grant.clone());
            grant.expires_ms =
                table.left_ms(&grant, now).map(|journal_entries| now.wall_ms.saturating_add(journal_entries));
            grant
        };
        table.grants.iter().map(listed).collect()
    }

    /// Returns the terminations that are not stored yet.
    #[must_use]
    pub fn pending_terminations(&self) -> Vec<PendingTermination> {
        self.now().ending.clone()
    }

    /// Returns `true` if all of these grants are active at this moment. Call this last, immediately before forwarding
    /// a call. An expired grant stays expired even if a clock is set back.
    #[must_use]
    pub fn are_active(&self, ids: &[String]) -> bool {
        let holds = self.shared.published.are_active(ids);
        if !holds {
            send_ends(&self.commands, self.shared.published.expire());
        }
        holds
    }

    /// Creates grants, each with its audit entry. Returns the version of the first table that contains them.
    ///
    /// # Errors
    /// Returns [`GrantError`] if no grant was created.
    pub async fn create(&self, new_grants: Vec<(StandingGrant, Entry)>) -> Result<u64, GrantError> {
        let (reply, answer) = oneshot::channel();
        let limited = |(grant, entry)| (self.shared.published.with_limit(grant), entry);
        let new_grants = new_grants.into_iter().map(limited).collect();
        self.commands.send(Command::Create(new_grants, reply)).map_err(|_| StoreError::ShuttingDown)?;
        answer.await.map_err(|_| StoreError::ShuttingDown)?
    }

    /// Sets the maximum lifetime of all grants, including the existing ones. `None` removes the limit for new grants.
    pub fn limit(&self, max: Option<Duration>) {
        self.shared.published.limit(max.map_or(u64::MAX, millis));
        send_ends(&self.commands, self.shared.published.expire());
    }

    /// Returns the maximum lifetime of all grants, or `None` if there is no limit.
    #[must_use]
    pub fn max_lifetime(&self) -> Option<Duration> {
        self.shared.published.max_lifetime()
    }

    /// Revokes a grant with immediate effect. Returns `None` if the grant is not active.
    #[must_use]
    pub fn revoke(&self, id: &str) -> Option<RevokedGrant> {
        let (ending, version) = self.shared.published.remove(id)?;
        let grant = ending.grant.clone()?;
        let (notify, stored) = oneshot::channel();
        // If the thread has exited, `stored` reports it.
        let _ = self.commands.send(Command::End(Box::new(ending), Some(notify)));
        Some(RevokedGrant { grant, version, stored })
    }

    /// Returns the state of a grant that is not active.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be read.
    pub async fn state_of(&self, id: &str) -> Result<GrantState, StoreError> {
        let ending = self.now().ending.iter().find(|ending| ending.id == id).cloned();
        if let Some(ending) = ending {
            return Ok(GrantState::Terminating(Box::new(ending)));
        }
        let (reply, answer) = oneshot::channel();
        self.commands
            .send(Command::GrantState(id.to_owned(), reply))
            .map_err(|_| StoreError::ShuttingDown)?;
        let ended = answer.await.map_err(|_| StoreError::ShuttingDown)??;
        Ok(ended.map_or(GrantState::Unknown, GrantState::Terminated))
    }

    /// Removes the grants for a session that was closed.
    pub fn end_session(&self, session: &str) {
        self.shared.published.end_session(session);
        // If the thread has exited, no more grants are created.
        let _ = self.commands.send(Command::EndSession(session.to_owned()));
    }

    /// Counts one use of each of these grants.
    pub fn count_use(&self, ids: &[String]) {
        if !ids.is_empty() && self.shared.uses.count(ids, self.shared.published.clock.now().wall_ms) {
            // As in `end_session`, this fails only during shutdown.
            let _ = self.commands.send(Command::StoreUses);
        }
    }

    /// Returns `true` if the server with this identity has ever answered a call.
    #[must_use]
    pub fn has_served(&self, server: &str) -> bool {
        self.shared.known_servers.has(server)
    }

    /// Records that the server with this identity has answered a call.
    pub fn record_served(&self, server: String) {
        if self.shared.known_servers.add(&server) {
            // As in `end_session`, this fails only during shutdown.
            let _ = self.commands.send(Command::RecordServed(server));
        }
    }

    /// Stores all pending changes and stops the thread.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.commands.send(Command::Close(done)).is_ok() {
            // A dropped sender means that the thread has exited.
            let _ = closed.await;
        }
    }
}

fn send_ends(commands: &mpsc::Sender<Command>, ended: Vec<PendingTermination>) {
    for ending in ended {
        // This fails only during shutdown. Expiry is detected again at the next start.
        let _ = commands.send(Command::End(Box::new(ending), None));
    }
}

#[cfg(test)]
mod tests;
