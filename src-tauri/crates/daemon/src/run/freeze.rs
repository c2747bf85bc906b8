//! Stops all programs of a paused run, and continues them.

use super::Run;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time in which every program must stop.
const STOP_BOUND: Duration = Duration::from_secs(2);

/// Interval between two checks.
const CHECK: Duration = Duration::from_millis(5);

impl Run {
    /// Stops the programs while the run is paused.
    pub(super) async fn follow_pauses(self: Arc<Self>) {
        let mut stops = self.services.broker.stops().watch();
        let mut is_frozen = false;
        loop {
            let is_paused = stops.borrow_and_update().paused.contains(&self.id);
            if is_paused != is_frozen {
                is_frozen = is_paused;
                let supervisor = self.pid;
                let act = move || {
                    if is_paused {
                        return freeze(supervisor);
                    }
                    signal_all(supervisor, Signal::CONT);
                    true
                };
                // Fails only while the trusted process is exiting, which ends the run.
                if tokio::task::spawn_blocking(act).await.is_ok_and(|done| !done) {
                    tracing::error!(run = self.id, "the run could not be paused, so it is ended");
                    self.end();
                }
            }
            if stops.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Stops every process of the sandbox, and returns whether all have stopped.
///
/// A process that has a stop signal pending runs no more of its own code, but a `fork` in progress may still create another, so this
/// repeats until all have stopped.
fn freeze(supervisor: u32) -> bool {
    let deadline = Instant::now() + STOP_BOUND;
    loop {
        signal_all(supervisor, Signal::STOP);
        let all = inside(supervisor);
        // A sandbox has at least its first process, unless the processes cannot be listed.
        if !all.is_empty() && all.into_iter().all(has_stopped) {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(CHECK);
    }
}

/// Sends a signal to all. Parents stop before their children and continue after them, so that none notices.
fn signal_all(supervisor: u32, signal: Signal) {
    let mut all = inside(supervisor);
    if signal == Signal::CONT {
        all.reverse();
    }
    for process in all {
        let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { continue };
        // Fails if the process has exited.
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        // The number may belong to another process by now.
        if is_inside(process, supervisor) {
            let _ = pidfd_send_signal(held, signal);
        }
    }
}

/// Returns the processes of the sandbox: the supervisor's descendants in another PID namespace.
pub(super) fn inside(supervisor: u32) -> Vec<u32> {
    let (mut found, mut seen) = (vec![supervisor], HashSet::from([supervisor]));
    let mut at = 0;
    while let Some(process) = found.get(at).copied() {
        let children = children(process).into_iter().filter(|child| seen.insert(*child));
        found.extend(children);
        at += 1;
    }
    found.retain(|process| is_inside(*process, supervisor));
    found
}

fn is_inside(process: u32, supervisor: u32) -> bool {
    let namespace = namespace(process);
    namespace.is_some() && namespace != self::namespace(supervisor)
}

fn namespace(process: u32) -> Option<OsString> {
    fs::read_link(format!("/proc/{process}/ns/pid")).ok().map(Into::into)
}

/// Returns the children of all threads of a process.
fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Returns whether a process is stopped or gone.
fn has_stopped(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may contain spaces.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_none_or(|state| matches!(state, 'T' | 't' | 'Z' | 'X'))
}
