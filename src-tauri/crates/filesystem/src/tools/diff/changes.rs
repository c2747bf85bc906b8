//! Finds the shortest list of changes between two lists of lines.
//!
//! - Uses Myers' greedy algorithm. Among several shortest results, it finds the same one as the reference server.
//! - After [`CHANGE_LIMIT`] changed lines, a search with a deadline takes over. The result of that search is correct,
//!   but can be longer than the shortest one or differ from the reference server's.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

const CHANGE_LIMIT: i64 = 1000;
const TIMEOUT: Duration = Duration::from_secs(2);

/// Kind of change to a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum DiffKind {
    Same,
    Removed,
    Added,
}

impl DiffKind {
    /// Returns the line's sign in a diff.
    pub(super) fn sign(self) -> char {
        match self {
            Self::Same => ' ',
            Self::Removed => '-',
            Self::Added => '+',
        }
    }
}

/// Consecutive lines with the same kind of change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) kind: DiffKind,
    pub(super) count: usize,
}

/// Returns the changes that turn `old` into `new`.
pub(super) fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    Search::new(old, new).run().unwrap_or_else(|| approximate(old, new))
}

/// Furthest point that a path reaches on a diagonal. A diagonal's number is the position in the old text minus the
/// position in the new text.
#[derive(Clone, Copy)]
struct FurthestPoint {
    old: i64,
    last: Option<usize>,
}

/// Change on a path, linked to the step before it.
struct Step {
    change: Change,
    previous: Option<usize>,
}

struct Search<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    steps: Vec<Step>,
    reached: HashMap<i64, FurthestPoint>,
    /// Lowest and highest diagonals that can still lead to a result. Paths beyond them have reached the end of a text.
    diagonals: (i64, i64),
}

impl<'a> Search<'a> {
    fn new(old: &'a [&'a str], new: &'a [&'a str]) -> Self {
        Self { old, new, steps: Vec::new(), reached: HashMap::new(), diagonals: (i64::MIN, i64::MAX) }
    }

    fn run(mut self) -> Option<Vec<Change>> {
        let mut start = FurthestPoint { old: 0, last: None };
        let new = self.skip_equal(&mut start, 0);
        if self.is_end(start.old, new) {
            return Some(self.collect_changes(start.last));
        }
        self.reached.insert(0, start);
        for length in 1..=CHANGE_LIMIT {
            let mut diagonal = self.diagonals.0.max(length.saturating_neg());
            while diagonal <= self.diagonals.1.min(length) {
                if let Some(end) = self.advance(diagonal) {
                    return Some(self.collect_changes(end.last));
                }
                diagonal = diagonal.saturating_add(2);
            }
        }
        None
    }

    /// Extends the paths on `diagonal` by one change. Returns the end point if it is the end of both texts.
    fn advance(&mut self, diagonal: i64) -> Option<FurthestPoint> {
        let new_length = length(self.new);
        let below = self.reached.remove(&diagonal.saturating_sub(1));
        let above = self.reached.get(&diagonal.saturating_add(1)).copied();
        let removing = below.filter(|point| point.old < length(self.old));
        let adding = above.filter(|point| {
            let new = point.old.saturating_sub(diagonal).saturating_sub(1);
            (0..new_length).contains(&new)
        });
        let mut point = match (removing, adding) {
            (None, None) => {
                self.reached.remove(&diagonal);
                return None;
            }
            (Some(removing), Some(adding)) if removing.old < adding.old => self.step(adding, DiffKind::Added),
            (Some(removing), _) => self.step(removing, DiffKind::Removed),
            (None, Some(adding)) => self.step(adding, DiffKind::Added),
        };
        let new = self.skip_equal(&mut point, diagonal);
        if self.is_end(point.old, new) {
            return Some(point);
        }
        self.reached.insert(diagonal, point);
        if point.old >= length(self.old) {
            self.diagonals.1 = self.diagonals.1.min(diagonal.saturating_sub(1));
        }
        if new >= new_length {
            self.diagonals.0 = self.diagonals.0.max(diagonal.saturating_add(1));
        }
        None
    }

    /// Advances over equal lines and returns the position in the new text.
    fn skip_equal(&mut self, point: &mut FurthestPoint, diagonal: i64) -> i64 {
        let at = |lines: &'a [&'a str], position: i64| lines.get(usize::try_from(position).ok()?);
        let mut new = point.old.saturating_sub(diagonal);
        let mut count = 0_usize;
        while let (Some(left), Some(right)) = (at(self.old, point.old), at(self.new, new))
            && left == right
        {
            point.old = point.old.saturating_add(1);
            new = new.saturating_add(1);
            count = count.saturating_add(1);
        }
        if count > 0 {
            point.last = Some(self.push(Change { kind: DiffKind::Same, count }, point.last));
        }
        new
    }

    fn step(&mut self, point: FurthestPoint, kind: DiffKind) -> FurthestPoint {
        let old = point.old.saturating_add(i64::from(kind == DiffKind::Removed));
        let last = point.last.and_then(|last| self.steps.get(last));
        let (count, previous) = match last {
            Some(last) if last.change.kind == kind => (last.change.count, last.previous),
            _ => (0, point.last),
        };
        let change = Change { kind, count: count.saturating_add(1) };
        FurthestPoint { old, last: Some(self.push(change, previous)) }
    }

    fn push(&mut self, change: Change, previous: Option<usize>) -> usize {
        self.steps.push(Step { change, previous });
        self.steps.len().saturating_sub(1)
    }

    fn is_end(&self, old: i64, new: i64) -> bool {
        old >= length(self.old) && new >= length(self.new)
    }

    fn collect_changes(&self, mut last: Option<usize>) -> Vec<Change> {
        let mut changes = Vec::new();
        while let Some(step) = last.and_then(|last| self.steps.get(last)) {
            changes.push(step.change);
            last = step.previous;
        }
        changes.reverse();
        changes
    }
}

