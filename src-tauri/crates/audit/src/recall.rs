//! Decisions whose outcomes have not been read yet. An outcome omits the fields that it shares with its decision.

use crate::{Entry, Event};
use std::collections::BTreeMap;

/// Maximum number of stored decisions. When it is exceeded, the oldest is dropped.
const MAX_COUNT: usize = 10_000;

/// Decisions whose outcomes have not been read yet, by sequence number.
#[derive(Debug, Default)]
pub(super) struct Recall(BTreeMap<u64, Entry>);

impl Recall {
    /// Fills in an entry's omitted fields. The fields that an outcome shares with its decision are filled in only if
    /// the decision is still stored.
    pub(super) fn complete(&mut self, entry: &mut Entry) {
        entry.unfold();
        match (entry.event, entry.of) {
            (Event::Outcome, Some(of)) => {
                if let Some(decision) = self.0.remove(&of) {
                    entry.is_about(&decision);
                }
            }
            (Event::Decision, _) => {
                let kept = entry.follow_up(Event::Decision, "");
                self.0.insert(entry.seq, kept);
                if self.0.len() > MAX_COUNT {
                    self.0.pop_first();
                }
            }
            (_, _) => {}
        }
    }
}

impl Entry {
    /// Copies the call's fields from the decision.
    pub(super) fn is_about(&mut self, decision: &Self) {
        let Self { event, summary, seq, timestamp, of, result, duration_ms, prev, .. } = self.clone();
        let about = decision.follow_up(event, summary);
        *self = Self { seq, timestamp, of, result, duration_ms, prev, ..about };
    }
}
