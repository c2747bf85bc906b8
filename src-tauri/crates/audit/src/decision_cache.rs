//! Decisions whose outcomes have not been read yet. An outcome omits the fields that it shares with its decision.

use crate::{Entry, Event};
use std::collections::BTreeMap;

/// Maximum number of stored decisions. When it is exceeded, the oldest is dropped.
const MAX_COUNT: usize = 10_000;

/// Decisions whose outcomes have not been read yet, by sequence number.
#[derive(Debug, Default)]
pub(super) struct DecisionCache(BTreeMap<u64, Entry>);

impl DecisionCache {
    /// Fills in an entry's omitted fields. The fields that an outcome shares with its decision are filled in only if
    /// the decision is still stored.
    pub(super) fn complete(&mut self, entry: &mut Entry) {
        entry.expand();
        match (entry.event, entry.decision_seq) {
            (Event::Outcome, Some(decision_seq)) => {
                if let Some(decision) = self.0.remove(&decision_seq) {
                    entry.copy_call_from(&decision);
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
    pub(super) fn copy_call_from(&mut self, decision: &Self) {
        let Self { event, summary, seq, timestamp, decision_seq, result, duration_ms, prev, .. } =
            self.clone();
        let base = decision.follow_up(event, summary);
        *self = Self { seq, timestamp, decision_seq, result, duration_ms, prev, ..base };
    }
}
