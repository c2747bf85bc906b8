//! Reads entries from all files of a log.
//!
//! - Memory use is bounded, even for long lines.
//! - Fields that an outcome omits are copied from its decision.

use crate::Entry;
use crate::decision_cache::DecisionCache;
use crate::tail;
use crate::volumes::{self, Volume};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Maximum length in bytes of a line that is parsed. This version never writes longer lines.
const MAX_LINE_LEN: usize = 1024 * 1024;

/// Number of bytes that are parsed from a line longer than [`MAX_LINE_LEN`].
const HEAD: usize = 1000;

/// Number of additional lines to read before the requested ones. They may contain the decisions that belong to the
/// requested outcomes.
const BEFORE: usize = 200;

/// Line of the log.
#[derive(Debug)]
pub enum LogLine {
    /// A complete entry.
    Entry(Box<Entry>),
    /// An entry written by a different version that exceeds this version's length limit.
    TooLong {
        /// Sequence number.
        seq: u64,
        /// Milliseconds since the Unix epoch.
        timestamp: u64,
        /// Length of the line in bytes.
        bytes: u64,
    },
}

impl LogLine {
    /// Parses a line and fills in its omitted fields. Returns `None` if the line is not an entry.
    pub(super) fn parse(line: &[u8], decision_cache: &mut DecisionCache) -> Option<Self> {
        if line.len() > MAX_LINE_LEN {
            let head = String::from_utf8_lossy(line.get(..HEAD)?).into_owned();
            let (seq, timestamp) = (number(&head, "\"seq\":")?, number(&head, "\"timestamp\":")?);
            return Some(Self::TooLong { seq, timestamp, bytes: line.len() as u64 });
        }
        let mut entry: Box<Entry> = serde_json::from_slice(line).ok()?;
        decision_cache.complete(&mut entry);
        Some(Self::Entry(entry))
    }
}

/// Returns the newest entries, newest first. Skips lines that are not entries, because verification reports them.
///
/// # Errors
/// Returns an error if reading the log fails.
pub fn newest(dir: &Path, limit: usize) -> io::Result<impl Iterator<Item = LogLine>> {
    let wanted = limit.saturating_add(BEFORE);
    let (mut lines, mut kept) = (VecDeque::new(), 0);
    for volume in volumes::list(dir)?.iter().rev() {
        let volume = volume.open()?;
        for line in tail::last_lines(&volume.file, wanted - lines.len())?.into_iter().rev() {
            kept += line.len() as u64;
            lines.push_front(line);
        }
        if lines.len() >= wanted || kept >= tail::MAX_BYTES {
            break;
        }
    }
    let mut decision_cache = DecisionCache::default();
    let mut found: Vec<LogLine> = Vec::with_capacity(lines.len());
    // Frees each line as soon as it is parsed, to limit memory use.
    while let Some(line) = lines.pop_front() {
        found.extend(LogLine::parse(&line, &mut decision_cache));
    }
    Ok(found.into_iter().rev().take(limit))
}

/// Iterates over the entries with sequence numbers up to `entries`, in order. An invalid line yields an error
/// and ends the iteration.
///
/// # Errors
/// Returns an error if opening the log fails.
pub fn all(dir: &Path, entries: u64) -> io::Result<impl Iterator<Item = io::Result<Entry>> + use<>> {
    let mut volumes = VecDeque::from(volumes::list(dir)?);
    let (mut open, mut decision_cache, mut done) = (None::<Lines>, DecisionCache::default(), false);
    Ok(std::iter::from_fn(move || {
        while !done {
            let lines = match &mut open {
                Some(lines) => lines,
                None => match volumes.pop_front()?.open() {
                    Ok(volume) => open.insert(Lines::new(volume)),
                    Err(problem) => {
                        done = true;
                        return Some(Err(problem));
                    }
                },
            };
            match lines.next() {
                Ok(None) => open = None,
                Ok(Some(entry)) if entry.seq > entries => done = true,
                Ok(Some(mut entry)) => {
                    decision_cache.complete(&mut entry);
                    return Some(Ok(entry));
                }
                Err(problem) => {
                    done = true;
                    return Some(Err(problem));
                }
            }
        }
        None
    }))
}

/// Iterator over the lines of one file.
struct Lines {
    name: String,
    reader: BufReader<File>,
    number: u64,
}

impl Lines {
    fn new(volume: Volume) -> Self {
        Self { name: volume.name(), reader: BufReader::new(volume.file), number: 0 }
    }

    fn next(&mut self) -> io::Result<Option<Entry>> {
        let mut line = Vec::new();
        self.number += 1;
        // A line without a line feed is still being written.
        if self.reader.read_until(b'\n', &mut line)? == 0 || line.last() != Some(&b'\n') {
            return Ok(None);
        }
        serde_json::from_slice(&line).map(Some).map_err(|e| {
            let what = format!("line {} of `{}` is invalid: {e}", self.number, self.name);
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }
}

fn number(head: &str, field: &str) -> Option<u64> {
    let after = head.split_once(field)?.1;
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::old_log;

    #[test]
    fn newest_entries_are_first_and_all_entries_in_order() {
        let seq = |found: LogLine| match found {
            LogLine::Entry(entry) => entry.seq,
            LogLine::TooLong { seq, .. } => seq,
        };
        let log = old_log();
        assert_eq!(newest(log.path(), 3).unwrap().map(seq).collect::<Vec<_>>(), [20, 19, 18]);
        let read = |upto| all(log.path(), upto).unwrap().map(|entry| entry.unwrap().seq).collect::<Vec<_>>();
        assert_eq!(read(u64::MAX), (1..=20).collect::<Vec<_>>());
        assert_eq!(read(7), (1..=7).collect::<Vec<_>>());
    }

    #[test]
    fn an_invalid_line_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("audit.jsonl"), "{}\n").unwrap();
        let problem = all(dir.path(), 3).unwrap().next().unwrap().unwrap_err();
        assert!(problem.to_string().starts_with("line 1 of `audit.jsonl` is invalid: "), "{problem}");
        assert_eq!(newest(dir.path(), 3).unwrap().count(), 0);
    }
}
