//! Verifies all files of a log from its beginning, without the trusted process.
//!
//! - If the oldest entry is not entry 1, a later entry must record the removal of the older ones.

use crate::Entry;
use crate::chain::{self, ChainPosition, verify_line};
use crate::volumes::{self, Volume};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Text that every entry about a removal contains. It cannot occur inside a string value, because quotes are escaped
/// there.
const REMOVED: &str = "\"event\":\"retention\"";

/// Result of verifying a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogCheck {
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

impl LogCheck {
    fn from_volume(volume: VerifiedVolume) -> Self {
        let ChainPosition { entries, head } = volume.position;
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
pub fn check_written(dir: &Path, written: &ChainPosition) -> io::Result<LogCheck> {
    check_all_written(dir, std::slice::from_ref(written))
}

/// Verifies a log like [`check`], and also verifies that the log contains all entries in `written` that retention did
/// not remove. The log must contain the newest of them so that a forged log cannot claim that all of them were
/// removed.
///
/// # Errors
/// Returns an error if reading a file fails.
pub fn check_all_written(dir: &Path, written: &[ChainPosition]) -> io::Result<LogCheck> {
    let mut at: BTreeMap<u64, Option<String>> = written.iter().map(|known| (known.entries, None)).collect();
    let mut checked = verify_chain(dir, |position| {
        if let Some(found) = at.get_mut(&position.entries) {
            *found = Some(position.head.clone());
        }
    })?;
    let is_found =
        |known: &ChainPosition| at.get(&known.entries).and_then(Option::as_ref) == Some(&known.head);
    checked.found = written.iter().filter(|known| is_found(known)).count();
    let newest = written.iter().map(|known| known.entries).max();
    let is_missing = |known: &&ChainPosition| {
        let may_be_removed = known.entries < checked.removed && Some(known.entries) != newest;
        known.entries > 0 && !may_be_removed && !is_found(known)
    };
    if checked.intact()
        && let Some(known) = written.iter().find(is_missing)
    {
        let has_other_entry = at.get(&known.entries).is_some_and(Option::is_some);
        checked.problem = Some(if known.entries <= checked.removed && !has_other_entry {
            format!("it begins after entry {} and does not contain entry {}", checked.removed, known.entries)
        } else {
            missing(known, checked.entries, has_other_entry)
        });
    }
    Ok(checked)
}

/// Describes the problem of a log that lacks a known entry. `has_other_entry` is `true` if the log contains a different
/// entry in its place.
pub(super) fn missing(known: &ChainPosition, entries: u64, has_other_entry: bool) -> String {
    if has_other_entry {
        format!("line {}: it does not match the recorded entry", known.entries)
    } else {
        format!("it ends after {entries} of {} entries", known.entries)
    }
}

/// Verifies a log from its beginning. A log that does not exist counts as empty and valid.
///
/// # Errors
/// Returns an error if reading a file fails.
pub fn check(dir: &Path) -> io::Result<LogCheck> {
    verify_chain(dir, |_| ())
}

/// Follows the hash chain through all files, and calls `on_position` with the position at the beginning and after each
/// entry.
fn verify_chain(dir: &Path, mut on_position: impl FnMut(&ChainPosition)) -> io::Result<LogCheck> {
    let volumes = volumes::list(dir)?;
    let many = volumes.len() > 1;
    let begin = match volumes.first() {
        Some(oldest) => oldest.open()?.start_position()?.filter(|at| at.entries > 0),
        None => None,
    };
    let mut at = begin.clone().unwrap_or_else(ChainPosition::start);
    // A later entry must record the removal of the older entries.
    let mut removal = None;
    let mut removed = |entry: Entry| {
        let recorded = entry.removed.map(|range| ChainPosition { entries: range.entries, head: range.link });
        if recorded.is_some() && recorded == begin {
            removal.get_or_insert(entry.seq);
        }
    };
    on_position(&at);
    let mut checked =
        LogCheck::from_volume(VerifiedVolume { position: at.clone(), bytes: 0, problem: None, torn: false });
    let count = volumes.len();
    for (number, volume) in volumes.iter().enumerate() {
        let volume = volume.open()?;
        let next = at.entries + 1;
        let read = match volume.first {
            Some(first) if first != next => {
                let problem =
                    format!("`{}` does not follow: the entries from {next} on are missing", volume.name());
                VerifiedVolume { position: at, bytes: 0, problem: Some(problem), torn: false }
            }
            Some(_) | None => read(&volume, at, many, &mut on_position, &mut removed)?,
        };
        at = read.position.clone();
        let is_last = number + 1 == count;
        checked = LogCheck { torn: read.torn && is_last, ..LogCheck::from_volume(read) };
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
pub(super) struct VerifiedVolume {
    /// Position after the last valid line.
    pub(super) position: ChainPosition,
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
    begin: ChainPosition,
    named: bool,
    mut on_position: impl FnMut(&ChainPosition),
    mut removed: impl FnMut(Entry),
) -> io::Result<VerifiedVolume> {
    let mut read = VerifiedVolume { position: begin, bytes: 0, problem: None, torn: false };
    let mut reader = BufReader::new(&volume.file);
    let (mut line, mut number) = (Vec::new(), 0_u64);
    loop {
        line.clear();
        number += 1;
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(read);
        }
        match verify_line(&line, &read.position) {
            Ok(hash) => {
                read.position = ChainPosition { entries: read.position.entries + 1, head: hash };
                read.bytes += line.len() as u64;
                on_position(&read.position);
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
