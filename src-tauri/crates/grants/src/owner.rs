//! Thread that owns the database and the journal, and stores changes to grants.
//!
//! - The termination of a grant is written to the journal, the audit log and the database, in this order. A failed
//!   step is reported and retried until it succeeds, even across restarts. Until then, the grant remains inactive.
//! - A new grant is written to the journal, the audit log and the database before it takes effect. If it was recorded
//!   but cannot be stored, its termination is recorded.

use super::OnTrouble;
use super::ending::{EndReason, Ended, Ending, Left};
use super::journal::Journal;
use super::served::ServedBefore;
use super::store::{Store, StoredEnd};
use super::table::{Published, whole_time};
use super::uses::AllUses;
use super::{GrantError, StandingGrant, StoreError};
use ironcurtain_audit::{Audit, Entry};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Delay before retrying a failed attempt to store a termination.
const AGAIN: Duration = Duration::from_secs(2);

/// Delay before use counts and remaining times are stored, so that one transaction contains many of them.
const BATCH: Duration = Duration::from_secs(5);

/// Interval between checks that the database's path still leads to the open file.
const CHECK: Duration = Duration::from_secs(5);

/// Active grants, their uses and the known servers, shared by the thread and the readers.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) published: Published,
    pub(super) uses: AllUses,
    pub(super) served: ServedBefore,
}

pub(super) enum Command {
    Give(Vec<(StandingGrant, Entry)>, oneshot::Sender<Result<u64, GrantError>>),
    End(Box<Ending>, Option<oneshot::Sender<Stored>>),
    EndSession(String),
    Used,
    Serves(String),
    GrantState(String, oneshot::Sender<Result<Option<Ended>, StoreError>>),
    Close(oneshot::Sender<()>),
}

/// Result of the first attempt to store a termination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// The termination is in the audit log and the database.
    Complete,
    /// The termination is only in the journal, for this reason. It will be stored in the database later.
    InJournal(String),
    /// The termination is not stored anywhere, for this reason. A restart would restore the grant.
    NotStored(String),
}

/// Termination that is not stored yet, with the steps that have succeeded.
struct Pending {
    ending: Ending,
    noted: bool,
    recorded: bool,
    notify: Option<oneshot::Sender<Stored>>,
}

pub(super) struct GrantsOwner {
    pub(super) shared: Arc<Shared>,
    pub(super) store: Store,
    pub(super) journal: Journal,
    pub(super) audit: Audit,
    pub(super) on_trouble: OnTrouble,
    pub(super) runtime: Handle,
    pending: Vec<Pending>,
    batch_at: Option<Instant>,
    /// Reason the latest grants or use counts could not be stored, if any.
    unstored: Option<String>,
    /// `true` if the database's path no longer leads to the open file.
    is_lost: bool,
}

impl GrantsOwner {
    /// Creates the thread's state. `left` contains the terminations that the previous process left in the journal.
    pub(super) fn new(
        shared: Arc<Shared>,
        (store, journal): (Store, Journal),
        (audit, on_trouble): (Audit, OnTrouble),
        left: Vec<Ending>,
    ) -> Self {
        let pending =
            left.into_iter().map(|ending| Pending { ending, noted: true, recorded: false, notify: None });
        let runtime = Handle::current();
        Self {
            pending: pending.collect(),
            shared,
            store,
            journal,
            audit,
            on_trouble,
            runtime,
            batch_at: None,
            unstored: None,
            is_lost: false,
        }
    }

    pub(super) fn run(mut self, inbox: &mpsc::Receiver<Command>) {
        self.batch_at = self.has_timed().then(|| Instant::now() + BATCH);
        self.finish_pending();
        loop {
            let first = match inbox.recv_timeout(self.pause()) {
                Ok(command) => Some(command),
                Err(mpsc::RecvTimeoutError::Timeout) => None,
                Err(mpsc::RecvTimeoutError::Disconnected) => return self.store_batch(),
            };
            let (mut due, mut closing) = (first.is_none(), None);
            // Writes all terminations to the journal before storing any of them. Their grants are already inactive.
            for command in first.into_iter().chain(inbox.try_iter()) {
                closing = self.handle(command).or(closing);
            }
            self.shared.uses.forget_all_but(&self.shared.published.now().grants);
            due |= self.pending.iter().any(|pending| pending.ending.trouble.is_none());
            if due || closing.is_some() {
                self.finish_pending();
            }
            if due {
                self.check_store();
            }
            if self.batch_at.is_some_and(|at| at <= Instant::now()) || closing.is_some() {
                self.store_batch();
            }
            if let Some(done) = closing {
                // Fails if the caller has stopped waiting.
                let _ = done.send(());
                return;
            }
        }
    }

