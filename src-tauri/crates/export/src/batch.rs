//! Records that were read but not yet accepted by the collector.

use crate::event::ExportedEvent;
use crate::heads::SignedHead;
use crate::reader::ReadEntry;
use ironcurtain_audit::{LogPosition, LostRange};
use std::collections::VecDeque;

/// Change to the export's state to make after a record was accepted.
#[derive(Debug)]
pub(crate) enum StateChange {
    /// Advance the position to this place.
    Advance(LogPosition),
    /// Remove this range from the lost ranges to report.
    RangeReported(LostRange),
    /// Set the number of entries covered by the last head that was sent.
    HeadSent(u64),
}

/// Records that were read but not yet accepted by the collector, in order.
#[derive(Debug, Default)]
pub(crate) struct Batch(VecDeque<Record>);

#[derive(Debug)]
struct Record {
    event: ExportedEvent,
    on_accepted: StateChange,
    /// Length of the record's line in the log, in bytes.
    bytes: u64,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the entries' total length in the log, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|record| record.bytes).sum()
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = &ExportedEvent> {
        self.0.iter().map(|record| &record.event)
    }

    /// Removes the first `count` records and returns their state changes.
    pub(crate) fn remove_first(&mut self, count: usize) -> impl Iterator<Item = StateChange> {
        self.0.drain(..count.min(self.0.len())).map(|record| record.on_accepted)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn push_lost(&mut self, range: &LostRange, time_ms: u64) {
        let event = ExportedEvent::lost(range, time_ms);
        self.0.push_back(Record { event, on_accepted: StateChange::RangeReported(range.clone()), bytes: 0 });
    }

    pub(crate) fn push_head(&mut self, head: &SignedHead) {
        let event = ExportedEvent::head(&head.line(), &head.signature, head.time);
        self.0.push_back(Record { event, on_accepted: StateChange::HeadSent(head.entries), bytes: 0 });
    }

    pub(crate) fn push_entries(&mut self, entries: Vec<ReadEntry>) {
        let records = entries.into_iter().map(|ReadEntry { event, position, bytes }| Record {
            event,
            on_accepted: StateChange::Advance(position),
            bytes,
        });
        self.0.extend(records);
    }
}
