//! Standing permissions: the truth that policy, roots and mounts are projections of.
//!
//! - Everyone reads the published [`GrantTable`] without waiting. What is taken back is gone from it before anything else
//!   happens; one thread puts that on record and in the database.
//! - A grant that has ended is not in the table: nobody has to look at a clock to judge.
//! - Permissions for one call or one connection are not grants: they live and die with it.
//! - Never asks the user and never judges a call: whoever gives a grant has asked.
//!
//! ```no_run
//! use ironcurtain_audit::Audit;
//! use ironcurtain_audit::clock::Clock;
//! use ironcurtain_grants::{GrantParts, Grants};
//! use std::path::Path;
//!
//! let parts = GrantParts {
//!     database: Path::new("state.db"),
//!     audit: Audit::open(Path::new("audit"), |_| ())?,
//!     on_trouble: Box::new(|trouble| eprintln!("{trouble:?}")),
//!     clock: Clock::of_machine()?,
//! };
//! let grants = Grants::open(parts)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bindings;
mod client;
mod ending;
mod journal;
mod lifetime;
mod limits;
pub mod mounts;
mod on_disk;
mod owner;
mod served;
mod standing;
mod store;
mod table;
mod timing;
mod uses;

pub use bindings::{Binding, Bindings, IdentityDecision};
pub use client::{Client, UNKNOWN};
pub use ending::{Ended, Ending, Why};
pub use lifetime::Lifetime;
pub use limits::GrantLimits;
pub use owner::Stored;
pub use standing::{Files, GrantSubject, Granted, StandingGrant};
pub use store::StoreError;
pub use table::GrantTable;

use ironcurtain_audit::clock::Clock;
use ironcurtain_audit::{Audit, AuditError, Entry};
use journal::Journal;
use owner::{Command, GrantsOwner, Shared};
use served::ServedBefore;
use std::path::Path;
use std::sync::{Arc, mpsc};
use store::{Store, StoredEnd};
use table::Published;
use tokio::sync::{oneshot, watch};
use uses::AllUses;

/// Why a grant is not given.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// It cannot be put on record.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// It cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Takes a sentence about what is wrong, or that nothing is any more.
pub type OnTrouble = Box<dyn Fn(Option<String>) + Send + Sync>;

/// The parts that grants are kept with.
pub struct GrantParts<'a> {
    /// The database; its journal is beside it.
    pub database: &'a Path,
    /// The record.
    pub audit: Audit,
    /// Takes what is wrong: that an end is not stored, or that nothing is any more.
    pub on_trouble: OnTrouble,
    /// The clocks that grants end by.
    pub clock: Clock,
}

/// A handle to the grants.
#[derive(Debug, Clone)]
pub struct Grants {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    _timing: Arc<timing::Timing>,
}

/// A grant that holds no longer, as just published.
#[derive(Debug)]
pub struct TakenBack {
    /// The grant.
    pub grant: StandingGrant,
    /// The version of the table that lacks it.
    pub version: u64,
    stored: oneshot::Receiver<Stored>,
}

impl TakenBack {
    /// Waits for the first try to store that.
    pub async fn stored(self) -> Stored {
        self.stored.await.unwrap_or_else(|_| Stored::Nowhere("the trusted process is ending".to_owned()))
    }
}

/// The fate of a grant that does not hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// It ended, and that is not stored yet.
    Ending(Box<Ending>),
    /// It ended.
    Ended(Ended),
    /// There was none of that id, or it ended long ago.
    Unknown,
}

impl Grants {
    /// Opens the database and starts its owner, which finishes first what the last one has left.
    ///
    /// # Errors
    /// [`StoreError`], when the database or its journal cannot be read.
    pub fn open(parts: GrantParts<'_>) -> Result<Self, StoreError> {
        let GrantParts { database, audit, on_trouble, clock } = parts;
        let store = Store::open(database)?;
        let (journal, left) = Journal::open(database)?;
        let mut grants: Vec<_> = store.load()?;
        let mut leaves = |id: &str| {
            let at = grants.iter().position(|(grant, _)| grant.id == id)?;
            Some(grants.remove(at).0)
        };
        let mut endings: Vec<Ending> = Vec::new();
        for left in left.iter().filter(|left| left.why != Why::NotKept).cloned() {
            let grant = leaves(&left.id);
            endings.push(Ending::left(left, grant));
        }
        // One that was being given is kept if it is in the database, since it is on record then.
        for lost in left.into_iter().filter(|left| left.why == Why::NotKept) {
            let is_known = |id: &str| endings.iter().any(|ending| ending.id == id);
            if !is_known(&lost.id) && !grants.iter().any(|(grant, _)| grant.id == lost.id) {
                endings.push(Ending::left(lost, None));
            }
        }
        let served = ServedBefore::of(store.served()?);
        let shared =
            Arc::new(Shared { published: Published::new(clock.clone()), uses: AllUses::default(), served });
        shared.published.list_ending(&endings);
        shared.uses.begin(grants.iter().map(|(grant, _)| grant));
        let with_time = |(grant, end): (StandingGrant, Option<StoredEnd>)| {
            let left = StoredEnd::left(&grant, end.as_ref(), &clock);
            (grant, left)
        };
        shared.published.give(grants.into_iter().map(with_time).collect());
        let over = shared.published.expire();
        let (commands, inbox) = mpsc::channel();
        tell_ends(&commands, over);
        let owner = GrantsOwner::new(shared.clone(), (store, journal), (audit, on_trouble), endings);
        std::thread::Builder::new()
            .name("grants".to_owned())
            .spawn(move || owner.run(&inbox))
            .map_err(|e| StoreError::Thread(e.to_string()))?;
        let timing = timing::start(shared.clone(), commands.clone()).map_err(StoreError::Clock)?;
        Ok(Self { shared, commands, _timing: Arc::new(timing) })
    }

