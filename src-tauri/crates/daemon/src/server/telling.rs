//! Putting on record what one sandbox tells, of whom it is, and once.
//!
//! - INVARIANT: what is told stays in the sandboxes' own state until all of it is on record: whatever we are killed in the
//!   middle of, the next start finds it there.

use super::report::Report;
use ironcurtain_sandbox::{Event, Record};
use std::time::Duration;

/// How long a supervisor that was killed may take to be gone.
const GOING: Duration = Duration::from_secs(1);

/// What is told of one sandbox.
#[derive(Debug)]
pub(crate) struct Telling {
    report: Report,
    /// Where the supervisor keeps it.
    record: Record,
    /// How much was told.
    heard: usize,
    /// Whether all of that is on record.
    recorded: bool,
}

impl Telling {
    /// Of a sandbox that keeps there what it tells.
    pub(crate) fn new(report: Report, record: Record) -> Self {
        Self { report, record, heard: 0, recorded: true }
    }

    /// Puts the next that it told on record.
    pub(crate) async fn tell(&mut self, event: &Event) {
        if !event.is_finding() {
            return;
        }
        let id = self.record.id(self.heard);
        self.heard += 1;
        self.put(event, Some(id)).await;
    }

    /// It has told its end.
    pub(crate) async fn end(self) {
        if self.heard > 0 && self.recorded {
            let forgotten = tokio::task::spawn_blocking(move || self.record.forget()).await;
            forgotten_or_said(forgotten.unwrap_or_else(|problem| Err(problem.into())));
        }
    }

    /// It will tell no more: what it has kept beyond what was told, and whether it came to its end.
    pub(crate) async fn cut_short(mut self) {
        let (record, heard) = (self.record, self.heard);
        let read = tokio::task::spawn_blocking(move || (record.read(GOING), record)).await;
        // It was cut off by our own end, and is told at the next start.
        let Ok((kept, record)) = read else { return };
        self.record = record;
        let Some(kept) = kept else { return };
        for (id, event) in kept.after(heard) {
            self.put(event, id).await;
        }
        if self.recorded {
            let forgotten = tokio::task::spawn_blocking(|| kept.forget()).await;
            forgotten_or_said(forgotten.unwrap_or_else(|problem| Err(problem.into())));
        }
    }

    async fn put(&mut self, event: &Event, id: Option<String>) {
        // Nobody may wait for the rest of this.
        let before = std::mem::replace(&mut self.recorded, false);
        // What is not on record is in the log, and is kept.
        self.recorded = self.report.tell(event, id).await.is_ok() && before;
    }
}

fn forgotten_or_said(forgotten: std::io::Result<()>) {
    if let Err(problem) = forgotten {
        tracing::error!(%problem, "what a sandbox has told is on record, and is still kept beside it");
    }
}
