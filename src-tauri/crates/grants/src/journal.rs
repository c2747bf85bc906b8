//! Journal of grants that are being created, and of terminations that are not in the database yet.
//!
//! - INVARIANT: disk space is reserved in advance, so that a termination can be made durable even if the disk is full
//!   or another process has locked the database.
//! - At startup, the journal is read and cleared before any grant is created. It stays short, because it is cleared
//!   whenever no termination is pending.

use super::ending::JournalEntry;
use ironcurtain_paths::bounded_read;
use rustix::fs::{FallocateFlags, OFlags, fallocate, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// File name of the journal, in the database's folder.
const NAME: &str = "grants.journal";

/// Size reserved for the journal on disk, in bytes. It is sufficient for several hundred terminations.
const RESERVED_LEN: u64 = 256 * 1024;

/// Reason the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Opening, reading or writing the journal failed.
    #[error("failed to access the grant journal `{path}`: {source}")]
    File {
        /// Path of the journal.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// A line in the journal is invalid.
    #[error(
        "line {line} of the grant journal `{path}` is damaged, so revoked grants may be active again; review the grants, \
         revoke any that you do not want, and delete the file"
    )]
    Damaged {
        /// Path of the journal.
        path: PathBuf,
        /// Number of the invalid line, counted from 1.
        line: usize,
    },
}

/// Journal that is open for writing.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// Total length of the lines, in bytes.
    length: u64,
}

impl Journal {
    /// Opens the journal for a database, and returns the lines that the previous process left in it.
    pub(super) fn open(database: &Path) -> Result<(Self, Vec<JournalEntry>), JournalError> {
        let path = database.with_file_name(NAME);
        let at = |source| JournalError::File { path: path.clone(), source };
        let mut file = bounded_read::open_own(&path).map_err(at)?;
        let reserve = || -> io::Result<()> {
            // `O_APPEND` would ignore the offset at which lines are written.
            fcntl_setfl(&file, fcntl_getfl(&file)?.difference(OFlags::APPEND))?;
            match fallocate(&file, FallocateFlags::empty(), 0, RESERVED_LEN) {
                Err(Errno::OPNOTSUPP) => fill(&file)?,
                taken => taken?,
            }
            file.sync_all()
        };
        reserve().map_err(at)?;
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut text)).map_err(at)?;
        let (entries, length) = lines(&path, &text)?;
        let journal = Self { path, file, length };
        // Erases an incomplete line, so that the next line does not continue it.
        journal.overwrite_with_zeros(
            length,
            text.split(|byte| *byte == 0).next().unwrap_or_default().len() as u64 - length,
        )?;
        Ok((journal, entries))
    }

    /// Reads the lines of the journal for a database without changing it.
    pub(super) fn read(database: &Path) -> Result<Vec<JournalEntry>, JournalError> {
        let path = database.with_file_name(NAME);
        match std::fs::read(&path) {
            Ok(text) => Ok(lines(&path, &text)?.0),
            Err(missing)
                if missing.kind() == io::ErrorKind::NotFound
                    && bounded_read::is_absent(&path).unwrap_or(false) =>
            {
                Ok(Vec::new())
            }
            Err(source) => Err(JournalError::File { path, source }),
        }
    }

    /// Appends lines and syncs them to disk.
    pub(super) fn append(&mut self, lines: &[JournalEntry]) -> Result<(), JournalError> {
        let mut text = Vec::new();
        let written = lines.iter().try_for_each(|line| {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
            Ok(())
        });
        let appended = written
            .and_then(|()| self.file.write_all_at(&text, self.length))
            .and_then(|()| self.file.sync_data());
        if let Err(source) = appended {
            // Erases the text, because a part of it may have been written.
            self.overwrite_with_zeros(self.length, text.len() as u64)?;
            return Err(self.failed(source));
        }
        self.length += text.len() as u64;
        Ok(())
    }

    /// Removes all lines from the journal.
    pub(super) fn clear(&mut self) -> Result<(), JournalError> {
        // Readers stop at the first zero byte. If a crash leaves some of the lines, their terminations are stored
        // again, which has no effect.
        self.overwrite_with_zeros(0, self.length)?;
        self.length = 0;
        Ok(())
    }

    fn overwrite_with_zeros(&self, from: u64, length: u64) -> Result<(), JournalError> {
        let nothing = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        self.file.write_all_at(&nothing, from).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> JournalError {
        JournalError::File { path: self.path.clone(), source }
    }
}

