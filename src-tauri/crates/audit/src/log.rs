//! Log that is open for writing.
//!
//! - A task that records an entry writes all queued entries itself, unless another task is already writing and picks
//!   them up. A single entry therefore wakes no other task, and many queued entries become one write. Entries from
//!   [`Audit::note`] are written together with the next recorded entry, or once all runnable tasks have run.
//! - The log file is checked before each write. A log that was removed, replaced or truncated is not continued.
//! - The lock is held only during a write, never across an await or a sync to disk.

use crate::chain::ChainPosition;
use crate::error::AuditError;
use crate::head::HeadFile;
use crate::pending::Pending;
use crate::writer::Writer;
use crate::{Entry, LogOptions, retention, search};
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, oneshot, watch};

/// Delay after which written entries are synced to disk, except for the user's decisions, which are synced at once. A
/// power failure can lose the entries written within this time, but calls never wait for the disk.
const SYNC_DELAY: Duration = Duration::from_millis(200);

/// Interval between checks for entries that exceed the retention time.
const RETENTION_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Minimum interval between updates of the search index.
const INDEX_INTERVAL: Duration = Duration::from_secs(5);

/// Number of new entries per [`INDEX_INTERVAL`] interval from which the index is not updated. Updating the index takes
/// more CPU time than writing the log, and a busy session needs that time for its calls.
const BUSY_ENTRIES: u64 = 1000;

/// Handle of an open log. Clones share the log.
#[derive(Debug, Clone)]
pub struct Audit(Arc<Shared>);

struct Shared {
    queue: Mutex<Vec<(Pending, Done)>>,
    owned: Mutex<Owned>,
    /// Writer of the head. Locked before the sync and always before `owned`, so heads are written in order, one at
    /// a time.
    head: Mutex<Option<HeadFile>>,
    opened_at: ChainPosition,
    unknown_end: Option<String>,
    /// Notified when an entry has been noted but may not be written yet.
    noted: Arc<Notify>,
    /// Notified when entries have been written but may not be synced yet.
    unsynced: Arc<Notify>,
    /// Notified when entries have been synced but may not be in the search index yet.
    appended: Arc<Notify>,
    /// Position up to which entries are on disk.
    synced: watch::Sender<ChainPosition>,
}

/// Sender for the task that is waiting for the entry to be written; `None` for a noted entry.
type Done = Option<oneshot::Sender<Result<u64, AuditError>>>;

/// State protected by the lock.
struct Owned {
    writer: Writer,
    report_error: Box<dyn FnMut(Option<String>) + Send>,
    is_synced: bool,
}

impl Audit {
    /// Opens the log in `dir`, creating it if necessary, and removes an incomplete last line. Calls `report_error` with
    /// each write error, and with `None` once writing succeeds again.
    ///
    /// # Errors
    /// Returns [`AuditError`] if the log is unreadable, invalid or not writable.
    pub fn open(
        dir: &Path,
        report_error: impl FnMut(Option<String>) + Send + 'static,
    ) -> Result<Self, AuditError> {
        Self::open_with(LogOptions::new(dir), report_error)
    }

