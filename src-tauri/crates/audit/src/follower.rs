//! Reads a log while it is being written, starting from a stored position.
//!
//! - Verifies the chain, so every returned entry provably follows the stored position.
//! - Reports missing entries as a [`LostRange`]: retention removed them, a file is missing, or the log was replaced
//!   before this reader started.
//! - INVARIANT: once the position has been found in the log, it only moves forward. If the log no longer contains the
//!   position after that, reading fails.
//! - Never writes, and takes none of the writer's locks.

use crate::chain::{self, ChainPosition, verify_line};
use crate::decision_cache::DecisionCache;
use crate::read::LogLine;
use crate::volumes::{self, ListedVolume, Volume};
use crate::{Entry, tail};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Number of bytes to read before the position. They may contain decisions that outcomes after the position refer to.
const BEFORE: u64 = 256 * 1024;

/// Position after an entry, with its location on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogPosition {
    /// Position in the chain.
    pub written: ChainPosition,
    /// Sequence number of the first entry in the file.
    file: u64,
    /// Offset in the file.
    offset: u64,
}

/// Range of entries that can no longer be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostRange {
    /// Position before the first lost entry.
    pub after: ChainPosition,
    /// Position after the last lost entry. If the log was replaced, the start of the new log.
    pub until: ChainPosition,
}

/// Next entry, or a range of lost entries.
#[derive(Debug)]
pub enum FollowedEntry {
    /// An entry.
    Entry {
        /// Entry with its fields completed.
        entry: Box<Entry>,
        /// Hash of the entry, unique across all logs.
        link: String,
        /// Length of its line in bytes.
        bytes: u64,
    },
    /// Lost entries.
    Lost(LostRange),
}

/// Reader that follows the writer of a log.
#[derive(Debug)]
pub struct Follower {
    dir: PathBuf,
    position: LogPosition,
    open: Option<BufReader<File>>,
    /// `true` once the position has been found in the log.
    is_confirmed: bool,
    decision_cache: DecisionCache,
}

impl LogPosition {
    /// Returns the position before the first entry of any log.
    #[must_use]
    pub fn beginning() -> Self {
        Self { written: ChainPosition::start(), file: 1, offset: 0 }
    }

    /// Returns the position before the oldest entry in `dir`.
    ///
    /// # Errors
    /// Returns an error if reading the log fails.
    pub fn oldest(dir: &Path) -> io::Result<Self> {
        let Some((file, listed)) = files(dir)?.into_iter().next() else { return Ok(Self::beginning()) };
        Self::start_of_file(file, &listed)
    }

    /// Returns the position after the newest entry in `dir`.
    ///
    /// # Errors
    /// Returns an error if reading the log fails.
    pub fn end(dir: &Path) -> io::Result<Self> {
        Self::before_newest(dir, 0)
    }

    /// Returns the position before the newest `count` entries in the newest file, or before all of its entries if
    /// there are fewer.
    ///
    /// # Errors
    /// Returns an error if reading the log fails.
    pub fn before_newest(dir: &Path, count: usize) -> io::Result<Self> {
        let Some((file, listed)) = files(dir)?.pop() else { return Ok(Self::beginning()) };
        let volume = listed.open()?;
        let end = tail::complete_length(&volume.file)?;
        let mut lines = tail::lines_before(&volume.file, end, count + 1, BEFORE)?;
        let newest = lines.split_off(lines.len().saturating_sub(count));
        let bytes: u64 = newest.iter().map(|line| line.len() as u64).sum();
        if bytes == end {
            return Self::start_of_file(file, &listed);
        }
        let invalid_line =
            || invalid_data(format!("`{}` has no valid line before byte {}", volume.name(), end - bytes));
        let written = lines.last().and_then(|line| chain::position_after(line)).ok_or_else(invalid_line)?;
        Ok(Self { written, file, offset: end - bytes })
    }

    fn start_of_file(file: u64, listed: &ListedVolume) -> io::Result<Self> {
        let written = listed.open()?.start_position()?.unwrap_or_else(ChainPosition::start);
        Ok(Self { written, file, offset: 0 })
    }
}

impl Follower {
    /// Creates a reader that continues after `position`.
    #[must_use]
    pub fn new(dir: &Path, position: LogPosition) -> Self {
        Self {
            dir: dir.to_path_buf(),
            position,
            open: None,
            is_confirmed: false,
            decision_cache: DecisionCache::default(),
        }
    }

    /// Creates a reader that continues after `position`, a position that another reader of this log has reached.
    #[must_use]
    pub fn resume(dir: &Path, position: LogPosition) -> Self {
        Self { is_confirmed: true, ..Self::new(dir, position) }
    }

    /// Returns the position after the last returned entry.
    #[must_use]
    pub fn position(&self) -> &LogPosition {
        &self.position
    }

    /// Returns the number of bytes after the position.
    ///
    /// # Errors
    /// Returns an error if reading the log fails.
    pub fn behind(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for (first, listed) in files(&self.dir)? {
            let length = || io::Result::Ok(listed.open()?.file.metadata()?.len());
            bytes += match first.cmp(&self.position.file) {
                Ordering::Less => 0,
                Ordering::Equal => length()?.saturating_sub(self.position.offset),
                Ordering::Greater => length()?,
            };
        }
        Ok(bytes)
    }

    /// Skips entries until at most `limit` bytes remain.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::read_next`].
    pub fn skip_to(&mut self, limit: u64) -> io::Result<()> {
        let mut behind = self.behind()?;
        while behind > limit {
            match self.read_next()? {
                Some(FollowedEntry::Entry { bytes, .. }) => behind = behind.saturating_sub(bytes),
                Some(FollowedEntry::Lost(_)) => behind = self.behind()?,
                None => break,
            }
        }
        Ok(())
    }