    fn pause(&self) -> Duration {
        let batch = self.batch_at.map(|at| at.saturating_duration_since(Instant::now()));
        let again = (!self.pending.is_empty()).then_some(AGAIN);
        batch.into_iter().chain(again).min().unwrap_or(CHECK).min(CHECK)
    }

    /// Executes a command. For [`Command::Close`], returns the sender to notify when the thread exits.
    fn handle(&mut self, command: Command) -> Option<oneshot::Sender<()>> {
        // The command is executed even if its caller has stopped waiting.
        match command {
            Command::Give(gifts, reply) => {
                let given = self.give(gifts);
                match &given {
                    Err(GrantError::Store(problem)) => self.is_stored(Some(problem.to_string())),
                    Ok(_) => self.is_stored(None),
                    // The audit log reports its own problems.
                    Err(_) => {}
                }
                let _ = reply.send(given);
            }
            Command::End(ending, notify) => self.end(*ending, notify),
            // Removes grants that were created while the session was being closed.
            Command::EndSession(session) => self.shared.published.end_session(&session),
            Command::Used => self.batch_soon(),
            Command::Serves(server) => {
                if let Err(problem) =
                    self.store.note_served(&server, self.shared.published.clock.now().wall_ms)
                {
                    tracing::warn!(%problem, "failed to store that a server has answered a call; it counts as new after a restart");
                }
            }
            Command::GrantState(id, reply) => {
                let _ = reply.send(self.store.ended(&id));
            }
            Command::Close(done) => return Some(done),
        }
        None
    }

    /// Checks that the database's path still leads to the open file, and reports any change.
    fn check_store(&mut self) {
        let lost = self.store.check_file().err();
        if lost.is_some() || std::mem::take(&mut self.is_lost) {
            self.is_lost = lost.is_some();
            self.is_stored(lost.map(|problem| problem.to_string()));
        }
    }

    /// Sets or clears the reason that grants or use counts could not be stored, and reports it.
    fn is_stored(&mut self, problem: Option<String>) {
        self.unstored = problem;
        (self.on_trouble)(self.trouble());
    }

    fn batch_soon(&mut self) {
        self.batch_at.get_or_insert_with(|| Instant::now() + BATCH);
    }

    fn record(&self, entry: &Entry) -> Result<(), ironcurtain_audit::AuditError> {
        self.runtime.block_on(self.audit.record(entry.clone())).map(|_| ())
    }

    fn give(&mut self, gifts: Vec<(StandingGrant, Entry)>) -> Result<u64, GrantError> {
        let clock = self.shared.published.clock.clone();
        let now = clock.now();
        let if_lost: Vec<Ending> = gifts
            .iter()
            .map(|(grant, _)| Ending::new(grant.clone(), EndReason::NotStored, now.wall_ms))
            .collect();
        // Grants for a session are not stored. Their termination is recorded with the end of the session.
        let is_stored = |grant: &StandingGrant| grant.subject.session.is_none();
        let kept = gifts.first().is_some_and(|(grant, _)| is_stored(grant));
        if kept {
            self.journal.note(&if_lost.iter().map(Left::of).collect::<Vec<_>>()).map_err(StoreError::from)?;
        }
        for (at, (_, entry)) in gifts.iter().enumerate() {
            if let Err(problem) = self.record(entry) {
                self.lose(if_lost.into_iter().take(at).collect(), kept);
                return Err(problem.into());
            }
        }
        let with_time = |(grant, _): (StandingGrant, Entry)| {
            let left = whole_time(&grant, now);
            (grant, left)
        };
        let grants: Vec<(StandingGrant, Option<u64>)> = gifts.into_iter().map(with_time).collect();
        let rows = grants.iter().filter(|(grant, _)| is_stored(grant));
        let rows: Vec<_> =
            rows.map(|(grant, left)| (grant, left.map(|left| StoredEnd::of(left, &clock)))).collect();
        if !rows.is_empty()
            && let Err(problem) = self.store.insert(&rows)
        {
            self.lose(if_lost, kept);
            return Err(problem.into());
        }
        if grants.iter().any(|(_, left)| left.is_some()) {
            self.batch_soon();
        }
        self.shared.uses.begin(grants.iter().map(|(grant, _)| grant));
        let version = self.shared.published.give(grants);
        self.clear_journal();
        Ok(version)
    }

    /// Ends grants that were recorded but could not be created. `noted` is `true` if the journal already contains
    /// their terminations.
    fn lose(&mut self, lost: Vec<Ending>, noted: bool) {
        self.shared.published.list_ending(&lost);
        let pending = lost.into_iter().map(|ending| Pending { ending, noted, recorded: false, notify: None });
        self.pending.extend(pending);
        self.clear_journal();
    }