/// Reserves the space by writing zeros. Used on file systems that do not support `fallocate`.
fn fill(file: &File) -> io::Result<()> {
    let taken = file.metadata()?.len();
    let nothing = vec![0; usize::try_from(RESERVED_LEN.saturating_sub(taken)).unwrap_or(0)];
    file.write_all_at(&nothing, taken)
}

/// Parses the lines, and returns them with their total length. Ignores an incomplete last line, because it has not
/// taken effect.
fn lines(path: &Path, text: &[u8]) -> Result<(Vec<JournalEntry>, u64), JournalError> {
    let content = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let content = content.get(..whole).unwrap_or_default();
    let parsed = content.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()).map(
        |(at, line)| {
            let damaged = |_| JournalError::Damaged { path: path.to_path_buf(), line: at + 1 };
            serde_json::from_slice(line).map_err(damaged)
        },
    );
    Ok((parsed.collect::<Result<_, _>>()?, whole as u64))
}

#[cfg(test)]
mod tests {
    use super::super::ending::EndReason;
    use super::*;
    use ironcurtain_audit::{Entry, Event};

    fn entries(id: &str) -> JournalEntry {
        let entry = Box::new(Entry::new(Event::Revoked, "x"));
        JournalEntry { id: id.to_owned(), why: EndReason::Revoked, at_ms: 5, entry }
    }

    #[test]
    fn lines_are_kept_until_the_journal_is_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("state.db");
        assert_eq!(Journal::read(&database).unwrap(), []);
        let (mut journal, none) = Journal::open(&database).unwrap();
        assert_eq!(none, []);
        journal.append(&[entries("a"), entries("b")]).unwrap();
        journal.append(&[entries("c")]).unwrap();
        drop(journal);
        let all = [entries("a"), entries("b"), entries("c")];
        assert_eq!(Journal::read(&database).unwrap(), all);
        let (mut journal, found) = Journal::open(&database).unwrap();
        assert_eq!(found, all);
        journal.append(&[entries("d")]).unwrap();
        assert_eq!(Journal::read(&database).unwrap().len(), 4);
        journal.clear().unwrap();
        journal.append(&[entries("e")]).unwrap();
        assert_eq!(Journal::read(&database).unwrap(), [entries("e")]);
        assert_eq!(dir.path().join(NAME).metadata().unwrap().len(), RESERVED_LEN, "it does not grow");
    }

    #[test]
    fn a_torn_line_is_ignored_and_a_damaged_one_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("state.db");
        let (mut journal, _) = Journal::open(&database).unwrap();
        journal.append(&[entries("a"), entries("b")]).unwrap();
        let path = dir.path().join(NAME);
        let whole = std::fs::read(&path).unwrap();
        let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for cut in first..first * 2 - 1 {
            let mut torn = whole.clone();
            torn[cut..].fill(0);
            torn[cut..cut + 400].fill(b'x');
            std::fs::write(&path, torn).unwrap();
            let (mut journal, found) = Journal::open(&database).unwrap();
            assert_eq!(found, [entries("a")], "{cut}");
            journal.append(&[entries("c")]).unwrap();
            assert_eq!(Journal::read(&database).unwrap(), [entries("a"), entries("c")], "{cut}");
        }
        let mut damaged = whole;
        damaged[2] = b'?';
        std::fs::write(&path, damaged).unwrap();
        let refused = Journal::open(&database).unwrap_err().to_string();
        assert!(
            refused.starts_with("line 1 of the grant journal") && refused.contains("delete the file"),
            "{refused}"
        );
    }
}
