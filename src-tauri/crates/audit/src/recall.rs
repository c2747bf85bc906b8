//! The decisions whose end has not been read yet: an end names its decision, and repeats nothing of it.

use crate::{Entry, Event};
use std::collections::BTreeMap;

/// The number of decisions that are kept; the oldest go first.
const MOST: usize = 10_000;

/// Decisions without an end, by their position.
#[derive(Debug, Default)]
pub(super) struct Recall(BTreeMap<u64, Entry>);

impl Recall {
    /// Fills in what an entry leaves out, if it is known.
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
                if self.0.len() > MOST {
                    self.0.pop_first();
                }
            }
            (_, _) => {}
        }
    }
}

impl Entry {
    /// Takes over what a decision says of its call.
    pub(super) fn is_about(&mut self, decision: &Self) {
        let Self { event, summary, seq, timestamp, of, result, duration_ms, prev, .. } = self.clone();
        let about = decision.follow_up(event, summary);
        *self = Self { seq, timestamp, of, result, duration_ms, prev, ..about };
    }
}
