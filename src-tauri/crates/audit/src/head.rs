//! Head file: identifies the newest entry. It is stored outside the log so that truncating the log or replacing it
//! with an older copy is detected.
//!
//! - INVARIANT: the head is written after its entry is on disk. It may be older than the log but never newer, so a kill
//!   or power failure between the two writes causes no false alarm.
//! - INVARIANT: a [`HeadFile`] never replaces a head with an older one, and never writes to a file that another
//!   process has open.
//! - A process that can write the user's files can change both the log and its head. A mismatch therefore indicates an
//!   accident, or a process that changed only one of them.

use crate::chain::ChainPosition;
use ironcurtain_paths::bounded_read;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Maximum number of names to try for the temporary file. A name is taken only if a killed process left its temporary
/// file.
const MAX_ATTEMPTS: u32 = 1000;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    entries: u64,
    head: String,
}

/// Contents of a head file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownHead {
    /// The newest entry.
    Entry(ChainPosition),
    /// The file does not exist.
    Missing,
    /// The head file is unreadable or invalid. Contains a verb phrase about the file, such as "is empty".
    Damaged(String),
}

impl KnownHead {
    /// Reads a head file.
    #[must_use]
    pub fn read(file: &Path) -> Self {
        match bounded_read::read_text(file) {
            Ok(Some(text)) if text.trim().is_empty() => Self::Damaged("is empty".to_owned()),
            Ok(Some(text)) => match serde_json::from_str(&text) {
                Ok(Head { entries, head }) => Self::Entry(ChainPosition { entries, head }),
                Err(problem) => Self::Damaged(format!("is damaged: {problem}")),
            },
            Ok(None) => Self::Missing,
            Err(problem) => Self::Damaged(format!("cannot be read: {problem}")),
        }
    }

    /// Returns the reason the newest entry is unknown, as a verb phrase about the file. Returns `None` if the entry
    /// is known.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Entry(_) => None,
            Self::Missing => Some("does not exist"),
            Self::Damaged(problem) => Some(problem),
        }
    }
}

/// Writer of the head file. Only one exists per log.
#[derive(Debug)]
pub(super) struct HeadFile {
    path: PathBuf,
    /// Number of entries in the newest head written so far; `None` before the first write.
    newest: Option<u64>,
}

impl HeadFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, newest: None }
    }

    /// Replaces the head, unless the existing one is at least as new.
    ///
    /// # Errors
    /// Returns an error if the write or the rename fails. The previous head then stays in place.
    pub(super) fn write(&mut self, written: &ChainPosition) -> io::Result<()> {
        if self.newest.is_some_and(|newest| newest >= written.entries) {
            return Ok(());
        }
        let text = serde_json::to_string(&Head { entries: written.entries, head: written.head.clone() })?;
        let (temp_path, mut file) = self.new_file()?;
        let replaced = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_data())
            .and_then(|()| std::fs::rename(&temp_path, &self.path));
        if replaced.is_err() {
            // Ignores this error, because the write or rename error is reported instead.
            let _ = std::fs::remove_file(&temp_path);
        }
        replaced?;
        self.newest = Some(written.entries);
        Ok(())
    }

    /// Creates a temporary file, next to the head, that no other process has open.
    fn new_file(&self) -> io::Result<(PathBuf, File)> {
        let folder = self.path.parent().ok_or(io::ErrorKind::NotFound)?;
        for number in 0..MAX_ATTEMPTS {
            let path = folder.join(format!(".ironcurtain-head-{}-{number}", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                opened => return opened.map(|file| (path, file)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(entries: u64) -> ChainPosition {
        ChainPosition { entries, head: format!("head {entries}") }
    }

    #[test]
    fn an_older_head_never_replaces_a_newer_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("head.json");
        assert_eq!(KnownHead::read(&file), KnownHead::Missing);
        let mut head = HeadFile::new(file.clone());
        for (write, known) in [(3, 3), (5, 5), (4, 5), (5, 5), (6, 6)] {
            head.write(&written(write)).unwrap();
            assert_eq!(KnownHead::read(&file), KnownHead::Entry(written(known)));
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_a_killed_process_left_is_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let leftover = dir.path().join(format!(".ironcurtain-head-{}-0", std::process::id()));
        std::fs::write(&leftover, "left").unwrap();
        let file = dir.path().join("head.json");
        HeadFile::new(file.clone()).write(&written(7)).unwrap();
        assert_eq!(KnownHead::read(&file), KnownHead::Entry(written(7)));
        assert_eq!(std::fs::read_to_string(leftover).unwrap(), "left");
    }

    #[test]
    fn an_invalid_head_file_is_damaged_with_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("head.json");
        let one = serde_json::to_string(&Head { entries: 1, head: "x".into() }).unwrap();
        for (text, how) in [
            (String::new(), "is empty"),
            (one.repeat(2), "is damaged: trailing characters"),
            ("\0\0\0".to_owned(), "is damaged: expected value"),
            ("{\"entries\":1}".to_owned(), "is damaged: missing field `head`"),
        ] {
            std::fs::write(&file, &text).unwrap();
            let known = KnownHead::read(&file);
            assert!(known.problem().unwrap().starts_with(how), "{text:?}: {known:?}");
        }
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("nowhere", &file).unwrap();
        assert_eq!(
            KnownHead::read(&file).problem(),
            Some("cannot be read: it is a link to a file that does not exist")
        );
        // A symlink is replaced, not followed.
        HeadFile::new(file.clone()).write(&written(2)).unwrap();
        assert_eq!(KnownHead::read(&file), KnownHead::Entry(written(2)));
        assert!(!dir.path().join("nowhere").exists());
    }
}