    /// The grants as they are now, without the uses since the start.
    #[must_use]
    pub fn now(&self) -> Arc<GrantTable> {
        self.shared.published.now()
    }

    /// For waiting until they change.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<GrantTable>> {
        self.shared.published.watch()
    }

    /// The grants that hold, with their uses and the moment at which they really end, for people.
    #[must_use]
    pub fn listed(&self) -> Vec<StandingGrant> {
        let (table, now) = (self.now(), self.shared.published.clock.now());
        let listed = |grant: &StandingGrant| {
            let mut grant = self.shared.uses.with(grant.clone());
            grant.expires_ms = table.left_ms(&grant, now).map(|left| now.wall_ms.saturating_add(left));
            grant
        };
        table.grants.iter().map(listed).collect()
    }

    /// The grants that hold no longer, while that is not stored.
    #[must_use]
    pub fn ending(&self) -> Vec<Ending> {
        self.now().ending.clone()
    }

    /// Returns `true` if every one of these grants holds at this very moment: the last look before something is let through.
    /// A grant that is seen to be over is over from then on, whatever a clock says later.
    #[must_use]
    pub fn hold(&self, ids: &[String]) -> bool {
        let holds = self.shared.published.hold(ids);
        if !holds {
            tell_ends(&self.commands, self.shared.published.expire());
        }
        holds
    }

    /// Gives grants, each with the entry that puts it on record; the answer is the version of the table that has them.
    ///
    /// # Errors
    /// [`GrantError`]: none of them is given.
    pub async fn give(&self, gifts: Vec<(StandingGrant, Entry)>) -> Result<u64, GrantError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Give(gifts, reply)).map_err(|_| StoreError::Ended)?;
        answer.await.map_err(|_| StoreError::Ended)?
    }

    /// Takes a grant back: it holds no longer when this returns. Nothing, where none of that id holds.
    #[must_use]
    pub fn take_back(&self, id: &str) -> Option<TakenBack> {
        let (ending, version) = self.shared.published.take(id)?;
        let grant = ending.grant.clone()?;
        let (told, stored) = oneshot::channel();
        // Without an owner the answer says so.
        let _ = self.commands.send(Command::End(Box::new(ending), Some(told)));
        Some(TakenBack { grant, version, stored })
    }

    /// The fate of a grant that does not hold.
    ///
    /// # Errors
    /// [`StoreError`], when the database cannot be asked.
    pub async fn fate(&self, id: &str) -> Result<Fate, StoreError> {
        let ending = self.now().ending.iter().find(|ending| ending.id == id).cloned();
        if let Some(ending) = ending {
            return Ok(Fate::Ending(Box::new(ending)));
        }
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Fate(id.to_owned(), reply)).map_err(|_| StoreError::Ended)?;
        let ended = answer.await.map_err(|_| StoreError::Ended)??;
        Ok(ended.map_or(Fate::Unknown, Fate::Ended))
    }

    /// Drops the grants of a session that ended.
    pub fn end_session(&self, session: &str) {
        self.shared.published.end_session(session);
        // Without an owner nothing is given any more.
        let _ = self.commands.send(Command::EndSession(session.to_owned()));
    }

    /// Notes that grants let something through.
    pub fn used(&self, ids: &[String]) {
        if !ids.is_empty() && self.shared.uses.count(ids, self.shared.published.clock.now().wall_ms) {
            // As above.
            let _ = self.commands.send(Command::Used);
        }
    }

    /// Returns `true` if a server of this identity has answered a call before, ever.
    #[must_use]
    pub fn has_served(&self, server: &str) -> bool {
        self.shared.served.has(server)
    }

    /// Notes that a server of this identity has answered a call.
    pub fn serves(&self, server: String) {
        if self.shared.served.add(&server) {
            // As above.
            let _ = self.commands.send(Command::Serves(server));
        }
    }

    /// Stores what is to be stored, and gives nothing any more.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.commands.send(Command::Close(done)).is_ok() {
            // Either way it is over.
            let _ = closed.await;
        }
    }
}

fn tell_ends(commands: &mpsc::Sender<Command>, ended: Vec<Ending>) {
    for ending in ended {
        // Without an owner the trusted process is ending.
        let _ = commands.send(Command::End(Box::new(ending), None));
    }
}

#[cfg(test)]
mod tests;
