//! Searches for calls. All entries of a call form one result.

use super::{Filter, IndexConditions, Volume, read_through, up_to_date_index, volumes};
use crate::Entry;
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// A call with a matching entry, or a matching entry that belongs to no call.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundCall {
    /// Sequence number of the newest matching entry. Results are sorted by this number.
    pub newest_seq: u64,
    /// All entries of the call in the same file, newest first.
    pub entries: Vec<Entry>,
}

/// Returns the newest results, newest first. With `before`, returns only results with a smaller
/// [`FoundCall::newest_seq`]. To continue a search, pass the `newest_seq` of its last result.
///
/// # Errors
/// Returns an error if reading the log fails.
pub fn search_calls(
    dir: &Path,
    filter: &Filter,
    before: Option<u64>,
    limit: usize,
) -> io::Result<Vec<FoundCall>> {
    let conditions =
        IndexConditions { before: before.unwrap_or(u64::MAX), ..IndexConditions::from_filter(filter) };
    let mut found = Vec::new();
    for volume in volumes::list(dir)?.iter().rev() {
        let volume = &volume.open()?;
        let wanted = limit - found.len();
        let mut found_in_volume = Vec::new();
        let by_index = up_to_date_index(dir, volume).and_then(|index| {
            let Some(index) = index else { return Ok(()) };
            index.find(&volume.file, &conditions, |entry| {
                if filter.matches(&entry) {
                    let at = entry.seq;
                    let entries = index.call(&volume.file, entry)?;
                    // Each call is returned only once, at its newest matching entry.
                    if entries.iter().find(|one| filter.matches(one)).is_some_and(|first| first.seq == at) {
                        found_in_volume.push(FoundCall { newest_seq: at, entries });
                    }
                }
                Ok(found_in_volume.len() < wanted)
            })
        });
        if by_index.is_err() {
            found_in_volume = read_calls(volume, filter, conditions.before)?;
            found_in_volume.truncate(wanted);
        }
        found.append(&mut found_in_volume);
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

/// Returns all entries of the call to which the entry `seq` belongs, newest first. Returns only that entry if it
/// belongs to no call, and nothing if it does not exist.
///
/// # Errors
/// Returns an error if reading the log fails.
pub fn entries_of_call(dir: &Path, seq: u64) -> io::Result<Vec<Entry>> {
    for volume in volumes::list(dir)?.iter().rev() {
        let volume = &volume.open()?;
        let by_index = up_to_date_index(dir, volume).and_then(|index| {
            let Some(index) = index else { return Ok(None) };
            let entry = index.entry(&volume.file, seq)?;
            entry.map(|entry| index.call(&volume.file, entry)).transpose()
        });
        let found = match by_index {
            Ok(found) => found,
            Err(_) => {
                let calls = read_calls(volume, &Filter::default(), u64::MAX)?;
                let mut calls = calls.into_iter().map(|call| call.entries);
                calls.find(|entries| entries.iter().any(|entry| entry.seq == seq))
            }
        };
        if let Some(entries) = found {
            return Ok(entries);
        }
    }
    Ok(Vec::new())
}

/// Finds the calls in a log file without its index.
pub(super) fn read_calls(volume: &Volume, filter: &Filter, before: u64) -> io::Result<Vec<FoundCall>> {
    let mut calls: Vec<Vec<Entry>> = Vec::new();
    let mut call_indexes: HashMap<i64, usize> = HashMap::new();
    for entry in read_through(volume, &Filter::default(), usize::MAX)? {
        let key = call_key(&entry);
        match key.and_then(|key| call_indexes.get(&key)).and_then(|at| calls.get_mut(*at)) {
            Some(call) => call.push(entry),
            None => {
                call_indexes.extend(key.map(|key| (key, calls.len())));
                calls.push(vec![entry]);
            }
        }
    }
    let found = calls.into_iter().filter_map(|entries| {
        let at = entries.iter().find(|entry| filter.matches(entry))?.seq;
        (at < before).then_some(FoundCall { newest_seq: at, entries })
    });
    let mut found: Vec<FoundCall> = found.collect();
    found.sort_by_key(|call| Reverse(call.newest_seq));
    Ok(found)
}

/// Returns a hash that identifies an entry's call, or `None` if the entry belongs to no call.
pub(super) fn call_key(entry: &Entry) -> Option<i64> {
    let (session, request) = (entry.session.as_ref()?, entry.request_id.as_ref()?);
    let digest = Sha256::new().chain_update(session).chain_update("\n").chain_update(request).finalize();
    digest.first_chunk().map(|eight| i64::from_be_bytes(*eight))
}
