//! Removes grants when they expire, even if the wall clock was set or the machine was suspended.

use super::owner::{Command, Shared};
use super::send_ends;
use ironcurtain_audit::clock::{Alarm, Moment};
use std::io;
use std::sync::{Arc, mpsc};
use tokio::task::AbortHandle;

/// Background task that waits for expiry times. Dropping it aborts the task.
#[derive(Debug)]
pub(super) struct Timing(AbortHandle);

impl Drop for Timing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) fn start(shared: Arc<Shared>, commands: mpsc::Sender<Command>) -> io::Result<Timing> {
    let alarm = Alarm::new(&shared.published.clock)?;
    Ok(Timing(tokio::spawn(watch(shared, commands, alarm)).abort_handle()))
}

async fn watch(shared: Arc<Shared>, commands: mpsc::Sender<Command>, alarm: Alarm) {
    let mut table = shared.published.watch();
    loop {
        table.mark_unchanged();
        let next = shared.published.next_end();
        // The alarm is set before the clocks are read, so that no change in between is missed.
        if let Some(next) = next {
            set(&alarm, next);
        }
        send_ends(&commands, shared.published.expire());
        let changed = tokio::select! {
            changed = table.changed() => changed.is_ok(),
            () = alarm.fired(), if next.is_some() => true,
        };
        if !changed {
            return;
        }
    }
}

fn set(alarm: &Alarm, next: Moment) {
    if let Err(problem) = alarm.set(next) {
        tracing::error!(%problem, "failed to set the alarm; grants expire only when something else changes");
    }
}
