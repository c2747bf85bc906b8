//! Running server process, and how it exits.

use super::stderr_tail::StderrTail;
use crate::server::control::SupervisorControl;
use crate::server::process::ProcessHold;
use crate::server::replay::HandshakeOutcome;
use ironcurtain_mcp::server::{ReaderTask, ServerConnection};
use ironcurtain_sandbox::ControlOp;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// Time limit for a server to exit together with everything in its sandbox before it is restarted.
const STOP_BOUND: Duration = Duration::from_secs(5);

/// Process, and the handles that keep it alive.
pub(super) struct Running {
    pub(super) connection: ServerConnection,
    pub(super) hold: ProcessHold,
    pub(super) reading: ReaderTask,
    pub(super) stderr_tail: StderrTail,
    pub(super) pid: Option<u32>,
    pub(super) handshake: Handshake,
    /// Number of the `initialize` request that it received.
    pub(super) initialize_number: Option<u64>,
}

/// State of the handshake with a process.
#[derive(Debug)]
pub(super) enum Handshake {
    /// The client has not sent `initialize`, or sends it again.
    None,
    /// The process has not answered.
    Open {
        outcome: oneshot::Receiver<HandshakeOutcome>,
        /// `None` if the client can wait indefinitely.
        deadline: Option<Instant>,
        /// Set while the process was only probed for its protocol version.
        is_probed: Arc<AtomicBool>,
    },
    /// The process has answered.
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
        match &mut self.hold {
            ProcessHold::Live { control, .. } => Some(control),
            ProcessHold::Fixed { .. } | ProcessHold::Plain { .. } | ProcessHold::Remote(_) => None,
        }
    }

    /// Stops the process and waits until all of it has exited, so that the next one starts with a clean folder.
    pub(super) async fn stop(mut self) {
        let Some(control) = self.control() else { return };
        let end = async {
            // The supervisor kills before it answers. If it cannot be asked, it exits when the connection closes.
            if control.ask(ControlOp::Shutdown).await.is_ok() {
                control.exit().await;
            }
        };
        // After the timeout it is killed.
        let _ = tokio::time::timeout(STOP_BOUND, end).await;
    }

    /// Returns a signal that masks of the sandbox may be lost.
    pub(super) fn check(&mut self) -> Option<Arc<Notify>> {
        Some(self.control()?.look()?.check())
    }

    /// Returns `true` if the mounts can only be changed by a restart.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self.hold, ProcessHold::Fixed { .. })
    }
}

/// Waits until masks may be lost; pends forever if there are none.
pub(super) async fn uncovered(check: Option<Arc<Notify>>) {
    match check {
        Some(check) => check.notified().await,
        None => std::future::pending().await,
    }
}

/// Event of a running process.
#[derive(Debug)]
pub(super) enum News {
    /// The handshake succeeded or failed.
    Handshake(HandshakeOutcome),
    /// The output was closed.
    Ended,
}

/// Waits for the next event; pends forever if no process runs.
pub(super) async fn news(running: Option<&mut Running>) -> News {
    let Some(Running { reading, handshake, .. }) = running else { return std::future::pending().await };
    tokio::select! {
        outcome = handshake_outcome(handshake) => News::Handshake(outcome),
        // The connection is closed, whether reading failed or reached the end.
        _ = &mut reading.ended => News::Ended,
    }
}

/// Waits for the outcome of the handshake; pends forever if none is pending.
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
