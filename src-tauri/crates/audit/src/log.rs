//! Handle of a log that is open for writing.
//!
//! - A task that records an entry writes all pending entries, unless another task is already writing; then that task
//!   writes them. A single entry therefore wakes no other task, and many pending entries become one write. Noted
//!   entries are written with the next recorded entry, or separately once all runnable tasks have run.
//! - The log file is checked before each write. A log that was removed, replaced or truncated is not continued.
//! - The lock is held only during the write, never across an await or while waiting for the disk.

use crate::chain::Written;
use crate::error::AuditError;
use crate::head::HeadFile;
use crate::pending::Pending;
use crate::writer::Writer;
use crate::{Entry, Keeping, retention, search};
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// Delay after which an entry not decided by the user is synced to disk. A power failure can lose
/// that much, and calls never wait for the disk.
const FLUSH: Duration = Duration::from_millis(200);

/// Interval between checks for entries that are too old.
const AGE: Duration = Duration::from_secs(60 * 60);

/// Minimum interval between updates of the search index.
const INDEX: Duration = Duration::from_secs(5);

/// Number of entries per [`INDEX`] interval at which the index update is postponed. Updating takes
/// longer than writing the log, and at that rate calls need the CPU time.
const BUSY: u64 = 1000;

/// A handle to the audit log.
#[derive(Debug, Clone)]
pub struct Audit(Arc<Shared>);

struct Shared {
    waiting: Mutex<Vec<(Pending, Done)>>,
    owned: Mutex<Owned>,
    /// Writer of the head. Locked before the sync, so that heads are written one at a time and in
    /// order. Always locked before `owned`.
    head: Mutex<Option<HeadFile>>,
    opened_at: Written,
    unknown_end: Option<String>,
    /// Notified when an entry was noted and may still be unwritten.
    noted: Arc<Notify>,
    /// Notified when entries were written that may not be synced.
    unsynced: Arc<Notify>,
    /// Notified when entries were synced that may be missing from the search index.
    grown: Arc<Notify>,
}

/// Channel to the task that waits for an entry; `None` for a noted entry.
type Done = Option<oneshot::Sender<Result<u64, AuditError>>>;

/// State under the lock.
struct Owned {
    writer: Writer,
    trouble: Box<dyn FnMut(Option<String>) + Send>,
    clean: bool,
}

impl Audit {
    /// Opens the log in `dir` and removes a last line torn by a crash. `trouble` receives each
    /// problem with writing the log, and `None` when it is resolved.
    ///
    /// # Errors
    /// [`AuditError`], if the log is unreadable or not writable.
    pub fn open(
        dir: &Path,
        trouble: impl FnMut(Option<String>) + Send + 'static,
    ) -> Result<Self, AuditError> {
        Self::keep(Keeping::new(dir), trouble)
    }

