//! Reads a log behind its writer, from a position that the reader stores.
//!
//! - Follows the chain, so that every returned entry is proved to follow the stored position.
//! - Missing entries, which were removed by retention or when the log was replaced, are reported as a [`LostRange`].
//! - Never writes, and takes none of the writer's locks.

use crate::chain::{self, Written, follow};
use crate::read::Found;
use crate::recall::Recall;
use crate::volumes::{self, Listed, Volume};
use crate::{Entry, tail};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Number of bytes to read before the position, because they may contain decisions to which later outcomes refer.
const BEFORE: u64 = 256 * 1024;

/// Position after an entry, with its location on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogPlace {
    /// Position in the chain.
    pub written: Written,
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
    pub after: Written,
    /// Position after the last lost entry. If the log was replaced, the beginning of the new log.
    pub until: Written,
}

/// Next entry, or a range of lost entries.
#[derive(Debug)]
pub enum FollowedEntry {
    /// An entry.
    Entry {
        /// Entry with its fields completed.
        entry: Box<Entry>,
        /// Hash of the entry, unique in all logs.
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
    place: LogPlace,
    open: Option<BufReader<File>>,
    recall: Recall,
}

impl LogPlace {
    /// Returns the position before the first entry of any log.
    #[must_use]
    pub fn beginning() -> Self {
        Self { written: Written::nothing(), file: 1, offset: 0 }
    }

    /// Returns the position before the oldest entry in `dir`.
    ///
    /// # Errors
    /// Returns an error if reading the log fails.
    pub fn oldest(dir: &Path) -> io::Result<Self> {
        let Some((file, listed)) = files(dir)?.into_iter().next() else { return Ok(Self::beginning()) };
        Self::begin_of(file, &listed)
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
        let mut lines = tail::lines_before(&volume.file, end, BEFORE)?;
        let newest = lines.split_off(lines.len().saturating_sub(count));
        let bytes: u64 = newest.iter().map(|line| line.len() as u64).sum();
        match lines.last().and_then(|line| chain::after(line)) {
            Some(written) => Ok(Self { written, file, offset: end - bytes }),
            None => Self::begin_of(file, &listed),
        }
    }

    fn begin_of(file: u64, listed: &Listed) -> io::Result<Self> {
        let written = listed.open()?.begins_after()?.unwrap_or_else(Written::nothing);
        Ok(Self { written, file, offset: 0 })
    }
}

impl Follower {
    /// Creates a reader that continues after `place`.
    #[must_use]
    pub fn new(dir: &Path, place: LogPlace) -> Self {
        Self { dir: dir.to_path_buf(), place, open: None, recall: Recall::default() }
    }

    /// Returns the position after the last returned entry.
    #[must_use]
    pub fn place(&self) -> &LogPlace {
        &self.place
    }

