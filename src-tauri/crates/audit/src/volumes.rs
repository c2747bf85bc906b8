//! Files of a log: one active file, and closed files. A closed file is named after the sequence number of its first
//! entry.

use crate::chain::{self, ChainPosition};
use crate::tail;
use ironcurtain_paths::bounded_read;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the active file in the log's directory.
pub const LOG_NAME: &str = "audit.jsonl";

/// Maximum number of attempts to list the files. An attempt fails if a file is closed or removed in the meantime.
const TRIES: usize = 10;

/// Log file that is open for reading.
#[derive(Debug)]
pub(super) struct Volume {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Sequence number of the first entry, from the name of a closed file; `None` for the active file.
    pub(super) first: Option<u64>,
}

impl Volume {
    /// Opens a closed file for reading.
    pub(super) fn open(path: PathBuf, first: u64) -> io::Result<Self> {
        Ok(Self { file: open(&path)?, path, first: Some(first) })
    }

    /// Returns the file name for error messages.
    pub(super) fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Returns the position before the first entry, as recorded in that entry, or `None` for an empty file.
    pub(super) fn start_position(&self) -> io::Result<Option<ChainPosition>> {
        Ok(tail::first_line(&self.file)?.and_then(|line| chain::position_before(&line)))
    }

    /// Returns `true` if the first line contains this text.
    pub(super) fn begins_with(&self, text: &str) -> io::Result<bool> {
        Ok(tail::first_line(&self.file)?.is_some_and(|line| chain::contains(&line, text)))
    }

    /// Returns the position after the last complete line, as recorded in that line.
    pub(super) fn end_position(&self) -> io::Result<Option<ChainPosition>> {
        Ok(tail::last_line(&self.file)?.and_then(|line| chain::position_after(&line)))
    }
}

/// Returns the closed files in a directory, oldest first. Returns no files if the directory does not exist.
///
/// # Errors
/// Returns an error if reading the directory fails.
pub(super) fn closed(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let listed = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut closed = Vec::new();
    for entry in listed {
        let path = entry?.path();
        let first = path.file_name().and_then(|name| number_in(&name.to_string_lossy()));
        closed.extend(first.map(|first| (first, path)));
    }
    closed.sort_unstable();
    Ok(closed)
}

/// Log file in a listing. A closed file is opened on demand. The active file is opened when it is listed, because it
/// may be renamed afterwards.
#[derive(Debug)]
pub(super) struct ListedVolume {
    path: PathBuf,
    pub(super) first: Option<u64>,
    file: Option<File>,
}

impl ListedVolume {
    /// Opens the file for reading.
    pub(super) fn open(&self) -> io::Result<Volume> {
        let file = match &self.file {
            Some(file) => file.try_clone()?,
            None => open(&self.path)?,
        };
        Ok(Volume { path: self.path.clone(), file, first: self.first })
    }
}

/// Lists all files in a directory, oldest first.
///
/// # Errors
/// Returns an error if reading the directory or the newest file fails.
pub(super) fn list(dir: &Path) -> io::Result<Vec<ListedVolume>> {
    for _ in 0..TRIES {
        let before = closed(dir)?;
        let path = dir.join(LOG_NAME);
        let newest = match open(&path) {
            Ok(file) => Some(ListedVolume { path, first: None, file: Some(file) }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        if closed(dir)? == before {
            let listed =
                before.into_iter().map(|(first, path)| ListedVolume { path, first: Some(first), file: None });
            return Ok(listed.chain(newest).collect());
        }
    }
    Err(io::Error::other("its files keep changing"))
}

/// Opens a log file for reading. Errors contain the path, because a log has several files.
fn open(path: &Path) -> io::Result<File> {
    bounded_read::open(path)
        .map_err(|e| io::Error::new(e.kind(), format!("failed to open `{}`: {e}", path.display())))
}

/// Returns the name of the closed file whose first entry has this sequence number.
pub(super) fn name_of(first: u64) -> String {
    format!("audit-{first:012}.jsonl")
}

fn number_in(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("audit-")?.strip_suffix(".jsonl")?;
    (digits.len() >= 12 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}
