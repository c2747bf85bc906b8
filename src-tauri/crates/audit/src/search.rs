//! Searches the entries of a log, newest first.
//!
//! - An index next to each log file narrows a search to candidate lines, which are then read and checked. A missing,
//!   outdated or damaged index is rebuilt. Verification never uses the index.
//! - If the index cannot be built, every line is read.

mod calls;
mod counted;
mod counts;
mod filter;
mod index;

pub use calls::{FoundCall, call_of, search_calls};
pub use counts::{DecisionCounts, decisions_by_period, decisions_by_rule};
pub use filter::Filter;

use crate::recall::Recall;
use crate::volumes::{self, Volume};
use crate::{Entry, Found};
use calls::call_key;
use filter::Narrow;
use index::Index;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Returns the newest matching entries, newest first.
///
/// # Errors
/// Returns an error if reading the log fails.
pub fn search(dir: &Path, filter: &Filter, limit: usize) -> io::Result<Vec<Entry>> {
    let (narrow, mut found) = (Narrow::by(filter), Vec::new());
    for volume in volumes::list(dir)?.iter().rev() {
        let volume = &volume.open()?;
        let mut here = Vec::new();
        let by_index = indexed(dir, volume).and_then(|index| {
            let Some(index) = index else { return Ok(()) };
            index.find(&volume.file, &narrow, |entry| {
                if filter.takes(&entry) {
                    here.push(entry);
                }
                Ok(found.len() + here.len() < limit)
            })
        });
        if by_index.is_err() {
            here = read_through(volume, filter, limit - found.len())?;
        }
        found.append(&mut here);
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
    volumes.iter().rev().take(2).try_for_each(|volume| indexed(dir, &volume.open()?).map(drop))
}

/// Removes the index of a log file that no longer exists.
pub(super) fn forget(dir: &Path, first: u64) {
    index::remove(&index::path(dir, first));
}

/// Returns the up-to-date index of a log file, or `None` if the file is empty.
fn indexed(dir: &Path, volume: &Volume) -> io::Result<Option<Index>> {
    let first = match volume.first {
        Some(first) => first,
        None => match volume.begins_after()? {
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
    let (mut line, mut recall, mut found) = (Vec::new(), Recall::default(), Vec::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        if let Some(Found::Entry(entry)) = Found::of(&line, &mut recall)
            && filter.takes(&entry)
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