fn length(lines: &[&str]) -> i64 {
    i64::try_from(lines.len()).unwrap_or(i64::MAX)
}

fn approximate(old: &[&str], new: &[&str]) -> Vec<Change> {
    let deadline = Instant::now().checked_add(TIMEOUT);
    let operations = capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline);
    let change = |kind, count| Change { kind, count };
    let mut changes = Vec::new();
    for operation in operations {
        match operation {
            DiffOp::Equal { len, .. } => changes.push(change(DiffKind::Same, len)),
            DiffOp::Delete { old_len, .. } => changes.push(change(DiffKind::Removed, old_len)),
            DiffOp::Insert { new_len, .. } => changes.push(change(DiffKind::Added, new_len)),
            DiffOp::Replace { old_len, new_len, .. } => {
                changes.extend([change(DiffKind::Removed, old_len), change(DiffKind::Added, new_len)]);
            }
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_changes_produce_the_new_text() {
        let numbers: Vec<String> = (0..3000).map(|number| number.to_string()).collect();
        let old: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let mut few = old.clone();
        few.swap(10, 20);
        few.truncate(2900);
        let mut many = old.clone();
        many.reverse();
        for new in [few, many, Vec::new(), old.clone()] {
            assert_eq!(applied(&changes(&old, &new), &old, &new), new);
        }
    }

    proptest::proptest! {
        #[test]
        fn changes_turn_any_text_into_any_other(old in "[abc]{0,40}", new in "[abc]{0,40}") {
            let old: Vec<&str> = old.split("").collect();
            let new: Vec<&str> = new.split("").collect();
            proptest::prop_assert_eq!(applied(&changes(&old, &new), &old, &new), new);
        }
    }

    #[test]
    fn removals_come_before_additions() {
        let collect_changes = changes(&["a", "b", "c"], &["a", "x", "c"]);
        let change = |kind| Change { kind, count: 1 };
        assert_eq!(
            collect_changes,
            [DiffKind::Same, DiffKind::Removed, DiffKind::Added, DiffKind::Same].map(change)
        );
    }

    /// Applies changes to `old`, taking added lines from `new`.
    fn applied<'a>(changes: &[Change], old: &[&'a str], new: &[&'a str]) -> Vec<&'a str> {
        let (mut old_at, mut new_at) = (0, 0);
        let mut result = Vec::new();
        for Change { kind, count } in changes {
            let source = if *kind == DiffKind::Added {
                new.get(new_at..new_at + count)
            } else {
                old.get(old_at..old_at + count)
            };
            if *kind != DiffKind::Removed {
                result.extend_from_slice(source.expect("within the text"));
                new_at += count;
            }
            if *kind != DiffKind::Added {
                old_at += count;
            }
        }
        assert_eq!((old_at, new_at), (old.len(), new.len()));
        result
    }
}
