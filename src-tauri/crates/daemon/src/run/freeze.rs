//! Suspends all of a run's programs while the run is paused, and resumes them afterwards.

use super::Run;
use ironcurtain_server::served_files::{inside, is_inside};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time for all programs to become suspended. After it, the run is terminated.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval between two checks.
const CHECK: Duration = Duration::from_millis(5);

impl Run {
    /// Suspends and resumes the programs whenever the run is paused or resumed.
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
                // An error occurs only while the daemon exits, which also terminates the run.
                if tokio::task::spawn_blocking(act).await.is_ok_and(|done| !done) {
                    tracing::error!(run = self.id, "failed to pause the run; terminating it");
                    self.end();
                }
            }
            if stops.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Suspends all processes in the sandbox. Returns `false` if that takes longer than [`STOP_TIMEOUT`].
///
/// A process with a pending stop signal no longer runs its own code, but a `fork` in progress can still create a
/// process. Therefore repeats until all processes are suspended.
fn freeze(supervisor: u32) -> bool {
    let deadline = Instant::now() + STOP_TIMEOUT;
    loop {
        signal_all(supervisor, Signal::STOP);
        let all = inside(supervisor, &|| true);
        // A sandbox has at least one process. An empty list means that the processes could not be listed.
        if !all.is_empty() && all.into_iter().all(has_stopped) {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(CHECK);
    }
}

/// Sends a signal to all processes. Parents are suspended before their children and resumed after them, so that parents
/// do not notice their children stopping.
fn signal_all(supervisor: u32, signal: Signal) {
    let mut all = inside(supervisor, &|| true);
    if signal == Signal::CONT {
        all.reverse();
    }
    for process in all {
        let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { continue };
        // Skip a process that has exited.
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        // Check again that the process is in the sandbox, because the pid may have been reused before it was opened.
        if is_inside(process, supervisor) {
            let _ = pidfd_send_signal(held, signal);
        }
    }
}

/// Returns `true` if the process is suspended or has exited.
fn has_stopped(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The command name in parentheses may contain spaces.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_none_or(|state| matches!(state, 'T' | 't' | 'Z' | 'X'))
}
