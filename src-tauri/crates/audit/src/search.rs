//! Finding entries of a log, newest first.
//!
//! - An index beside each file of the log names the lines that may match; the line itself says whether it does. The index is
//!   made anew when it is missing, behind or damaged, and is gone by for nothing else: never for checking the log.
//! - Where the index cannot be made or read, every line is read.

mod filter;
mod index;

pub use filter::Filter;

use crate::recall::Recall;
use crate::volumes::{self, Volume};
use crate::{Entry, Found};
use filter::Narrow;
use index::Index;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The newest entries that match, newest first.
///
/// # Errors
/// When the log cannot be read.
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
                found.len() + here.len() < limit
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

/// Brings the index of the newest files up to date.
///
/// # Errors
/// When one cannot be written: the next search does it, or does without.
pub(super) fn catch_up(dir: &Path) -> io::Result<()> {
    let volumes = volumes::list(dir)?;
    volumes.iter().rev().take(2).try_for_each(|volume| indexed(dir, &volume.open()?).map(drop))
}

/// Removes the index of a file that is removed.
pub(super) fn forget(dir: &Path, first: u64) {
    index::remove(&index::path(dir, first));
}

/// The index of a file, up to date. Nothing, of an empty file.
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

/// As with an index, by every line.
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
