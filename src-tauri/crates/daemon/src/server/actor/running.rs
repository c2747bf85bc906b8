//! The process that runs, and how it ends.

use crate::server::connection::ServerConnection;
use crate::server::control::SupervisorControl;
use crate::server::process::ProcessHold;
use ironcurtain_sandbox::ControlOp;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// The time that a server that is to be started anew may take to be gone, with all that its sandbox had made.
const STOP_BOUND: Duration = Duration::from_secs(5);

/// A process and what holds it.
pub(super) struct Running {
    pub(super) connection: ServerConnection,
    pub(super) hold: ProcessHold,
    pub(super) ended: oneshot::Receiver<()>,
}

impl Running {
    pub(super) fn control(&mut self) -> Option<&mut SupervisorControl> {
        match &mut self.hold {
            ProcessHold::Live { control, .. } => Some(control),
            ProcessHold::Fixed { .. } | ProcessHold::Plain { .. } => None,
        }
    }

    /// Ends it, and waits until nothing of it is left, so that the next one finds its folder as it is to be.
    pub(super) async fn stop(mut self) {
        let Some(control) = self.control() else { return };
        let end = async {
            // The supervisor kills first and answers then; one that cannot be asked ends with the conversation.
            if control.ask(ControlOp::Shutdown).await.is_ok() {
                control.exit().await;
            }
        };
        // One that takes longer is killed.
        let _ = tokio::time::timeout(STOP_BOUND, end).await;
    }

    /// Tells when masks of its sandbox may be lost.
    pub(super) fn check(&mut self) -> Option<Arc<Notify>> {
        Some(self.control()?.look()?.check())
    }

    /// Returns `true` if what it sees can only be changed by starting it anew.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self.hold, ProcessHold::Fixed { .. })
    }
}

/// Waits until masks may be lost; for ever where none can be.
pub(super) async fn uncovered(check: Option<Arc<Notify>>) {
    match check {
        Some(check) => check.notified().await,
        None => std::future::pending().await,
    }
}

/// Waits for its end; for ever where none runs.
pub(super) async fn ended(running: Option<&mut Running>) {
    match running {
        // Either way the conversation is over.
        Some(running) => drop((&mut running.ended).await),
        None => std::future::pending().await,
    }
}
