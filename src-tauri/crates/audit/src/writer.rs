//! Appending to the log.

use crate::verify::{Checked, Written, check};
use crate::{Entry, Event, chain};
use ironcurtain_paths::bounded_read;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Name of the log in the audit directory.
pub const LOG_NAME: &str = "audit.jsonl";

/// Why something is not on record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// The log cannot be written.
    #[error("the audit log cannot be written: {0}")]
    Write(String),
    /// The log cannot be read, or does not hold.
    #[error("the audit log `{path}` cannot be continued: {problem}; move it away to begin a new one")]
    Broken {
        /// The log.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// The log is not the one that was written.
    #[error(
        "the audit log `{path}` {what} while IronCurtain ran: put it back, or start IronCurtain again to begin a new one"
    )]
    Lost {
        /// The log.
        path: PathBuf,
        /// The fate of the log, in words.
        what: &'static str,
    },
    /// The trusted process is ending.
    #[error("the audit log is closed: the trusted process is ending")]
    Ended,
}

impl AuditError {
    pub(super) fn write(error: &io::Error) -> Self {
        Self::Write(error.to_string())
    }
}

/// The one writer of a log.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    /// The log is a regular file, so that it can be told whether it is still the one that was written.
    regular: bool,
    length: u64,
    entries: u64,
    head: String,
    /// There may be half a line after `length`.
    torn: bool,
}

impl Writer {
    /// Opens the log and continues its chain. A line that a crash tore is cut off, and that is put on record.
    ///
    /// # Errors
    /// [`AuditError::Broken`], when the chain does not hold: it is never continued over an edit.
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        let broken = |problem: String| AuditError::Broken { path: path.to_path_buf(), problem };
        let file = bounded_read::open_own(path).map_err(|e| broken(e.to_string()))?;
        let regular = file.metadata().map_err(|e| broken(e.to_string()))?.is_file();
        let checked =
            if regular { check(path).map_err(|e| broken(e.to_string()))? } else { Checked::empty() };
        let mut writer = Self {
            path: path.to_path_buf(),
            file,
            regular,
            length: checked.length,
            entries: checked.entries,
            head: checked.head,
            torn: false,
        };
        match checked.problem {
            None => {}
            Some(_) if checked.torn => writer.mend()?,
            Some(problem) => return Err(broken(problem)),
        }
        Ok(writer)
    }

    /// Writes one entry, cut where it is too long, and gives its sequence number. After an error nothing of it is in the log.
    ///
    /// # Errors
    /// [`AuditError::Write`], [`AuditError::Lost`].
    pub fn append(&mut self, mut entry: Entry) -> Result<u64, AuditError> {
        self.stands()?;
        entry.shorten();
        entry.seq = self.entries + 1;
        entry.timestamp = now_ms();
        entry.prev.clone_from(&self.head);
        let text = serde_json::to_string(&entry).map_err(|e| AuditError::Write(e.to_string()))?;
        let (line, hash) = chain::close(&text);
        // Half a line would break the chain for whatever comes after it.
        if self.torn {
            self.file.set_len(self.length).map_err(|e| AuditError::write(&e))?;
            self.torn = false;
        }
        if let Err(e) = self.file.write_all(line.as_bytes()) {
            self.torn = self.file.set_len(self.length).is_err();
            return Err(AuditError::write(&e));
        }
        self.length += line.len() as u64;
        self.entries = entry.seq;
        self.head = hash;
        Ok(entry.seq)
    }

    /// Checks that the log is still there, under its name, as long as it was written.
    ///
    /// # Errors
    /// [`AuditError::Lost`].
    pub fn stands(&self) -> Result<(), AuditError> {
        let lost = |what| Err(AuditError::Lost { path: self.path.clone(), what });
        if !self.regular {
            return Ok(());
        }
        let ours = self.file.metadata().map_err(|e| AuditError::write(&e))?;
        match std::fs::metadata(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return lost("was removed"),
            Err(e) => return Err(AuditError::write(&e)),
            Ok(named) if (named.dev(), named.ino()) != (ours.dev(), ours.ino()) => {
                return lost("was replaced");
            }
            Ok(_) => {}
        }
        // Half a line of ours may be at its end.
        if ours.len() < self.length || (ours.len() > self.length && !self.torn) {
            return lost("was changed by another program");
        }
        Ok(())
    }

    /// The number of entries written so far, and the hash of the last.
    pub fn written(&self) -> Written {
        Written { entries: self.entries, head: self.head.clone() }
    }

    /// The file, for making it durable beside further writes.
    pub(super) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    fn mend(&mut self) -> Result<(), AuditError> {
        self.file.set_len(self.length).map_err(|e| AuditError::write(&e))?;
        let summary = "the last line of the log was cut off by a crash and was removed";
        self.append(Entry::new(Event::Daemon, summary)).map(|_| ())
    }
}

/// Milliseconds since the Unix epoch.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
