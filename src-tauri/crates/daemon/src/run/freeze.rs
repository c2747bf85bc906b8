//! Suspends all of a run's programs while the run is paused, and resumes them afterwards.

use super::Run;
use ironcurtain_server::served_files::{is_in_sandbox, sandbox_processes};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time to suspend all programs. If suspending takes longer, the run is terminated.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval between checks while programs are being suspended.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Interval between checks that a paused run's programs are still suspended. A program can arrange before the pause that
/// the kernel resumes it, for example with a timer that sends `SIGCONT`.
const RECHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Number of times that programs are suspended again in one pause before the run is terminated.
const MAX_RESUMES: u32 = 8;

impl Run {
    /// Suspends and resumes the programs whenever the run is paused or resumed.
    pub(super) async fn follow_pauses(self: Arc<Self>) {
        let mut stops = self.services.broker.stops().watch();
        let (mut is_frozen, mut resumes) = (false, 0);
        loop {
            let is_paused = stops.borrow_and_update().paused.contains(&self.id);
            if is_paused != is_frozen {
                (is_frozen, resumes) = (is_paused, 0);
                let supervisor = self.pid;
                if is_paused {
                    // From now on, each read is judged, which waits until the run is resumed.
                    self.files.suspend_readable_folders();
                }
                let apply = move || {
                    if is_paused {
                        return freeze(supervisor);
                    }
                    signal_all(supervisor, Signal::CONT);
                    true
                };
                // An error occurs only while the daemon exits, which also terminates the run.
                if tokio::task::spawn_blocking(apply).await.is_ok_and(|done| !done) {
                    tracing::error!(run = self.id, "failed to pause the run; terminating it");
                    self.files.end_with_reason("it could not be paused".to_owned());
                }
            }
            tokio::select! {
                changed = stops.changed() => if changed.is_err() {
                    return;
                },
                () = tokio::time::sleep(RECHECK_INTERVAL), if is_frozen => {
                    resumes += u32::from(self.has_resumed().await);
                    if resumes > MAX_RESUMES {
                        tracing::error!(run = self.id, "a program of a paused run keeps resuming itself; terminating the run");
                        self.files.end_with_reason("a program kept resuming itself while it was paused".to_owned());
                        return;
                    }
                }
            }
        }
    }

    /// Suspends programs that are running although the run is paused. Returns `true` if there were any. Terminates the run
    /// if they cannot be suspended.
    async fn has_resumed(&self) -> bool {
        let supervisor = self.pid;
        let refreeze = move || {
            let is_suspended = |process| has_stopped(process) || cannot_run(process);
            let has_resumed = !sandbox_processes(supervisor, &|| true).into_iter().all(is_suspended);
            (has_resumed, !has_resumed || freeze(supervisor))
        };
        // An error occurs only while the daemon exits, which also terminates the run.
        let (has_resumed, is_frozen) = tokio::task::spawn_blocking(refreeze).await.unwrap_or((false, true));
        if !is_frozen {
            tracing::error!(run = self.id, "failed to keep the run paused; terminating it");
            self.files.end_with_reason("it could not be paused".to_owned());
        }
        has_resumed
    }
}

/// Suspends all processes in the sandbox. Returns `false` if that takes longer than [`STOP_TIMEOUT`].
///
/// A process with a pending stop signal no longer runs its own code, but a `fork` in progress can still create a
/// process. Therefore, the signals are repeated until all processes are suspended. A process that waits in `vfork` is
/// not suspended until its child is resumed. After the time limit, processes that wait in the kernel with a pending
/// stop signal are therefore accepted.
fn freeze(supervisor: u32) -> bool {
    let deadline = Instant::now() + STOP_TIMEOUT;
    loop {
        signal_all(supervisor, Signal::STOP);
        let all = sandbox_processes(supervisor, &|| true);
        // A sandbox has at least one process. An empty list means that the processes could not be listed.
        if !all.is_empty() && all.iter().copied().all(has_stopped) {
            return true;
        }
        if Instant::now() > deadline {
            return !all.is_empty()
                && all.into_iter().all(|process| has_stopped(process) || cannot_run(process));
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
}

/// Sends a signal to all processes. Parents are suspended before their children and resumed after them so that parents
/// do not notice their children stopping.
fn signal_all(supervisor: u32, signal: Signal) {
    let mut all = sandbox_processes(supervisor, &|| true);
    if signal == Signal::CONT {
        all.reverse();
    }
    for process in all {
        let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { continue };
        // Skip a process that has exited.
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        // Check again that the process is in the sandbox, because the pid may have been reused before it was opened.
        if is_in_sandbox(process, supervisor) {
            let _ = pidfd_send_signal(pidfd, signal);
        }
    }
}

/// Returns `true` if every thread of the process is in an uninterruptible wait in the kernel with a pending stop
/// signal. The signal takes effect before the process runs its own code.
fn cannot_run(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.map(|thread| fs::read_to_string(thread.path().join("status"))).all(|status| {
        // A thread whose status cannot be read has exited.
        status.map_or(true, |status| has_pending_stop(&status))
    })
}

fn has_pending_stop(status: &str) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let pending = |name: &str| field(name).and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
    let stops = (pending("SigPnd:") | pending("ShdPnd:")) >> (Signal::STOP.as_raw() - 1) & 1 == 1;
    match field("State:").and_then(|state| state.chars().next()) {
        Some('D') => stops,
        Some(state) => matches!(state, 'T' | 't' | 'Z' | 'X'),
        None => false,
    }
}

/// Returns `true` if the process is suspended or has exited.
fn has_stopped(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The command name in parentheses may contain spaces.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_none_or(|state| matches!(state, 'T' | 't' | 'Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::has_pending_stop;

    #[test]
    fn only_a_pending_stop_keeps_a_waiting_thread_from_running() {
        const STOP: u64 = 1 << 18;
        let status = |state: &str, own: u64, shared: u64| {
            format!("Name:\tcat\nState:\t{state}\nSigPnd:\t{own:016x}\nShdPnd:\t{shared:016x}\n")
        };
        for (state, own, shared) in
            [("D (disk sleep)", STOP, 0), ("D (disk sleep)", 0, STOP), ("T (stopped)", 0, 0)]
        {
            assert!(has_pending_stop(&status(state, own, shared)), "{state} {own} {shared}");
        }
        for (state, shared) in
            [("D (disk sleep)", 0), ("D (disk sleep)", 1 << 8), ("R (running)", STOP), ("S (sleeping)", STOP)]
        {
            assert!(!has_pending_stop(&status(state, 0, shared)), "{state} {shared}");
        }
    }
}
