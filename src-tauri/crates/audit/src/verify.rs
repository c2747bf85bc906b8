//! Verifies all files of a log from its beginning, without the trusted process.
//!
//! - If the oldest entry is not entry 1, a later entry must record the removal of the older ones.

use crate::Entry;
use crate::chain::{self, Written, follow};
use crate::volumes::{self, Volume};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Text that every entry about a removal contains. It cannot occur inside a string value, because quotes are escaped
/// there.
const REMOVED: &str = "\"event\":\"retention\"";

/// Result of verifying a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Sequence number of the last valid entry before the first problem.
    pub entries: u64,
    /// Hash of the last valid entry.
    pub head: String,
    /// Number of older entries that were removed by retention.
    pub removed: u64,
    /// Sequence number of the entry that records the removal.
    pub removal: Option<u64>,
    /// Number of known entries that the log contains.
    pub found: usize,
    /// First problem, with its file and line; `None` if the log is valid.
    pub problem: Option<String>,
    /// `true` if the problem is a last line without a line feed, as after a crash.
    pub torn: bool,
}

impl Checked {
    fn of(volume: ReadVolume) -> Self {
        let Written { entries, head } = volume.at;
        let (removed, removal, found) = (0, None, 0);
        Self { entries, head, removed, removal, found, problem: volume.problem, torn: volume.torn }
    }

    /// Returns `true` if the whole log is valid.
    #[must_use]
    pub fn intact(&self) -> bool {
        self.problem.is_none()
    }
}

/// Verifies a log like [`check`], and also verifies that the log contains the entry `written`. Later entries are
/// accepted.
///
/// # Errors
/// Returns an error if reading a file fails.
pub fn check_written(dir: &Path, written: &Written) -> io::Result<Checked> {
    check_all_written(dir, std::slice::from_ref(written))
}

/// Verifies a log like [`check`], and also verifies that the log contains all entries in `written` that retention did
/// not remove. The log must contain the newest of them, so that a forged log cannot claim that all of them were
/// removed.
///
/// # Errors
/// Returns an error if reading a file fails.
pub fn check_all_written(dir: &Path, written: &[Written]) -> io::Result<Checked> {
    let mut at: BTreeMap<u64, Option<String>> = written.iter().map(|known| (known.entries, None)).collect();
    let mut checked = walk(dir, |position| {
        if let Some(found) = at.get_mut(&position.entries) {
            *found = Some(position.head.clone());
        }
    })?;
    let is_found = |known: &Written| at.get(&known.entries).and_then(Option::as_ref) == Some(&known.head);
    checked.found = written.iter().filter(|known| is_found(known)).count();
    let newest = written.iter().map(|known| known.entries).max();
    let is_missing = |known: &&Written| {
        let may_be_removed = known.entries < checked.removed && Some(known.entries) != newest;
        known.entries > 0 && !may_be_removed && !is_found(known)
    };
    if checked.intact()
        && let Some(known) = written.iter().find(is_missing)
    {
        let is_there = at.get(&known.entries).is_some_and(Option::is_some);
        checked.problem = Some(if known.entries <= checked.removed && !is_there {
            format!("it begins after entry {} and does not contain entry {}", checked.removed, known.entries)
        } else {
            missing(known, checked.entries, is_there)
        });
    }
    Ok(checked)
}

/// Describes the problem of a log that lacks a known entry. `is_there` is `true` if the log contains a different entry
/// in its place.
pub(super) fn missing(known: &Written, entries: u64, is_there: bool) -> String {
    if is_there {
        format!("line {}: it does not match the recorded entry", known.entries)
    } else {
        format!("it ends after {entries} of {} entries", known.entries)
    }
}

/// Verifies a log from its beginning. A log that does not exist counts as empty and valid.
///
/// # Errors
/// Returns an error if reading a file fails.
pub fn check(dir: &Path) -> io::Result<Checked> {
    walk(dir, |_| ())
}

/// Follows the hash chain through all files, and calls `see` with the position at the beginning and after each entry.
fn walk(dir: &Path, mut see: impl FnMut(&Written)) -> io::Result<Checked> {
    let volumes = volumes::list(dir)?;
    let many = volumes.len() > 1;
    let begin = match volumes.first() {
        Some(oldest) => oldest.open()?.begins_after()?.filter(|at| at.entries > 0),
        None => None,
    };
    let mut at = begin.clone().unwrap_or_else(Written::nothing);
    // A later entry must record the removal of the older entries.
    let mut removal = None;
    let mut removed = |entry: Entry| {
        let told = entry.removed.map(|gone| Written { entries: gone.entries, head: gone.link });
        if told.is_some() && told == begin {
            removal.get_or_insert(entry.seq);
        }
    };
    see(&at);
    let mut checked = Checked::of(ReadVolume { at: at.clone(), bytes: 0, problem: None, torn: false });
    let count = volumes.len();
    for (number, volume) in volumes.iter().enumerate() {
        let volume = volume.open()?;
        let next = at.entries + 1;
        let read = match volume.first {
            Some(first) if first != next => {
                let problem =
                    format!("`{}` does not follow: the entries from {next} on are missing", volume.name());
                ReadVolume { at, bytes: 0, problem: Some(problem), torn: false }
            }
            Some(_) | None => read(&volume, at, many, &mut see, &mut removed)?,
        };
        at = read.at.clone();
        let is_last = number + 1 == count;
        checked = Checked { torn: read.torn && is_last, ..Checked::of(read) };
        if !checked.intact() {
            break;
        }
    }
    if let Some(begin) = begin {
        (checked.removed, checked.removal) = (begin.entries, removal);
        if checked.intact() && removal.is_none() {
            checked.problem = Some(format!(
                "the entries up to {} are missing, and no later entry records that they were removed by age",
                begin.entries
            ));
        }
    }
    Ok(checked)
}

/// Result of verifying one file of a log.
pub(super) struct ReadVolume {
    /// Position after the last valid line.
    pub(super) at: Written,
    /// Length of the valid lines in bytes.
    pub(super) bytes: u64,
    /// First problem, with its line.
    pub(super) problem: Option<String>,
    /// `true` if the problem is a line without a line feed.
    pub(super) torn: bool,
}

/// Follows the hash chain through one file, starting at the position `begin`. If `named` is `true`, problems include
/// the file name.
pub(super) fn read(
    volume: &Volume,
    begin: Written,
    named: bool,
    mut see: impl FnMut(&Written),
    mut removed: impl FnMut(Entry),
) -> io::Result<ReadVolume> {
    let mut read = ReadVolume { at: begin, bytes: 0, problem: None, torn: false };
    let mut reader = BufReader::new(&volume.file);
    let (mut line, mut number) = (Vec::new(), 0_u64);
    loop {
        line.clear();
        number += 1;
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(read);
        }
        match follow(&line, &read.at) {
            Ok(hash) => {
                read.at = Written { entries: read.at.entries + 1, head: hash };
                read.bytes += line.len() as u64;
                see(&read.at);
                if chain::contains(&line, REMOVED)
                    && let Ok(entry) = serde_json::from_slice(&line)
                {
                    removed(entry);
                }
            }
            Err(problem) => {
                let file = if named { format!("`{}`, ", volume.name()) } else { String::new() };
                read.torn = line.last() != Some(&b'\n');
                read.problem = Some(format!("{file}line {number}: {problem}"));
                return Ok(read);
            }
        }
    }
}
