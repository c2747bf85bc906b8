//! Thread that owns the database and the journal, and stores changes to grants.
//!
//! - The termination of a grant is written to the journal, the audit log and the database, in this order. A failed
//!   step is reported and retried until it succeeds, even across restarts. Until then, the grant remains inactive.
//! - A new grant is written to the journal, the audit log and the database before it takes effect. If it was recorded
//!   but cannot be stored, its termination is recorded.

use super::ProblemCallback;
use super::ending::{EndReason, JournalEntry, PendingTermination, StoredTermination};
use super::journal::Journal;
use super::known_servers::KnownServers;
use super::store::{Store, StoredEnd};
use super::table::{TablePublisher, initial_time_left};
use super::uses::AllUses;
use super::{GrantError, StandingGrant, StoreError};
use ironcurtain_audit::{Audit, Entry};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Delay before retrying a failed attempt to store a termination.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Delay before use counts and remaining times are stored, so that one transaction contains many of them.
const BATCH_DELAY: Duration = Duration::from_secs(5);

/// Interval between checks that the database's path still leads to the open file.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Active grants, their uses and the known servers, shared by the thread and the readers.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) published: TablePublisher,
    pub(super) uses: AllUses,
    pub(super) known_servers: KnownServers,
}

pub(super) enum Command {
    Create(Vec<(StandingGrant, Entry)>, oneshot::Sender<Result<u64, GrantError>>),
    End(Box<PendingTermination>, Option<oneshot::Sender<Stored>>),
    EndSession(String),
    StoreUses,
    RecordServed(String),
    GrantState(String, oneshot::Sender<Result<Option<StoredTermination>, StoreError>>),
    Close(oneshot::Sender<()>),
}

/// Result of the first attempt to store a termination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// The termination is in the audit log and the database.
    Complete,
    /// The termination is only in the journal. Contains the reason. It will be stored in the database later.
    InJournal(String),
    /// The termination could not be stored. Contains the reason. A restart would restore the grant.
    NotStored(String),
}

/// Termination that is not stored yet, with the steps that have succeeded.
struct Pending {
    ending: PendingTermination,
    is_in_journal: bool,
    recorded: bool,
    notify: Option<oneshot::Sender<Stored>>,
}

pub(super) struct GrantsOwner {
    pub(super) shared: Arc<Shared>,
    pub(super) store: Store,
    pub(super) journal: Journal,
    pub(super) audit: Audit,
    pub(super) on_trouble: ProblemCallback,
    pub(super) runtime: Handle,
    pending: Vec<Pending>,
    batch_at: Option<Instant>,
    /// Reason the latest grants or use counts could not be stored, if any.
    store_error: Option<String>,
    /// `true` if the database's path no longer leads to the open file.
    is_lost: bool,
}