    /// Opens a log like [`Audit::open`], with explicit settings.
    ///
    /// # Errors
    /// Returns the same errors as [`Audit::open`].
    pub fn open_with(
        options: LogOptions,
        report_error: impl FnMut(Option<String>) + Send + 'static,
    ) -> Result<Self, AuditError> {
        let mut writer = Writer::open(options)?;
        let head = Mutex::new(writer.take_head());
        let (opened_at, unknown_end) = (writer.opened_at().clone(), writer.unknown_end().map(str::to_owned));
        let [noted, unsynced, appended] = [(); 3].map(|()| Arc::new(Notify::new()));
        let synced = watch::Sender::new(writer.written().clone());
        let owned = Owned { writer, report_error: Box::new(report_error), is_synced: true };
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            owned: Mutex::new(owned),
            head,
            opened_at,
            unknown_end,
            noted: noted.clone(),
            unsynced: unsynced.clone(),
            appended: appended.clone(),
            synced,
        });
        let weak = Arc::downgrade(&shared);
        tokio::spawn(write_noted(weak.clone(), noted));
        tokio::spawn(sync_after_delay(weak.clone(), unsynced));
        tokio::spawn(update_index(weak.clone(), appended));
        tokio::spawn(remove_old(weak));
        Ok(Self(shared))
    }

    /// Writes an entry and returns its sequence number.
    ///
    /// # Errors
    /// Returns [`AuditError`] if the entry was not recorded. The caller must then not carry out the decision.
    pub async fn record(&self, entry: Entry) -> Result<u64, AuditError> {
        self.record_all(vec![Pending::new(entry)?]).await
    }

    /// Writes either all of the entries or none and returns the sequence number of the first.
    ///
    /// # Errors
    /// Returns the same errors as [`Audit::record`].
    pub async fn record_all(&self, entries: Vec<Pending>) -> Result<u64, AuditError> {
        let later = entries.len().saturating_sub(1) as u64;
        let (done, written) = oneshot::channel();
        self.0.enqueue(entries, done);
        written.await.map_err(|_| AuditError::Closed)?.map(|last| last - later)
    }

    /// Queues an entry about something that has already happened and returns without waiting. A write failure
    /// is reported through `report_error`.
    ///
    /// # Errors
    /// Returns [`AuditError`] if the entry cannot be serialized.
    pub fn note(&self, entry: Entry) -> Result<(), AuditError> {
        lock(&self.0.queue).push((Pending::new(entry)?, None));
        self.0.noted.notify_one();
        Ok(())
    }

    /// Returns the position at which the log was opened.
    #[must_use]
    pub fn opened_at(&self) -> &ChainPosition {
        &self.0.opened_at
    }

    /// Returns the reason entries may be missing from the end of the opened log, as a sentence. Returns `None` if no
    /// entries can be missing.
    #[must_use]
    pub fn unknown_end(&self) -> Option<&str> {
        self.0.unknown_end.as_deref()
    }

    /// Returns the current position, and an error if another process removed or changed the log file.
    pub fn status(&self) -> (ChainPosition, Result<(), AuditError>) {
        self.0.with_owned(|owned| {
            let unchanged = owned.writer.check_unchanged();
            if let Err(problem) = &unchanged {
                (owned.report_error)(Some(every_call_is_denied(problem)));
            }
            (owned.writer.written().clone(), unchanged)
        })
    }

    /// Subscribes to the position up to which entries are on disk and survive a power failure.
    #[must_use]
    pub fn synced(&self) -> watch::Receiver<ChainPosition> {
        self.0.synced.subscribe()
    }

    /// Syncs all written entries, updates the head, and returns the position up to which entries are on disk. If
    /// syncing fails, this position and the head lag behind the log. A head that lags behind is valid.
    pub async fn flush(&self) -> ChainPosition {
        let shared = self.0.clone();
        // This fails only while the runtime is shutting down.
        let _ = tokio::task::spawn_blocking(move || shared.sync()).await;
        self.0.synced.borrow().clone()
    }

    /// Returns the location and retention settings.
    #[must_use]
    pub fn options(&self) -> LogOptions {
        self.0.with_owned(|owned| owned.writer.options().clone())
    }
}

impl Shared {
    /// Writes the queued entries, runs `with` under the lock, and then writes the entries that were queued in the
    /// meantime.
    fn with_owned<T>(&self, with: impl FnOnce(&mut Owned) -> T) -> T {
        self.write_queue();
        let done = with(&mut lock(&self.owned));
        self.write_queue();
        done
    }

    /// Queues entries. `done` receives the last entry's result. This result applies to all of the entries.
    fn enqueue(&self, mut entries: Vec<Pending>, done: oneshot::Sender<Result<u64, AuditError>>) {
        let is_user_decision = entries.iter().any(|entry| entry.is_user_decision);
        let Some(mut last) = entries.pop() else { return };
        last.is_user_decision = is_user_decision;
        let mut queue = lock(&self.queue);
        queue.extend(entries.into_iter().map(|entry| (entry, None)));
        queue.push((last, Some(done)));
        drop(queue);
        self.write_queue();
    }

    fn write_queue(&self) {
        while !lock(&self.queue).is_empty() {
            let mut owned = match self.owned.try_lock() {
                Ok(owned) => owned,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // The task that holds the lock checks the queue again after releasing it.
                Err(TryLockError::WouldBlock) => return,
            };
            let batch = std::mem::take(&mut *lock(&self.queue));
            self.write(&mut owned, batch);
        }
    }