    /// Opens the log like [`Audit::open`], with other settings.
    ///
    /// # Errors
    /// [`AuditError`].
    pub fn keep(
        keeping: Keeping,
        trouble: impl FnMut(Option<String>) + Send + 'static,
    ) -> Result<Self, AuditError> {
        let mut writer = Writer::open(keeping)?;
        let head = Mutex::new(writer.take_head());
        let (opened_at, unknown_end) = (writer.opened_at().clone(), writer.unknown_end().map(str::to_owned));
        let [noted, unsynced, grown] = [(); 3].map(|()| Arc::new(Notify::new()));
        let owned = Owned { writer, trouble: Box::new(trouble), clean: true };
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            owned: Mutex::new(owned),
            head,
            opened_at,
            unknown_end,
            noted: noted.clone(),
            unsynced: unsynced.clone(),
            grown: grown.clone(),
        });
        let weak = Arc::downgrade(&shared);
        tokio::spawn(write_noted(weak.clone(), noted));
        tokio::spawn(flush(weak.clone(), unsynced));
        tokio::spawn(index(weak.clone(), grown));
        tokio::spawn(remove_old(weak));
        Ok(Self(shared))
    }

    /// Records an entry and returns its sequence number once it is written.
    ///
    /// # Errors
    /// [`AuditError`]; the entry is then not recorded, and the caller must not carry out its decision.
    pub async fn record(&self, entry: Entry) -> Result<u64, AuditError> {
        self.record_all(vec![Pending::of(entry)?]).await
    }

    /// Records entries in one write, all or none, and returns the sequence number of the first.
    ///
    /// # Errors
    /// Those of [`Audit::record`].
    pub async fn record_all(&self, entries: Vec<Pending>) -> Result<u64, AuditError> {
        let later = entries.len().saturating_sub(1) as u64;
        let (done, written) = oneshot::channel();
        self.0.take(entries, done);
        written.await.map_err(|_| AuditError::Ended)?.map(|last| last - later)
    }

    /// Records soon, without waiting, an entry about something that has already happened. A write
    /// failure is reported as trouble with the log.
    ///
    /// # Errors
    /// [`AuditError`], if the entry cannot be serialized.
    pub fn note(&self, entry: Entry) -> Result<(), AuditError> {
        lock(&self.0.waiting).push((Pending::of(entry)?, None));
        self.0.noted.notify_one();
        Ok(())
    }

    /// Returns the position at which the log was opened, before anything was recorded.
    #[must_use]
    pub fn opened_at(&self) -> &Written {
        &self.0.opened_at
    }

    /// Returns why entries may be missing from the end of the opened log, as a sentence.
    #[must_use]
    pub fn unknown_end(&self) -> Option<&str> {
        self.0.unknown_end.as_deref()
    }

    /// Returns the current position, and an error if the log file was removed or changed by another process.
    pub fn standing(&self) -> (Written, Result<(), AuditError>) {
        self.0.with_owned(|owned| {
            let unchanged = owned.writer.check_unchanged();
            if let Err(problem) = &unchanged {
                (owned.trouble)(Some(every_call_is_denied(problem)));
            }
            (owned.writer.written().clone(), unchanged)
        })
    }

    /// Syncs everything written and updates the head, for a clean shutdown.
    pub async fn settle(&self) {
        let shared = self.0.clone();
        // If the task cannot run, the head is a little older.
        let _ = tokio::task::spawn_blocking(move || shared.sync()).await;
    }

    /// Returns the location and retention settings.
    #[must_use]
    pub fn keeping(&self) -> Keeping {
        self.0.with_owned(|owned| owned.writer.keeping().clone())
    }
}

impl Shared {
    /// Runs `with` on the writer after writing all pending entries, then writes entries that arrived during that time.
    fn with_owned<T>(&self, with: impl FnOnce(&mut Owned) -> T) -> T {
        self.write_waiting();
        let done = with(&mut lock(&self.owned));
        self.write_waiting();
        done
    }

    /// Queues entries; the result of the last one is reported for all of them.
    fn take(&self, mut entries: Vec<Pending>, done: oneshot::Sender<Result<u64, AuditError>>) {
        let persons = entries.iter().any(|entry| entry.persons);
        let Some(mut last) = entries.pop() else { return };
        last.persons = persons;
        let mut waiting = lock(&self.waiting);
        waiting.extend(entries.into_iter().map(|entry| (entry, None)));
        waiting.push((last, Some(done)));
        drop(waiting);
        self.write_waiting();
    }

    fn write_waiting(&self) {
        while !lock(&self.waiting).is_empty() {
            let mut owned = match self.owned.try_lock() {
                Ok(owned) => owned,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // The task that holds the lock checks the queue again afterwards.
                Err(TryLockError::WouldBlock) => return,
            };
            let batch = std::mem::take(&mut *lock(&self.waiting));
            self.write(&mut owned, batch);
        }
    }

