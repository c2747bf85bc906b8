//! A running server process and its events.

use super::served::{FilesEvent, ServedProcess, files_event};
use super::stderr_tail::StderrTail;
use crate::server::control::SupervisorControl;
use crate::server::process::ProcessGuard;
use crate::server::replay::HandshakeOutcome;
use ironcurtain_mcp::server::{ReaderTask, ServerConnection};
use ironcurtain_sandbox::ControlOp;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// Maximum time for all processes in a sandbox to exit. Any remaining processes are then killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Server process, with the handles that keep it running.
pub(super) struct Running {
    pub(super) connection: ServerConnection,
    /// State of the served files, or `None` if grants are mounted instead.
    pub(super) files: Option<Box<ServedProcess>>,
    pub(super) guard: ProcessGuard,
    pub(super) reading: ReaderTask,
    pub(super) stderr_tail: StderrTail,
    pub(super) pid: Option<u32>,
    pub(super) handshake: Handshake,
    /// Number of the client's `initialize` request that was sent to the process.
    pub(super) initialize_number: Option<u64>,
}

/// State of the `initialize` handshake with a process.
#[derive(Debug)]
pub(super) enum Handshake {
    /// The process has not received `initialize`, because the client has yet to send it.
    None,
    /// The process has not answered `initialize`.
    Open {
        outcome: oneshot::Receiver<HandshakeOutcome>,
        /// Time at which the handshake fails, or `None` if the client is waiting for the handshake and applies its own
        /// timeout.
        deadline: Option<Instant>,
        /// `true` while only the version probe has been sent.
        is_probed: Arc<AtomicBool>,
    },
    /// The process has answered `initialize`.
    Complete,
}

impl Handshake {
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    pub(super) fn is_probed(&self) -> bool {
        matches!(self, Self::Open { is_probed, .. } if is_probed.load(Ordering::Relaxed))
    }

    pub(super) fn is_complete(&self) -> bool {
        matches!(self, Self::Complete)
    }
}

impl Running {
    pub(super) fn control(&mut self) -> Option<&mut SupervisorControl> {
        match &mut self.guard {
            ProcessGuard::Native { control, .. } => Some(control),
            ProcessGuard::Srt { .. } | ProcessGuard::Plain { .. } | ProcessGuard::Remote(_) => None,
        }
    }

    /// Stops the process, and waits until everything in its sandbox has exited. The next process then starts in a clean
    /// folder.
    pub(super) async fn stop(mut self) {
        let Some(control) = self.control() else { return };
        let end = async {
            // The supervisor kills all processes before it answers. If the request fails, the supervisor kills them
            // when the connection closes.
            if control.ask(ControlOp::Shutdown).await.is_ok() {
                control.exit().await;
            }
        };
        // After the time limit, dropping `self` kills the process.
        let _ = tokio::time::timeout(STOP_TIMEOUT, end).await;
    }

    /// Returns the signal for masks that may be lost, or `None` if the sandbox is not watched.
    pub(super) fn mask_alert(&mut self) -> Option<Arc<Notify>> {
        Some(self.control()?.watch()?.mask_check_needed())
    }

    /// Returns `true` if the server runs on another computer.
    pub(super) fn is_remote(&self) -> bool {
        matches!(self.guard, ProcessGuard::Remote(_))
    }

    /// Returns `true` if the mounts can be changed only by a restart.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self.guard, ProcessGuard::Srt { .. })
    }
}

/// Waits until masks may be lost. Never completes if `check` is `None`.
pub(super) async fn masks_may_be_lost(check: Option<Arc<Notify>>) {
    match check {
        Some(check) => check.notified().await,
        None => std::future::pending().await,
    }
}

/// Event from a running process.
pub(super) enum ProcessEvent {
    /// The `initialize` handshake has succeeded or failed.
    Handshake(HandshakeOutcome),
    /// An event of the served files.
    Files(FilesEvent),
    /// The process closed its output.
    Exited,
}

/// Waits for the process's next event. Never completes if no process is running.
pub(super) async fn next_event(running: Option<&mut Running>) -> ProcessEvent {
    let Some(Running { reading, handshake, files, .. }) = running else {
        return std::future::pending().await;
    };
    tokio::select! {
        outcome = handshake_outcome(handshake) => ProcessEvent::Handshake(outcome),
        event = files_event(files.as_deref_mut()) => ProcessEvent::Files(event),
        // Ignore the result: the connection is closed after end of file and after an error.
        _ = &mut reading.eof => ProcessEvent::Exited,
    }
}

/// Waits for the result of the handshake. Never completes if no handshake is in progress.
async fn handshake_outcome(handshake: &mut Handshake) -> HandshakeOutcome {
    let Handshake::Open { outcome, deadline, .. } = handshake else { return std::future::pending().await };
    let late = async {
        match *deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        outcome = outcome => outcome.unwrap_or(HandshakeOutcome::Failed),
        () = late => HandshakeOutcome::Unanswered,
    }
}
