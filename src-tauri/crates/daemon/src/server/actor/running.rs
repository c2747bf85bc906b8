//! The process that runs, and how it ends.

use super::stderr_tail::StderrTail;
use crate::server::control::SupervisorControl;
use crate::server::process::ProcessHold;
use crate::server::told::Greeted;
use ironcurtain_mcp::server::{Reading, ServerConnection};
use ironcurtain_sandbox::ControlOp;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// The time that a server that is to be started anew may take to be gone, with all that its sandbox had made.
const STOP_BOUND: Duration = Duration::from_secs(5);

/// A process and what holds it.
pub(super) struct Running {
    pub(super) connection: ServerConnection,
    pub(super) hold: ProcessHold,
    pub(super) reading: Reading,
    pub(super) stderr_tail: StderrTail,
    pub(super) pid: Option<u32>,
    pub(super) greeting: Greeting,
    /// The number of the greeting that it was given.
    pub(super) greeted: Option<u64>,
}

/// The state of a process's greeting.
#[derive(Debug)]
pub(super) enum Greeting {
    /// The client has not greeted, or greets again.
    None,
    /// It has not answered.
    Open {
        outcome: oneshot::Receiver<Greeted>,
        /// Without one, the client waits as long as it likes.
        deadline: Option<Instant>,
        /// Set while it was only asked which era it is of.
        is_probed: Arc<AtomicBool>,
    },
    /// It has answered.
    Welcome,
}

impl Greeting {
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    pub(super) fn is_probed(&self) -> bool {
        matches!(self, Self::Open { is_probed, .. } if is_probed.load(Ordering::Relaxed))
    }

    pub(super) fn is_welcome(&self) -> bool {
        matches!(self, Self::Welcome)
    }
}

impl Running {
    pub(super) fn control(&mut self) -> Option<&mut SupervisorControl> {
        match &mut self.hold {
            ProcessHold::Live { control, .. } => Some(control),
            ProcessHold::Fixed { .. } | ProcessHold::Plain { .. } | ProcessHold::Remote(_) => None,
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

/// News of a process that runs.
#[derive(Debug)]
pub(super) enum News {
    /// It has answered the greeting, or never will.
    Greeted(Greeted),
    /// Its output has ended.
    Ended,
}

/// Waits for news of it; for ever where none runs.
pub(super) async fn news(running: Option<&mut Running>) -> News {
    let Some(Running { reading, greeting, .. }) = running else { return std::future::pending().await };
    tokio::select! {
        outcome = greeted(greeting) => News::Greeted(outcome),
        // Either way the conversation is over.
        _ = &mut reading.ended => News::Ended,
    }
}

/// Waits until a process that was greeted has answered or never will; for ever where none was.
async fn greeted(greeting: &mut Greeting) -> Greeted {
    let Greeting::Open { outcome, deadline, .. } = greeting else { return std::future::pending().await };
    let late = async {
        match *deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        outcome = outcome => outcome.unwrap_or(Greeted::Failed),
        () = late => Greeted::Unanswered,
    }
}
