//! The handle of a log that is written to.
//!
//! - One task owns the file, and looks before each entry whether it still has its name and its length: a log that was
//!   removed, replaced or cut while it was written is not gone on with.

use crate::Entry;
use crate::verify::Written;
use crate::writer::{AuditError, LOG_NAME, Writer};
use std::fs::File;
use std::path::Path;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// The delay after which an entry that no person decided is made durable: a power cut can lose that much, and a call never
/// waits for the disk.
const FLUSH: Duration = Duration::from_millis(200);

/// The number of entries that may that wait for the writer.
const QUEUE: usize = 256;

/// A handle to the audit log.
#[derive(Debug, Clone)]
pub struct Audit(mpsc::Sender<Command>);

/// A command to the file's owner.
enum Command {
    Record { entry: Box<Entry>, done: oneshot::Sender<Result<u64, AuditError>> },
    Standing(oneshot::Sender<(Written, Result<(), AuditError>)>),
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
        let writer = Writer::open(&dir.join(LOG_NAME))?;
        let (send, receive) = mpsc::channel(QUEUE);
        tokio::spawn(own(writer, receive, trouble));
        Ok(Self(send))
    }

    /// Puts an entry on record; its sequence number comes when it is written.
    ///
    /// # Errors
    /// [`AuditError`]: it is not on record, and what it speaks of must not happen.
    pub async fn record(&self, entry: Entry) -> Result<u64, AuditError> {
        let (done, written) = oneshot::channel();
        self.0.send(Command::Record { entry: Box::new(entry), done }).await.map_err(|_| AuditError::Ended)?;
        written.await.map_err(|_| AuditError::Ended)?
    }

    /// The record so far, and whether the log is still the one that it was written to.
    ///
    /// # Errors
    /// [`AuditError::Ended`].
    pub async fn standing(&self) -> Result<(Written, Result<(), AuditError>), AuditError> {
        let (done, standing) = oneshot::channel();
        self.0.send(Command::Standing(done)).await.map_err(|_| AuditError::Ended)?;
        standing.await.map_err(|_| AuditError::Ended)
    }
}

async fn own(
    mut writer: Writer,
    mut commands: mpsc::Receiver<Command>,
    mut trouble: impl FnMut(Option<String>),
) {
    let mut flush_at = None;
    loop {
        let command = tokio::select! {
            command = commands.recv() => command,
            () = until(flush_at) => {
                flush_at = None;
                let file = writer.file();
                tokio::task::spawn_blocking(move || durable(file));
                continue;
            }
        };
        let (entry, done) = match command {
            None => break,
            Some(Command::Record { entry, done }) => (entry, done),
            Some(Command::Standing(done)) => {
                let stands = writer.stands();
                if let Err(problem) = &stands {
                    trouble(Some(every_call_is_denied(problem)));
                }
                // Who asked may be gone.
                let _ = done.send((writer.written(), stands));
                continue;
            }
        };
        let persons = entry.event.is_a_persons();
        let written = writer.append(*entry);
        trouble(written.as_ref().err().map(every_call_is_denied));
        if persons && written.is_ok() {
            let file = writer.file();
            // Others may be written meanwhile. Nobody waits any more when the call was cancelled; it is on record all
            // the same.
            tokio::task::spawn_blocking(move || drop(done.send(durable(file).and(written))));
        } else {
            flush_at = flush_at.or(Some(Instant::now() + FLUSH));
            // As above.
            let _ = done.send(written);
        }
    }
}

fn every_call_is_denied(problem: &AuditError) -> String {
    format!("Every call is denied, because {problem}.")
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Makes what is written survive a power cut.
fn durable(file: std::io::Result<File>) -> Result<(), AuditError> {
    file.and_then(|f| f.sync_data()).map_err(|e| AuditError::write(&e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, check, check_written};

    #[tokio::test]
    async fn entries_are_chained_across_restarts_and_a_torn_line_is_mended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG_NAME);
        for _ in 0..2 {
            let audit = Audit::open(dir.path(), |_| ()).unwrap();
            audit.record(Entry::new(Event::Session, "began")).await.unwrap();
            audit.record(Entry::new(Event::Answer, "a person said yes")).await.unwrap();
        }
        let mut torn = std::fs::read(&path).unwrap();
        torn.extend_from_slice(b"{\"seq\":5,\"ha");
        std::fs::write(&path, torn).unwrap();
        assert!(!check(&path).unwrap().intact());
        let audit = Audit::open(dir.path(), |_| ()).unwrap();
        assert_eq!(audit.record(Entry::new(Event::Session, "after the crash")).await.unwrap(), 6);
        let checked = check(&path).unwrap();
        assert_eq!((checked.problem, checked.entries), (None, 6));
    }

    #[tokio::test]
    async fn any_edit_shows_and_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG_NAME);
        let audit = Audit::open(dir.path(), |_| ()).unwrap();
        for n in 0..5 {
            audit.record(Entry::new(Event::Session, format!("entry {n}"))).await.unwrap();
        }
        let good = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = good.lines().collect();
        let problem = |text: String| {
            std::fs::write(&path, text).unwrap();
            check(&path).unwrap().problem.unwrap()
        };
        assert_eq!(
            problem(good.replace("entry 2", "entry X")),
            "line 3: its content does not match its hash"
        );
        let without = [&lines[..2], &lines[3..]].concat().join("\n") + "\n";
        assert_eq!(problem(without), "line 3: it does not follow the line before it");
        let swapped = [lines[1], lines[0], lines[2]].join("\n") + "\n";
        assert_eq!(problem(swapped), "line 1: it does not follow the line before it");
        assert_eq!(problem("{}\n".to_owned()), "line 1: it has no hash");
    }

    #[tokio::test]
    async fn a_chain_that_holds_is_not_the_one_that_was_written_if_it_ends_early_or_was_made_anew() {
        let log_of = async |words: &[&str]| {
            let dir = tempfile::tempdir().unwrap();
            let audit = Audit::open(dir.path(), |_| ()).unwrap();
            for word in words {
                audit.record(Entry::new(Event::Session, *word)).await.unwrap();
            }
            (dir, audit.standing().await.unwrap().0)
        };
        let [(dir, written), (short, _), (other, _)] =
            [log_of(&["a", "b", "c"]).await, log_of(&["a", "b"]).await, log_of(&["a", "X", "c"]).await];
        let problem = |dir: &tempfile::TempDir, written| {
            check_written(&dir.path().join(LOG_NAME), written).unwrap().problem
        };
        assert_eq!(problem(&dir, &written), None);
        assert_eq!(problem(&short, &written), Some("it ends after 2 of 3 entries".into()));
        assert_eq!(problem(&other, &written), Some("line 3: it is not the one that was written".into()));
        // More may have been written meanwhile.
        assert_eq!(problem(&dir, &Written { entries: 0, ..log_of(&[]).await.1 }), None);
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit(mpsc::channel(1).0);
        assert!(matches!(audit.record(Entry::new(Event::Session, "x")).await, Err(AuditError::Ended)));
        assert!(Audit::open(&dir.path().join("missing"), |_| ()).is_err());
        // The device that is always full.
        let mut writer = Writer::open(Path::new("/dev/full")).unwrap();
        let error = writer.append(Entry::new(Event::Decision, "x")).unwrap_err();
        assert!(error.to_string().contains("No space left"), "{error}");
    }
}
