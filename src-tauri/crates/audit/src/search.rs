//! Searches the entries of a log, newest first.
//!
//! - An index next to each log file narrows a search to candidate lines, which are then read and checked. A missing,
//!   outdated or damaged index is rebuilt. Verification never uses the index.
//! - If the index cannot be built, every line is read.

mod calls;
mod count_key;
mod counts;
mod filter;
mod index;

pub use calls::{FoundCall, entries_of_call, search_calls};
pub use counts::{DecisionCounts, decisions_by_period, decisions_by_rule};
pub use filter::Filter;

use crate::decision_cache::DecisionCache;
use crate::volumes::{self, Volume};
use crate::{Entry, LogLine};
use calls::call_key;
use filter::IndexConditions;
use index::Index;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Returns the newest matching entries, newest first.
///
/// # Errors
/// Returns an error if reading the log fails.
pub fn search(dir: &Path, filter: &Filter, limit: usize) -> io::Result<Vec<Entry>> {
    let (conditions, mut found) = (IndexConditions::from_filter(filter), Vec::new());
    for volume in volumes::list(dir)?.iter().rev() {
        let volume = &volume.open()?;
        let mut found_in_volume = Vec::new();
        let by_index = up_to_date_index(dir, volume).and_then(|index| {
            let Some(index) = index else { return Ok(()) };
            index.find(&volume.file, &conditions, |entry| {
                if filter.matches(&entry) {
                    found_in_volume.push(entry);
                }
                Ok(found.len() + found_in_volume.len() < limit)
            })
        });
        if by_index.is_err() {
            found_in_volume = read_through(volume, filter, limit - found.len())?;
        }
        found.append(&mut found_in_volume);
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

/// Updates the indexes of the two newest files.
///
/// # Errors
/// Returns an error if an index cannot be written. The next search tries again or, if that fails too, reads every
/// line.
pub(super) fn catch_up(dir: &Path) -> io::Result<()> {
    let volumes = volumes::list(dir)?;
    volumes.iter().rev().take(2).try_for_each(|volume| up_to_date_index(dir, &volume.open()?).map(drop))
}

/// Removes the index of a log file that no longer exists.
pub(super) fn forget(dir: &Path, first: u64) {
    index::remove(&index::path(dir, first));
}

/// Returns the up-to-date index of a log file, or `None` if the file is empty.
fn up_to_date_index(dir: &Path, volume: &Volume) -> io::Result<Option<Index>> {
    let first = match volume.first {
        Some(first) => first,
        None => match volume.start_position()? {
            Some(before) => before.entries + 1,
            None => return Ok(None),
        },
    };
    let path = index::path(dir, first);
    let up_to_date = || Index::open(&path).and_then(|mut index| index.catch_up(&volume.file).map(|()| index));
    up_to_date()
        .or_else(|_| {
            index::remove(&path);
            up_to_date()
        })
        .map(Some)
}

/// Searches a log file without its index, by reading every line.
fn read_through(volume: &Volume, filter: &Filter, limit: usize) -> io::Result<Vec<Entry>> {
    let mut reader = BufReader::new(volume.file.try_clone()?);
    io::Seek::rewind(&mut reader)?;
    let (mut line, mut decision_cache, mut found) = (Vec::new(), DecisionCache::default(), Vec::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        if let Some(LogLine::Entry(entry)) = LogLine::parse(&line, &mut decision_cache)
            && filter.matches(&entry)
        {
            found.push(*entry);
        }
        line.clear();
    }
    found.reverse();
    found.truncate(limit);
    Ok(found)
}

#[cfg(test)]
mod tests;