    fn write(&self, owned: &mut Owned, batch: Vec<(Pending, Done)>) {
        if batch.is_empty() {
            return;
        }
        let (entries, done): (Vec<Pending>, Vec<Done>) = batch.into_iter().unzip();
        let written = owned.writer.append(&entries);
        (owned.trouble)(written.as_ref().err().map(every_call_is_denied));
        let first = match written {
            Ok(first) => first,
            Err(problem) => {
                // Sending fails if the caller was cancelled.
                done.into_iter().flatten().for_each(|done| drop(done.send(Err(problem.clone()))));
                return;
            }
        };
        if std::mem::take(&mut owned.clean) {
            self.unsynced.notify_one();
        }
        let mut persons = Vec::new();
        for ((entry, done), number) in entries.into_iter().zip(done).zip(first..) {
            match done {
                Some(done) if entry.persons => persons.push((done, number)),
                // Sending fails if the caller was cancelled.
                Some(done) => drop(done.send(Ok(number))),
                None => {}
            }
        }
        if !persons.is_empty() {
            let files = owned.writer.unsynced().map_err(|e| AuditError::write(&e));
            // Others can write during the sync.
            tokio::task::spawn_blocking(move || {
                let durable = files.and_then(|files| durable(&files));
                // Sending fails if the caller was cancelled.
                persons
                    .into_iter()
                    .for_each(|(done, number)| drop(done.send(durable.clone().map(|()| number))));
            });
        }
    }

    /// Syncs what was written so far and makes it the head.
    fn sync(&self) {
        let mut head = lock(&self.head);
        let (files, written) = self.with_owned(|owned| {
            owned.clean = true;
            (owned.writer.unsynced(), owned.writer.written().clone())
        });
        if let Ok(files) = files
            && durable(&files).is_ok()
        {
            self.with_owned(|owned| owned.writer.synced(&files));
            if let Some(head) = &mut *head {
                // The next entry reports a full disk; the head stays older than the log.
                let _ = head.write(&written);
            }
        }
        drop(head);
        self.grown.notify_one();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.write_waiting();
        if !lock(&self.owned).clean {
            self.sync();
        }
        // Wakes the waiting task, which then stops.
        self.noted.notify_one();
        self.unsynced.notify_one();
        self.grown.notify_one();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// Writes noted entries together, unless a later recorded entry has already included them.
async fn write_noted(log: Weak<Shared>, noted: Arc<Notify>) {
    loop {
        noted.notified().await;
        // Let tasks that are about to note or record entries run first, so that this write includes their entries.
        tokio::task::yield_now().await;
        let Some(log) = log.upgrade() else { return };
        log.write_waiting();
    }
}

async fn flush(log: Weak<Shared>, unsynced: Arc<Notify>) {
    loop {
        unsynced.notified().await;
        tokio::time::sleep(FLUSH).await;
        let Some(log) = log.upgrade() else { return };
        // If the task cannot run, the trusted process is shutting down.
        let _ = tokio::task::spawn_blocking(move || log.sync()).await;
    }
}

/// Updates the search index whenever few entries are written.
async fn index(log: Weak<Shared>, grown: Arc<Notify>) {
    let look = || {
        let at = |owned: &mut Owned| (owned.writer.written().entries, owned.writer.keeping().dir.clone());
        log.upgrade().map(|log| log.with_owned(at))
    };
    loop {
        grown.notified().await;
        let Some((mut entries, dir)) = look() else { return };
        loop {
            tokio::time::sleep(INDEX).await;
            let Some((now, _)) = look() else { return };
            if now - std::mem::replace(&mut entries, now) < BUSY {
                break;
            }
        }
        // A failure is harmless: a search updates the index too, or reads every line.
        let _ = tokio::task::spawn_blocking(move || search::catch_up(&dir)).await;
    }
}

/// Removes old entries, now and at intervals, while the log is open.
async fn remove_old(log: Weak<Shared>) {
    while let Some(audit) = log.upgrade().map(Audit) {
        let keeping = audit.keeping();
        // Files that cannot be removed are retried, and `audit verify` names them.
        let _ = retention::remove_old(&keeping, |entry| audit.record(entry)).await;
        drop(audit);
        tokio::time::sleep(AGE).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn every_call_is_denied(problem: &AuditError) -> String {
    format!("Every call is denied, because {problem}.")
}

/// Syncs files to disk.
fn durable(files: &[Arc<File>]) -> Result<(), AuditError> {
    files.iter().try_for_each(|file| file.sync_data()).map_err(|e| AuditError::write(&e))
}

#[cfg(test)]
mod tests;
