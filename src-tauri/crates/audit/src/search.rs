//! Reading the entries of a log.
//!
//! - What is kept at once has a bound, however long lines are.

use crate::Entry;
use ironcurtain_paths::bounded_read;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The longest line that is read whole. No line that this version writes is longer.
const LONGEST_LINE: usize = 1024 * 1024;

/// The number of bytes of a longer line that are looked at.
const HEAD: usize = 1000;

/// The number of bytes of lines that are kept at once.
const KEPT: usize = 32 * 1024 * 1024;

/// An entry that was found.
#[derive(Debug)]
pub enum Found {
    /// It is whole.
    Entry(Box<Entry>),
    /// It is too long to be read, as another version wrote it.
    TooLong {
        /// Position in the log.
        seq: u64,
        /// Milliseconds since the Unix epoch.
        timestamp: u64,
        /// Its length.
        bytes: u64,
    },
}

/// The newest lines of a log that are entries, newest first. One that is no entry is left out: checking the log names it.
///
/// # Errors
/// When the log cannot be read.
pub fn newest(log: &Path, limit: usize) -> io::Result<impl Iterator<Item = Found>> {
    let mut lines = BufReader::new(bounded_read::open(log)?);
    let mut newest = VecDeque::new();
    let mut kept = 0;
    while let Some(line) = next(&mut lines)? {
        kept += line.kept();
        newest.push_back(line);
        while newest.len() > limit || kept > KEPT {
            kept -= newest.pop_front().map_or(0, |line| line.kept());
        }
    }
    Ok(newest.into_iter().rev().filter_map(|line| line.found()))
}

/// Every entry in the first `length` bytes of a log, in order. A line that is not understood is an error, and the last.
///
/// # Errors
/// When the log cannot be opened.
pub fn all(log: &Path, length: u64) -> io::Result<impl Iterator<Item = io::Result<Entry>>> {
    let mut lines = BufReader::new(bounded_read::open(log)?.take(length));
    let mut numbers = 1_u64..;
    Ok(std::iter::from_fn(move || read(&mut lines, numbers.next()?).transpose()))
}

fn read(lines: &mut BufReader<io::Take<File>>, number: u64) -> io::Result<Option<Entry>> {
    let mut line = Vec::new();
    if lines.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let misread =
        |e| io::Error::new(io::ErrorKind::InvalidData, format!("line {number} is not understood: {e}"));
    serde_json::from_slice(&line).map(Some).map_err(misread)
}

/// A line of the log.
enum Line {
    Whole(Vec<u8>),
    /// Only its beginning, and how long it is.
    TooLong(Vec<u8>, u64),
}

impl Line {
    fn kept(&self) -> usize {
        match self {
            Self::Whole(line) | Self::TooLong(line, _) => line.len(),
        }
    }

    fn found(&self) -> Option<Found> {
        match self {
            Self::Whole(line) => serde_json::from_slice(line).ok().map(Found::Entry),
            Self::TooLong(head, bytes) => {
                let head = String::from_utf8_lossy(head);
                let (seq, timestamp) = (number(&head, "\"seq\":")?, number(&head, "\"timestamp\":")?);
                Some(Found::TooLong { seq, timestamp, bytes: *bytes })
            }
        }
    }
}

fn next(lines: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let read = lines.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if read < LONGEST_LINE || line.last() == Some(&b'\n') {
        return Ok(Some(Line::Whole(line)));
    }
    let rest = lines.skip_until(b'\n')?;
    line.truncate(HEAD);
    line.shrink_to_fit();
    Ok(Some(Line::TooLong(line, (read + rest) as u64)))
}

fn number(head: &str, field: &str) -> Option<u64> {
    let after = head.split_once(field)?.1;
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/without-grounds.jsonl")
    }

    #[test]
    fn the_newest_come_first_and_all_come_in_order() {
        let seq = |found: Found| match found {
            Found::Entry(entry) => entry.seq,
            Found::TooLong { seq, .. } => seq,
        };
        assert_eq!(newest(&fixture(), 3).unwrap().map(seq).collect::<Vec<_>>(), [20, 19, 18]);
        let length = fixture().metadata().unwrap().len();
        let all: Vec<u64> = all(&fixture(), length).unwrap().map(|entry| entry.unwrap().seq).collect();
        assert_eq!(all, (1..=20).collect::<Vec<_>>());
    }

    #[test]
    fn a_line_that_is_not_understood_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        std::fs::write(&log, "{}\n").unwrap();
        let problem = all(&log, 3).unwrap().next().unwrap().unwrap_err();
        assert!(problem.to_string().starts_with("line 1 is not understood: "), "{problem}");
        assert_eq!(newest(&log, 3).unwrap().count(), 0);
    }
}
