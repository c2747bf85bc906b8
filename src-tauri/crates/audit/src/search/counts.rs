//! Counts decisions by time and by rule.

use super::count_key::{CountKey, Kind};
use super::{Filter, Index, Volume, call_key, read_through, up_to_date_index, volumes};
use crate::{Entry, Event};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;

/// Decision counts for one period. Each call counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecisionCounts {
    /// Number of calls allowed without asking the user.
    pub allowed: u64,
    /// Number of questions to the user, regardless of the answers.
    pub asked: u64,
    /// Number of calls denied without asking the user.
    pub denied: u64,
}

/// Counts the decisions in `periods` consecutive periods of `period_ms` each, starting at `from_ms`.
///
/// # Errors
/// Returns an error if reading the log fails.
pub fn decisions_by_period(
    dir: &Path,
    from_ms: u64,
    period_ms: u64,
    periods: usize,
) -> io::Result<Vec<DecisionCounts>> {
    let mut counts = vec![DecisionCounts::default(); periods];
    count(dir, from_ms, period_ms, |count_key, count| {
        let Some(at) = usize::try_from(count_key.period).ok().and_then(|at| counts.get_mut(at)) else {
            return;
        };
        match (count_key.kind, count_key.was_asked) {
            (Kind::Asked, _) => at.asked += count,
            (Kind::Allowed, false) => at.allowed += count,
            (Kind::Denied, false) => at.denied += count,
            (Kind::Allowed | Kind::Denied, true) => {}
        }
    })?;
    Ok(counts)
}

/// Counts each rule's decisions since `since_ms`, in milliseconds since the Unix epoch.
///
/// # Errors
/// Returns an error if reading the log fails.
pub fn decisions_by_rule(dir: &Path, since_ms: u64) -> io::Result<BTreeMap<String, u64>> {
    let mut counts = BTreeMap::new();
    count(dir, since_ms, u64::MAX >> 1, |count_key, count| {
        if let Some(rule) = count_key.rule {
            *counts.entry(rule).or_default() += count;
        }
    })?;
    Ok(counts)
}

fn count(dir: &Path, since: u64, period_ms: u64, mut add: impl FnMut(CountKey, u64)) -> io::Result<()> {
    for volume in volumes::list(dir)?.iter().rev() {
        let volume = &volume.open()?;
        let by_index = up_to_date_index(dir, volume).and_then(|index| {
            let Some(index) = index else { return Ok((Vec::new(), None)) };
            counted(&index, since, period_ms)
        });
        let (counts, oldest) = match by_index {
            Ok(found) => found,
            Err(_) => (read_counts(volume, since, period_ms)?, None),
        };
        counts.into_iter().for_each(|(count_key, count)| add(count_key, count));
        if oldest.is_some_and(|oldest| oldest < since) {
            break;
        }
    }
    Ok(())
}

type CountsAndOldest = (Vec<(CountKey, u64)>, Option<u64>);

fn counted(index: &Index, since: u64, period_ms: u64) -> io::Result<CountsAndOldest> {
    let mut counts = Vec::new();
    index.count(since, period_ms, |count_key, count| counts.push((count_key, count)))?;
    Ok((counts, index.oldest()?))
}

/// Counts the decisions in a log file without its index.
fn read_counts(volume: &Volume, since: u64, period_ms: u64) -> io::Result<Vec<(CountKey, u64)>> {
    let entries = read_through(volume, &Filter::default(), usize::MAX)?;
    let question_key = |entry: &Entry| (entry.event == Event::Question).then(|| call_key(entry))?;
    let asked: HashSet<i64> = entries.iter().filter_map(question_key).collect();
    let count_key = |entry: Entry| {
        let kind = Kind::from_entry(&entry)?;
        let was_asked = call_key(&entry).is_some_and(|call| asked.contains(&call));
        let period = entry.timestamp.checked_sub(since)? / period_ms;
        let rule = entry.policy_decision.filter(|_| kind.is_final()).map(|decision| decision.rule);
        Some((CountKey { period, kind, rule, was_asked }, 1))
    };
    Ok(entries.into_iter().filter_map(count_key).collect())
}