    fn write(&self, owned: &mut Owned, batch: Vec<(Pending, Done)>) {
        if batch.is_empty() {
            return;
        }
        let (entries, done): (Vec<Pending>, Vec<Done>) = batch.into_iter().unzip();
        let written = owned.writer.append(&entries);
        (owned.report_error)(written.as_ref().err().map(every_call_is_denied));
        let first = match written {
            Ok(first) => first,
            Err(problem) => {
                // Ignores the error, because it means only that the waiting task was cancelled.
                done.into_iter().flatten().for_each(|done| drop(done.send(Err(problem.clone()))));
                return;
            }
        };
        if std::mem::take(&mut owned.is_synced) {
            self.unsynced.notify_one();
        }
        let mut user_decisions = Vec::new();
        for ((entry, done), number) in entries.into_iter().zip(done).zip(first..) {
            match done {
                Some(done) if entry.is_user_decision => user_decisions.push((done, number)),
                // Ignores the error, because it means only that the waiting task was cancelled.
                Some(done) => drop(done.send(Ok(number))),
                None => {}
            }
        }
        if !user_decisions.is_empty() {
            let files = owned.writer.unsynced().map_err(|e| AuditError::write(&e));
            // Other tasks can write while this batch is being synced.
            tokio::task::spawn_blocking(move || {
                let sync_result = files.and_then(|files| sync_files(&files));
                // Ignores the error, because it means only that the waiting task was cancelled.
                user_decisions
                    .into_iter()
                    .for_each(|(done, number)| drop(done.send(sync_result.clone().map(|()| number))));
            });
        }
    }

    /// Syncs the entries written so far and updates the head.
    fn sync(&self) {
        let mut head = lock(&self.head);
        let (files, written) = self.with_owned(|owned| {
            owned.is_synced = true;
            (owned.writer.unsynced(), owned.writer.written().clone())
        });
        if let Ok(files) = files
            && sync_files(&files).is_ok()
        {
            self.with_owned(|owned| owned.writer.synced(&files));
            if let Some(head) = &mut *head {
                // If this fails, the head is older than the log but still valid. The next write to the log reports a
                // full disk.
                let _ = head.write(&written);
            }
            self.synced.send_replace(written);
        }
        drop(head);
        self.appended.notify_one();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.write_queue();
        if !lock(&self.owned).is_synced {
            self.sync();
        }
        // Wakes the background tasks, which then exit.
        self.noted.notify_one();
        self.unsynced.notify_one();
        self.appended.notify_one();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// Background task that writes noted entries, unless a recorded entry has included them.
async fn write_noted(log: Weak<Shared>, noted: Arc<Notify>) {
    loop {
        noted.notified().await;
        // Lets tasks that are about to record or note an entry run first, so that one write includes their entries.
        tokio::task::yield_now().await;
        let Some(log) = log.upgrade() else { return };
        log.write_queue();
    }
}

async fn sync_after_delay(log: Weak<Shared>, unsynced: Arc<Notify>) {
    loop {
        unsynced.notified().await;
        tokio::time::sleep(SYNC_DELAY).await;
        let Some(log) = log.upgrade() else { return };
        // This fails only while the runtime is shutting down.
        let _ = tokio::task::spawn_blocking(move || log.sync()).await;
    }
}

/// Background task that updates the search index while few entries are being written.
async fn update_index(log: Weak<Shared>, appended: Arc<Notify>) {
    let read_position = || {
        let at = |owned: &mut Owned| (owned.writer.written().entries, owned.writer.options().dir.clone());
        log.upgrade().map(|log| log.with_owned(at))
    };
    loop {
        appended.notified().await;
        let Some((mut entries, dir)) = read_position() else { return };
        loop {
            tokio::time::sleep(INDEX_INTERVAL).await;
            let Some((now, _)) = read_position() else { return };
            if now - std::mem::replace(&mut entries, now) < BUSY_ENTRIES {
                break;
            }
        }
        // A failure is harmless: the next search updates the index or, without it, reads every line.
        let _ = tokio::task::spawn_blocking(move || search::catch_up(&dir)).await;
    }
}

/// Background task that removes expired entries, immediately and then at intervals.
async fn remove_old(log: Weak<Shared>) {
    while let Some(audit) = log.upgrade().map(Audit) {
        let options = audit.options();
        // A failed removal is retried at the next interval.
        let _ = retention::remove_old(&options, |entry| audit.record(entry)).await;
        drop(audit);
        tokio::time::sleep(RETENTION_INTERVAL).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn every_call_is_denied(problem: &AuditError) -> String {
    format!("Every call is denied, because {problem}.")
}

/// Syncs the contents of files to disk.
fn sync_files(files: &[Arc<File>]) -> Result<(), AuditError> {
    files.iter().try_for_each(|file| file.sync_data()).map_err(|e| AuditError::write(&e))
}

#[cfg(test)]
mod tests;