    fn end(&mut self, ending: Ending, notify: Option<oneshot::Sender<Stored>>) {
        let mut pending = Pending { ending, noted: false, recorded: false, notify };
        pending.noted = self.note(&pending.ending);
        self.pending.push(pending);
    }

    fn note(&mut self, ending: &Ending) -> bool {
        let noted = self.journal.note(&[Left::of(ending)]);
        if let Err(problem) = &noted {
            tracing::error!(%problem, grant = ending.id, "failed to write the end of a grant to the journal");
        }
        noted.is_ok()
    }

    /// Records and stores the pending terminations, and reports the results.
    fn finish_pending(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.pending);
        let mut trouble = None;
        for pending in all.iter_mut().filter(|pending| !pending.recorded) {
            match self.record(&pending.ending.entry) {
                Ok(()) => pending.recorded = true,
                Err(problem) => {
                    trouble = Some(problem.to_string());
                    break;
                }
            }
        }
        let ended = |pending: &Pending| Ended { why: pending.ending.why, at_ms: pending.ending.at_ms };
        let rows: Vec<(&str, Ended)> = all.iter().map(|p| (p.ending.id.as_str(), ended(p))).collect();
        let stored = self.store.end(&rows).map_err(|problem| problem.to_string());
        for pending in &mut all {
            let not_recorded = trouble.clone().filter(|_| !pending.recorded);
            pending.ending.trouble = not_recorded.or_else(|| stored.clone().err());
            if pending.ending.trouble.is_some() {
                pending.noted = pending.noted || stored.is_ok() || self.note(&pending.ending);
            }
        }
        let (mut whole, waiting): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|pending| pending.ending.trouble.is_none());
        self.pending = waiting;
        // Reports the problem first, so that it is listed when callers are notified.
        (self.on_trouble)(self.trouble());
        for pending in whole.iter_mut().chain(&mut self.pending) {
            self.shared.published.note_end(&pending.ending.id, pending.ending.trouble.as_deref());
            send_result(pending);
        }
        self.clear_journal();
    }

    /// Describes the current problem for the user, or returns `None` if everything is stored.
    fn trouble(&self) -> Option<String> {
        let Some(why) = self.pending.iter().find_map(|pending| pending.ending.trouble.as_deref()) else {
            let why = self.unstored.as_deref()?;
            return Some(format!("Permissions cannot be stored: {why}."));
        };
        let count = self.pending.len();
        let (subject, verb) =
            if count == 1 { ("1 grant".to_owned(), "has") } else { (format!("{count} grants"), "have") };
        let then = if self.pending.iter().all(|pending| pending.noted) {
            "IronCurtain retries until it succeeds, and a restart does not restore ended grants"
        } else {
            "until it succeeds, a restart would restore revoked grants"
        };
        Some(format!("{subject} {verb} ended, but that could not be stored: {why}; {then}."))
    }

    fn clear_journal(&mut self) {
        if self.pending.is_empty()
            && let Err(problem) = self.journal.clear()
        {
            tracing::warn!(%problem, "failed to clear the grant journal; its lines are stored again at the next start");
        }
    }

    fn has_timed(&self) -> bool {
        self.shared.published.now().grants.iter().any(|grant| grant.expires_ms.is_some())
    }

    fn store_batch(&mut self) {
        let table = self.shared.published.now();
        let clock = self.shared.published.clock.clone();
        let now = clock.now();
        let uses = self.shared.uses.unstored();
        let end = |grant: &StandingGrant| {
            let left = table.left_ms(grant, now)?;
            Some((grant.id.clone(), StoredEnd::of(left, &clock)))
        };
        let ends: Vec<(String, StoredEnd)> = table.grants.iter().filter_map(end).collect();
        self.batch_at = (!ends.is_empty()).then(|| Instant::now() + BATCH);
        if uses.is_empty() && ends.is_empty() {
            return;
        }
        if let Err(problem) = self.store.note(&uses, &ends) {
            tracing::warn!(%problem, "failed to store uses of grants; trying again later");
            self.is_stored(Some(problem.to_string()));
            self.shared.uses.not_stored(uses.into_iter().map(|(id, _)| id));
            self.batch_soon();
        }
    }
}

fn send_result(pending: &mut Pending) {
    if let Some(notify) = pending.notify.take() {
        let failed = if pending.noted { Stored::InJournal } else { Stored::NotStored };
        // Fails if the caller has stopped waiting.
        let _ = notify.send(pending.ending.trouble.clone().map_or(Stored::Complete, failed));
    }
}
