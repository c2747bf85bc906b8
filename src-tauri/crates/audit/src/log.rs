//! The handle of a log that is written to.
//!
//! - Whoever has an entry that must be on record writes all that wait, unless somebody else is just doing so: then that one does.
//!   An entry that waits alone is written by its own task, with no other to wake; many that wait together are one write.
//!   What is noted after it happened goes with the next write, or with one of its own as soon as all who could go on have.
//! - Before each write the log is looked at: one that was removed, replaced or cut while it was written is not gone on with.
//! - The lock is held for the write alone, and never while something is awaited. Nothing that takes the time of a disk
//!   is done under it.

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

/// The delay after which an entry that no person decided is made durable: a power cut can lose that much, and a call never
/// waits for the disk.
const FLUSH: Duration = Duration::from_millis(200);

/// The pace at which entries that have become too old are looked for.
const AGE: Duration = Duration::from_secs(60 * 60);

/// The pace at which the index for searching follows at most.
const INDEX: Duration = Duration::from_secs(5);

/// The number of entries in that time from which on the index waits: making it takes longer than writing the log, and calls
/// that come so fast need the time themselves.
const BUSY: u64 = 1000;

/// A handle to the audit log.
#[derive(Debug, Clone)]
pub struct Audit(Arc<Shared>);

struct Shared {
    waiting: Mutex<Vec<(Pending, Done)>>,
    owned: Mutex<Owned>,
    /// The writer of the head, held from before the files are made durable, so that heads are written one at a time and in order.
    /// Taken before `owned`, never after it.
    head: Mutex<Option<HeadFile>>,
    opened_at: Written,
    unknown_end: Option<String>,
    /// Something was noted that nobody may have written.
    noted: Arc<Notify>,
    /// Something was written that may not be on the disk.
    unsynced: Arc<Notify>,
    /// Something is on the disk that may not be in the index for searching.
    grown: Arc<Notify>,
}

/// Whoever waits for an entry to be written; nobody, of one that is noted.
type Done = Option<oneshot::Sender<Result<u64, AuditError>>>;

/// The parts that only one may use at a time.
struct Owned {
    writer: Writer,
    trouble: Box<dyn FnMut(Option<String>) + Send>,
    clean: bool,
}

impl Audit {
    /// Opens the log in `dir`, mending a last line that a crash tore. What is wrong with it is said to `trouble` whenever it is
    /// written, and that nothing is.
    ///
    /// # Errors
    /// [`AuditError`], when the log cannot be read or written.
    pub fn open(
        dir: &Path,
        trouble: impl FnMut(Option<String>) + Send + 'static,
    ) -> Result<Self, AuditError> {
        Self::keep(Keeping::new(dir), trouble)
    }

    /// As [`Audit::open`], for a log that is kept otherwise.
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

    /// Puts an entry on record; its sequence number comes when it is written.
    ///
    /// # Errors
    /// [`AuditError`]: it is not on record, and what it speaks of must not happen.
    pub async fn record(&self, entry: Entry) -> Result<u64, AuditError> {
        self.record_all(vec![Pending::of(entry)?]).await
    }

    /// Puts entries on record in one write, all or none; the sequence number of the first one comes when they are written.
    ///
    /// # Errors
    /// As [`Audit::record`].
    pub async fn record_all(&self, entries: Vec<Pending>) -> Result<u64, AuditError> {
        let later = entries.len().saturating_sub(1) as u64;
        let (done, written) = oneshot::channel();
        self.0.take(entries, done);
        written.await.map_err(|_| AuditError::Ended)?.map(|last| last - later)
    }

    /// Puts an entry on record about what has happened already, soon, and waits for nobody: one that cannot be written is told
    /// as trouble with the log.
    ///
    /// # Errors
    /// [`AuditError`], when it is no entry.
    pub fn note(&self, entry: Entry) -> Result<(), AuditError> {
        lock(&self.0.waiting).push((Pending::of(entry)?, None));
        self.0.noted.notify_one();
        Ok(())
    }

    /// The position at which the log was opened, before anything was recorded.
    #[must_use]
    pub fn opened_at(&self) -> &Written {
        &self.0.opened_at
    }

    /// The reason for which entries may be missing from the end of the log that was opened, as a sentence.
    #[must_use]
    pub fn unknown_end(&self) -> Option<&str> {
        self.0.unknown_end.as_deref()
    }

    /// The record so far, and whether the log is still the one that it was written to.
    pub fn standing(&self) -> (Written, Result<(), AuditError>) {
        self.0.with_owned(|owned| {
            let stands = owned.writer.stands();
            if let Err(problem) = &stands {
                (owned.trouble)(Some(every_call_is_denied(problem)));
            }
            (owned.writer.written().clone(), stands)
        })
    }

    /// Makes all that is written survive a power cut, and known as the newest: for an end in order.
    pub async fn settle(&self) {
        let shared = self.0.clone();
        // Where the task cannot be run, the newest that is known is a little older.
        let _ = tokio::task::spawn_blocking(move || shared.sync()).await;
    }

    /// The place where it is kept.
    #[must_use]
    pub fn keeping(&self) -> Keeping {
        self.0.with_owned(|owned| owned.writer.keeping().clone())
    }
}

impl Shared {
    /// Does something with the writer when all that waits is written, and then what others left to whoever had it.
    fn with_owned<T>(&self, with: impl FnOnce(&mut Owned) -> T) -> T {
        self.write_waiting();
        let done = with(&mut lock(&self.owned));
        self.write_waiting();
        done
    }

    /// Takes entries of which the last one is answered for all.
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
                // Who has it looks again afterwards.
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
                // Nobody waits any more when the call was cancelled; it is on record all the same.
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
                // As above.
                Some(done) => drop(done.send(Ok(number))),
                None => {}
            }
        }
        if !persons.is_empty() {
            let files = owned.writer.unsynced().map_err(|e| AuditError::write(&e));
            // Others may be written meanwhile.
            tokio::task::spawn_blocking(move || {
                let durable = files.and_then(|files| durable(&files));
                // As above.
                persons
                    .into_iter()
                    .for_each(|(done, number)| drop(done.send(durable.clone().map(|()| number))));
            });
        }
    }

    /// Makes what was written so far survive a power cut; then it is what is known as the newest.
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
                // A full disk is told with the next entry; what is known stays older than the log.
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
        // Who waits for more learns that nothing comes.
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

/// Writes what was noted, together as it was noted, where no entry that comes after has taken it along.
async fn write_noted(log: Weak<Shared>, noted: Arc<Notify>) {
    loop {
        noted.notified().await;
        // Others who are about to note or record something go first, and their entries with it.
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
        // Where the task cannot be run, the trusted process is ending.
        let _ = tokio::task::spawn_blocking(move || log.sync()).await;
    }
}

/// Lets the index for searching follow whenever little is written.
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
        // Whoever searches brings it up to date as well, or does without; as above.
        let _ = tokio::task::spawn_blocking(move || search::catch_up(&dir)).await;
    }
}

/// Removes what is too old, now and at its pace, as long as the log is written.
async fn remove_old(log: Weak<Shared>) {
    while let Some(audit) = log.upgrade().map(Audit) {
        let keeping = audit.keeping();
        // What cannot be read or removed is so the next time, too, and `audit verify` names it.
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

/// Makes what is written survive a power cut.
fn durable(files: &[Arc<File>]) -> Result<(), AuditError> {
    files.iter().try_for_each(|file| file.sync_data()).map_err(|e| AuditError::write(&e))
}

#[cfg(test)]
mod tests;