    /// Returns the number of bytes after the position.
    ///
    /// # Errors
    /// Returns an error if reading the log fails.
    pub fn behind(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for (first, listed) in files(&self.dir)? {
            let length = || io::Result::Ok(listed.open()?.file.metadata()?.len());
            bytes += match first.cmp(&self.place.file) {
                Ordering::Less => 0,
                Ordering::Equal => length()?.saturating_sub(self.place.offset),
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

    /// Compares the position with the log, and returns the range of lost entries, if any.
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
            // The entry is in another file, or has not been written completely yet.
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
        let link = follow(&line, &self.place.written).map_err(|why| self.invalid(why))?;
        let Some(Found::Entry(entry)) = Found::of(&line, &mut self.recall) else {
            return Err(self.invalid("it is not an entry"));
        };
        let bytes = line.len() as u64;
        self.place.written = Written { entries: self.place.written.entries + 1, head: link.clone() };
        self.place.offset += bytes;
        Ok(Some(FollowedEntry::Entry { entry, link, bytes }))
    }

    /// Opens the file with the next entry, and verifies that the position is in the log.
    fn reopen(&mut self) -> io::Result<Reopened> {
        self.open = None;
        let wanted = self.place.written.entries + 1;
        let files = files(&self.dir)?;
        let Some((oldest, _)) = files.first() else { return Ok(Reopened::Nothing) };
        if *oldest > wanted {
            return self.lose(&files);
        }
        let Some((first, listed)) = files.iter().rev().find(|(first, _)| *first <= wanted) else {
            return Ok(Reopened::Nothing);
        };
        let volume = listed.open()?;
        if *first == wanted {
            // The first line contains the position before it.
            if wanted > 1 && volume.begins_after()?.as_ref() != Some(&self.place.written) {
                return self.lose(&files);
            }
            (self.place.file, self.place.offset) = (*first, 0);
        } else if *first != self.place.file || !self.is_at_place(&volume)? {
            return self.lose(&files);
        }
        let mut file = volume.file;
        file.seek(SeekFrom::Start(self.place.offset))?;
        Ok(Reopened::At(BufReader::new(file)))
    }

    /// Returns `true` if the position's entry ends at its offset. Also reads the decisions before it.
    fn is_at_place(&mut self, volume: &Volume) -> io::Result<bool> {
        let offset = self.place.offset;
        if volume.file.metadata()?.len() < offset {
            return Ok(false);
        }
        let lines = tail::lines_before(&volume.file, offset, BEFORE)?;
        let known = lines.last().and_then(|line| chain::after(line));
        lines.iter().for_each(|line| drop(Found::of(line, &mut self.recall)));
        Ok(known.as_ref() == Some(&self.place.written))
    }

    /// Continues at the beginning of the oldest file, and returns the lost range.
    fn lose(&mut self, files: &[(u64, Listed)]) -> io::Result<Reopened> {
        let Some((first, oldest)) = files.first() else { return Ok(Reopened::Nothing) };
        let place = LogPlace::begin_of(*first, oldest)?;
        let range = LostRange { after: self.place.written.clone(), until: place.written.clone() };
        self.place = place;
        self.recall = Recall::default();
        Ok(Reopened::Lost(range))
    }

    fn invalid(&self, why: &str) -> io::Error {
        let number = self.place.written.entries + 1;
        io::Error::new(io::ErrorKind::InvalidData, format!("entry {number} is invalid: {why}"))
    }
}

/// Result of opening the file with the next entry.
enum Reopened {
    /// The file, at the position.
    At(BufReader<File>),
    /// Entries are lost, and the position was changed.
    Lost(LostRange),
    /// The log has no entry.
    Nothing,
}

/// Returns the files that have an entry, oldest first, with the sequence number of the first entry.
fn files(dir: &Path) -> io::Result<Vec<(u64, Listed)>> {
    let mut files = Vec::new();
    for listed in volumes::list(dir)? {
        let first = match listed.first {
            Some(first) => Some(first),
            None => listed.open()?.begins_after()?.map(|before| before.entries + 1),
        };
        files.extend(first.map(|first| (first, listed)));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Audit, Event, Keeping};

    async fn log(dir: &Path, text: &str, entries: u64) -> Audit {
        let audit = Audit::keep(Keeping { file_bytes: 600, ..Keeping::new(dir) }, |_| ()).unwrap();
        for number in 0..entries {
            audit.record(Entry::new(Event::Session, format!("{text} {number}"))).await.unwrap();
        }
        audit
    }

    /// Returns the sequence numbers of the entries, or `-N` for entries lost up to N.
    fn read(follower: &mut Follower) -> Vec<i64> {
        let mut seen = Vec::new();
        while let Some(next) = follower.read_next().unwrap() {
            seen.push(match next {
                FollowedEntry::Entry { entry, .. } => i64::try_from(entry.seq).unwrap(),
                FollowedEntry::Lost(range) => -i64::try_from(range.until.entries).unwrap(),
            });
        }
        seen
    }

    #[tokio::test]
    async fn every_entry_is_read_once_across_files_and_restarts() {
        let dir = tempfile::tempdir().unwrap();
        let mut follower = Follower::new(dir.path(), LogPlace::beginning());
        assert_eq!(read(&mut follower), [0; 0]);
        let audit = log(dir.path(), "entry", 7).await;
        assert_eq!(read(&mut follower), (1..=7).collect::<Vec<_>>());
        assert_eq!(follower.behind().unwrap(), 0);
        assert_eq!(LogPlace::end(dir.path()).unwrap(), *follower.place());
        let before = LogPlace::before_newest(dir.path(), 1).unwrap();
        assert_eq!(read(&mut Follower::new(dir.path(), before)), [7]);
        for next in 8..40 {
            audit.record(Entry::new(Event::Session, "next")).await.unwrap();
            assert!(follower.behind().unwrap() > 0);
            // Reading from a stored position gives the same result as continuing with the open file.
            let stored: LogPlace =
                serde_json::from_str(&serde_json::to_string(follower.place()).unwrap()).unwrap();
            assert_eq!(read(&mut Follower::new(dir.path(), stored)), [next]);
            assert_eq!(read(&mut follower), [next]);
        }
        assert!(std::fs::read_dir(dir.path()).unwrap().count() > 4);
    }

    #[tokio::test]
    async fn outcome_is_completed_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::open(dir.path(), |_| ()).unwrap();
        let mut decision = Entry::new(Event::Decision, "");
        decision.tool_name = Some("read".to_owned());
        let number = audit.record(decision).await.unwrap();
        let place = LogPlace::end(dir.path()).unwrap();
        audit.record(Entry::end_of(number, crate::CallResult::Ok, 3)).await.unwrap();
        let Some(FollowedEntry::Entry { entry, .. }) = Follower::new(dir.path(), place).read_next().unwrap()
        else {
            panic!("the outcome is missing");
        };
        assert_eq!((entry.event, entry.tool_name.as_deref()), (Event::Outcome, Some("read")));
    }

    #[tokio::test]
    async fn removed_and_replaced_entries_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let audit = log(dir.path(), "entry", 12).await;
        let place = LogPlace::end(dir.path()).unwrap();
        let mut follower = Follower::new(dir.path(), LogPlace::beginning());
        let (_, oldest) = volumes::closed(dir.path()).unwrap().remove(0);
        std::fs::remove_file(oldest).unwrap();
        let (next, _) = volumes::closed(dir.path()).unwrap().remove(0);
        let next = i64::try_from(next).unwrap();
        assert_eq!(read(&mut follower), std::iter::once(1 - next).chain(next..=12).collect::<Vec<_>>());
        drop(audit);
        // Another log with the same number of entries has other hashes.
        let other = tempfile::tempdir().unwrap();
        log(other.path(), "other", 12).await;
        let seen = read(&mut Follower::new(other.path(), place));
        assert_eq!(seen, std::iter::once(0).chain(1..=12).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn edited_entry_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        drop(log(dir.path(), "entry", 2).await);
        let file = dir.path().join(crate::LOG_NAME);
        let text = std::fs::read_to_string(&file).unwrap().replace("entry 1", "entry 9");
        std::fs::write(&file, text).unwrap();
        let mut follower = Follower::new(dir.path(), LogPlace::beginning());
        assert!(follower.read_next().unwrap().is_some());
        let problem = follower.read_next().unwrap_err().to_string();
        assert_eq!(problem, "entry 2 is invalid: its content does not match its hash");
    }
}
