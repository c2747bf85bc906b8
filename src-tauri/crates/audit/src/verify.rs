//! Checking a log from its beginning, whoever wrote it: every file of it, in order.
//!
//! - Where the log begins later than with its first entry, an entry of it must say that the older ones were removed.

use crate::Entry;
use crate::chain::{self, Written, follow};
use crate::volumes::{self, Volume};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Part of every line that says that older entries were removed; in a text, its quotes would be escaped.
const REMOVED: &str = "\"event\":\"retention\"";

/// Result of reading a whole log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The number of the last entry that holds, before the first problem.
    pub entries: u64,
    /// Hash of it.
    pub head: String,
    /// The number of entries before the first that is there: they were removed by age.
    pub removed: u64,
    /// The first problem, with its line.
    pub problem: Option<String>,
    /// The problem is a last line without its line feed, as a crash leaves it.
    pub torn: bool,
}

impl Checked {
    fn of(volume: ReadVolume) -> Self {
        let Written { entries, head } = volume.at;
        Self { entries, head, removed: 0, problem: volume.problem, torn: volume.torn }
    }

    /// Returns `true` if the whole log holds.
    #[must_use]
    pub fn intact(&self) -> bool {
        self.problem.is_none()
    }
}

/// Reads a log as [`check`] does. What was written must be in it, and more may follow.
///
/// # Errors
/// When a file cannot be read.
pub fn check_written(dir: &Path, written: &Written) -> io::Result<Checked> {
    let mut found = (written.entries == 0).then(|| Written::nothing().head);
    let mut checked = walk(dir, |at| {
        if at.entries == written.entries {
            found = Some(at.head.clone());
        }
    })?;
    let begins_later = checked.removed >= written.entries;
    if checked.intact() && !begins_later && found.as_ref() != Some(&written.head) {
        checked.problem = Some(missing(written, checked.entries, found.is_some()));
    }
    Ok(checked)
}

/// The sentence about an entry that is known and is not in the log.
pub(super) fn missing(known: &Written, entries: u64, is_there: bool) -> String {
    if is_there {
        format!("line {}: it is not the one that was written", known.entries)
    } else {
        format!("it ends after {entries} of {} entries", known.entries)
    }
}

/// Reads a log from its beginning and follows the chain. A log that does not exist is empty and intact.
///
/// # Errors
/// When a file cannot be read.
pub fn check(dir: &Path) -> io::Result<Checked> {
    walk(dir, |_| ())
}

/// Follows the chain over all files, and shows the position after each entry.
fn walk(dir: &Path, mut see: impl FnMut(&Written)) -> io::Result<Checked> {
    let volumes = volumes::list(dir)?;
    let many = volumes.len() > 1;
    let begin = match volumes.first() {
        Some(oldest) => oldest.open()?.begins_after()?.filter(|at| at.entries > 0),
        None => None,
    };
    let mut at = begin.clone().unwrap_or_else(Written::nothing);
    // Who removed the older entries says so in a later one.
    let mut said = begin.is_none();
    let mut removed = |entry: Entry| {
        let told = entry.removed.map(|gone| Written { entries: gone.entries, head: gone.link });
        said |= told.is_some() && told == begin;
    };
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
        checked.removed = begin.entries;
        if checked.intact() && !said {
            checked.problem = Some(format!(
                "the entries up to {} are missing, and no later one says that they were removed by age",
                begin.entries
            ));
        }
    }
    Ok(checked)
}

/// A file that was read.
pub(super) struct ReadVolume {
    /// The position after the last line that holds.
    pub(super) at: Written,
    /// The length of what holds.
    pub(super) bytes: u64,
    /// The first problem.
    pub(super) problem: Option<String>,
    /// The problem is a line without its line feed.
    pub(super) torn: bool,
}

/// Follows the chain in one file, from what comes before it.
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