impl GrantsOwner {
    /// Creates the thread's state. `unfinished` contains the terminations that the previous process left in the journal.
    pub(super) fn new(
        shared: Arc<Shared>,
        (store, journal): (Store, Journal),
        (audit, on_trouble): (Audit, ProblemCallback),
        unfinished: Vec<PendingTermination>,
    ) -> Self {
        let pending = unfinished.into_iter().map(|ending| Pending {
            ending,
            is_in_journal: true,
            recorded: false,
            notify: None,
        });
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
            store_error: None,
            is_lost: false,
        }
    }

    pub(super) fn run(mut self, inbox: &mpsc::Receiver<Command>) {
        self.batch_at = self.has_expiring().then(|| Instant::now() + BATCH_DELAY);
        self.finish_pending();
        loop {
            let first = match inbox.recv_timeout(self.next_wait()) {
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

    fn next_wait(&self) -> Duration {
        let batch = self.batch_at.map(|at| at.saturating_duration_since(Instant::now()));
        let again = (!self.pending.is_empty()).then_some(RETRY_DELAY);
        batch.into_iter().chain(again).min().unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL)
    }

    /// Executes a command. For [`Command::Close`], returns the sender to notify when the thread exits.
    fn handle(&mut self, command: Command) -> Option<oneshot::Sender<()>> {
        // The command is executed even if its caller has stopped waiting.
        match command {
            Command::Create(new_grants, reply) => {
                let given = self.create(new_grants);
                match &given {
                    Err(GrantError::Store(problem)) => self.set_store_error(Some(problem.to_string())),
                    Ok(_) => self.set_store_error(None),
                    // The audit log reports its own problems.
                    Err(_) => {}
                }
                let _ = reply.send(given);
            }
            Command::End(ending, notify) => self.end(*ending, notify),
            // Removes grants that were created while the session was being closed.
            Command::EndSession(session) => self.shared.published.end_session(&session),
            Command::StoreUses => self.batch_soon(),
            Command::RecordServed(server) => {
                if let Err(problem) =
                    self.store.note_served(&server, self.shared.published.clock.now().wall_ms)
                {
                    tracing::warn!(%problem, "failed to store that a server has answered a call; it counts as new after a restart");
                }
            }
            Command::GrantState(id, reply) => {
                let _ = reply.send(self.store.termination(&id));
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
            self.set_store_error(lost.map(|problem| problem.to_string()));
        }
    }

    /// Sets or clears the reason that grants or use counts could not be stored, and reports it.
    fn set_store_error(&mut self, problem: Option<String>) {
        self.store_error = problem;
        (self.on_trouble)(self.trouble());
    }

    fn batch_soon(&mut self) {
        self.batch_at.get_or_insert_with(|| Instant::now() + BATCH_DELAY);
    }

    fn record(&self, entry: &Entry) -> Result<(), ironcurtain_audit::AuditError> {
        self.runtime.block_on(self.audit.record(entry.clone())).map(|_| ())
    }

    fn create(&mut self, new_grants: Vec<(StandingGrant, Entry)>) -> Result<u64, GrantError> {
        let clock = self.shared.published.clock.clone();
        let now = clock.now();
        let terminations: Vec<PendingTermination> = new_grants
            .iter()
            .map(|(grant, _)| PendingTermination::new(grant.clone(), EndReason::NotStored, now.wall_ms))
            .collect();
        // Grants for a session are not stored. Their termination is recorded with the end of the session.
        let is_stored = |grant: &StandingGrant| grant.subject.session.is_none();
        let is_persistent = new_grants.first().is_some_and(|(grant, _)| is_stored(grant));
        if is_persistent {
            self.journal
                .append(&terminations.iter().map(JournalEntry::of).collect::<Vec<_>>())
                .map_err(StoreError::from)?;
        }
        for (at, (_, entry)) in new_grants.iter().enumerate() {
            if let Err(problem) = self.record(entry) {
                self.terminate_lost(terminations.into_iter().take(at).collect(), is_persistent);
                return Err(problem.into());
            }
        }
        let with_time = |(grant, _): (StandingGrant, Entry)| {
            let left = initial_time_left(&grant, now);
            (grant, left)
        };
        let grants: Vec<(StandingGrant, Option<u64>)> = new_grants.into_iter().map(with_time).collect();
        let rows = grants.iter().filter(|(grant, _)| is_stored(grant));
        let rows: Vec<_> =
            rows.map(|(grant, left)| (grant, left.map(|left| StoredEnd::of(left, &clock)))).collect();
        if !rows.is_empty()
            && let Err(problem) = self.store.insert(&rows)
        {
            self.terminate_lost(terminations, is_persistent);
            return Err(problem.into());
        }
        if grants.iter().any(|(_, left)| left.is_some()) {
            self.batch_soon();
        }
        self.shared.uses.begin(grants.iter().map(|(grant, _)| grant));
        let version = self.shared.published.add(grants);
        self.clear_journal();
        Ok(version)
    }

    /// Ends grants that were recorded but could not be created. `noted` is `true` if the journal already contains
    /// their terminations.
    fn terminate_lost(&mut self, lost: Vec<PendingTermination>, is_in_journal: bool) {
        self.shared.published.add_terminations(&lost);
        let pending =
            lost.into_iter().map(|ending| Pending { ending, is_in_journal, recorded: false, notify: None });
        self.pending.extend(pending);
        self.clear_journal();
    }

    fn end(&mut self, ending: PendingTermination, notify: Option<oneshot::Sender<Stored>>) {
        let mut pending = Pending { ending, is_in_journal: false, recorded: false, notify };
        pending.is_in_journal = self.write_to_journal(&pending.ending);
        self.pending.push(pending);
    }

    fn write_to_journal(&mut self, ending: &PendingTermination) -> bool {
        let is_in_journal = self.journal.append(&[JournalEntry::of(ending)]);
        if let Err(problem) = &is_in_journal {
            tracing::error!(%problem, grant = ending.id, "failed to write the end of a grant to the journal");
        }
        is_in_journal.is_ok()
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
        let ended =
            |pending: &Pending| StoredTermination { why: pending.ending.why, at_ms: pending.ending.at_ms };
        let rows: Vec<(&str, StoredTermination)> =
            all.iter().map(|p| (p.ending.id.as_str(), ended(p))).collect();
        let stored = self.store.end(&rows).map_err(|problem| problem.to_string());
        for pending in &mut all {
            let not_recorded = trouble.clone().filter(|_| !pending.recorded);
            pending.ending.trouble = not_recorded.or_else(|| stored.clone().err());
            if pending.ending.trouble.is_some() {
                pending.is_in_journal =
                    pending.is_in_journal || stored.is_ok() || self.write_to_journal(&pending.ending);
            }
        }
        let (mut complete, waiting): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|pending| pending.ending.trouble.is_none());
        self.pending = waiting;
        // Reports the problem first, so that it is listed when callers are notified.
        (self.on_trouble)(self.trouble());
        for pending in complete.iter_mut().chain(&mut self.pending) {
            self.shared
                .published
                .set_termination_error(&pending.ending.id, pending.ending.trouble.as_deref());
            send_result(pending);
        }
        self.clear_journal();
    }

    /// Describes the current problem for the user, or returns `None` if everything is stored.
    fn trouble(&self) -> Option<String> {
        let Some(why) = self.pending.iter().find_map(|pending| pending.ending.trouble.as_deref()) else {
            let why = self.store_error.as_deref()?;
            return Some(format!("Permissions cannot be stored: {why}."));
        };
        let count = self.pending.len();
        let (subject, verb) =
            if count == 1 { ("1 grant".to_owned(), "has") } else { (format!("{count} grants"), "have") };
        let then = if self.pending.iter().all(|pending| pending.is_in_journal) {
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

    fn has_expiring(&self) -> bool {
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
        self.batch_at = (!ends.is_empty()).then(|| Instant::now() + BATCH_DELAY);
        if uses.is_empty() && ends.is_empty() {
            return;
        }
        if let Err(problem) = self.store.store_counts(&uses, &ends) {
            tracing::warn!(%problem, "failed to store uses of grants; trying again later");
            self.set_store_error(Some(problem.to_string()));
            self.shared.uses.not_stored(uses.into_iter().map(|(id, _)| id));
            self.batch_soon();
        }
    }
}

fn send_result(pending: &mut Pending) {
    if let Some(notify) = pending.notify.take() {
        let failed = if pending.is_in_journal { Stored::InJournal } else { Stored::NotStored };
        // Fails if the caller has stopped waiting.
        let _ = notify.send(pending.ending.trouble.clone().map_or(Stored::Complete, failed));
    }
}