    /// Compares the position with the log and returns the range of lost entries, if any.
    ///
    /// # Errors
    /// Returns an error if reading the log fails.
    pub fn compare(&mut self) -> io::Result<Option<LostRange>> {
        match self.reopen()? {
            Reopened::At(reader) => self.open = Some(reader),
            Reopened::Lost(range) => return Ok(Some(range)),
            Reopened::Nothing => {}
        }
        Ok(None)
    }

    /// Returns the next entry, or `None` at the end of the log.
    ///
    /// # Errors
    /// Returns an error if reading the log fails or its chain is invalid.
    pub fn read_next(&mut self) -> io::Result<Option<FollowedEntry>> {
        let mut line = Vec::new();
        if let Some(reader) = &mut self.open {
            reader.read_until(b'\n', &mut line)?;
        }
        if line.last() != Some(&b'\n') {
            // The entry is in a different file, or has not been written completely yet.
            line.clear();
            match self.reopen()? {
                Reopened::At(reader) => self.open.insert(reader).read_until(b'\n', &mut line)?,
                Reopened::Lost(range) => return Ok(Some(FollowedEntry::Lost(range))),
                Reopened::Nothing => return Ok(None),
            };
            if line.last() != Some(&b'\n') {
                self.open = None;
                return Ok(None);
            }
        }
        let invalid =
            |why| invalid_data(format!("entry {} is invalid: {why}", self.position.written.entries + 1));
        let link = verify_line(&line, &self.position.written).map_err(invalid)?;
        let Some(LogLine::Entry(entry)) = LogLine::parse(&line, &mut self.decision_cache) else {
            return Err(invalid("it is not an entry"));
        };
        let bytes = line.len() as u64;
        self.position.written =
            ChainPosition { entries: self.position.written.entries + 1, head: link.clone() };
        self.position.offset += bytes;
        Ok(Some(FollowedEntry::Entry { entry, link, bytes }))
    }

    /// Opens the file with the next entry and verifies that the position is in the log.
    fn reopen(&mut self) -> io::Result<Reopened> {
        self.open = None;
        let wanted = self.position.written.entries + 1;
        let files = files(&self.dir)?;
        let (until, later) = files.split_at(files.partition_point(|(first, _)| *first <= wanted));
        if let Some((first, listed)) = until.last() {
            let volume = listed.open()?;
            if self.confirm(*first, &volume)? {
                // If a later file exists, this file is complete.
                if later.is_empty() || tail::complete_length(&volume.file)? > self.position.offset {
                    let mut file = volume.file;
                    file.seek(SeekFrom::Start(self.position.offset))?;
                    return Ok(Reopened::At(BufReader::new(file)));
                }
            } else if !self.is_confirmed {
                return self.skip_to_file(files.first());
            } else if [self.position.file, wanted].contains(first) || later.is_empty() {
                let LogPosition { written, offset, .. } = &self.position;
                return Err(invalid_data(format!(
                    "`{}` no longer contains entry {} before byte {offset}, so it was replaced or changed",
                    volume.name(),
                    written.entries
                )));
            }
        }
        self.skip_to_file(later.first())
    }

    /// Returns `true` if the log contains the position. `first` is the file that should contain the next entry.
    fn confirm(&mut self, first: u64, volume: &Volume) -> io::Result<bool> {
        let wanted = self.position.written.entries + 1;
        let is_found = if first == wanted {
            // The first line of a file records the position before it.
            wanted == 1 || volume.start_position()?.as_ref() == Some(&self.position.written)
        } else {
            first == self.position.file && self.is_at_position(volume)?
        };
        if is_found && first == wanted {
            (self.position.file, self.position.offset) = (first, 0);
        }
        self.is_confirmed |= is_found;
        Ok(is_found)
    }

    /// Returns `true` if the position's entry ends at the position's offset. Also reads the decisions before the entry.
    fn is_at_position(&mut self, volume: &Volume) -> io::Result<bool> {
        let offset = self.position.offset;
        if volume.file.metadata()?.len() < offset {
            return Ok(false);
        }
        let lines = tail::lines_before(&volume.file, offset, 1, BEFORE)?;
        let known = lines.last().and_then(|line| chain::position_after(line));
        lines.iter().for_each(|line| drop(LogLine::parse(line, &mut self.decision_cache)));
        Ok(known.as_ref() == Some(&self.position.written))
    }

    /// Moves the position to the start of a file and reports the entries in between as lost.
    fn skip_to_file(&mut self, file: Option<&(u64, ListedVolume)>) -> io::Result<Reopened> {
        let Some((first, listed)) = file else { return Ok(Reopened::Nothing) };
        let position = LogPosition::start_of_file(*first, listed)?;
        let range = LostRange { after: self.position.written.clone(), until: position.written.clone() };
        (self.position, self.is_confirmed) = (position, true);
        self.decision_cache = DecisionCache::default();
        Ok(Reopened::Lost(range))
    }
}

fn invalid_data(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// Result of opening the file with the next entry.
enum Reopened {
    /// The file, at the position.
    At(BufReader<File>),
    /// Entries were lost. The reading position is now after them.
    Lost(LostRange),
    /// The log has no entry.
    Nothing,
}

/// Returns the files that have an entry, oldest first, each with the sequence number of its first entry.
fn files(dir: &Path) -> io::Result<Vec<(u64, ListedVolume)>> {
    let mut files = Vec::new();
    for listed in volumes::list(dir)? {
        let first = match listed.first {
            Some(first) => Some(first),
            None => listed.open()?.start_position()?.map(|before| before.entries + 1),
        };
        files.extend(first.map(|first| (first, listed)));
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
