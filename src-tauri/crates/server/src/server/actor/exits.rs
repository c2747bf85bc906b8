//! Exits of the server's process: it is restarted, or the server is down with a recorded reason.
//!
//! - A process that exits before it answers `initialize` is restarted at most twice in a row.

use super::running::Handshake;
use super::{Actor, DownReason, MIN_UPTIME, ServerExit, ServerState};
use crate::server::control::SupervisorControl;
use crate::server::replay::HandshakeOutcome;
use ironcurtain_mcp::wire::ProtocolVersion;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of consecutive processes that exit before they answer `initialize`.
const MAX_HANDSHAKES: u32 = 3;

impl Actor {
    /// Handles the result of the `initialize` handshake.
    pub(super) async fn handshake_ended(&mut self, outcome: HandshakeOutcome) {
        let Some(running) = &mut self.running else { return };
        match outcome {
            HandshakeOutcome::Accepted => {
                running.handshake = Handshake::Complete;
                self.failed_handshakes = 0;
                self.reconcile().await;
            }
            HandshakeOutcome::Rejected => running.handshake = Handshake::None,
            HandshakeOutcome::Failed => self.process_ended().await,
            HandshakeOutcome::RejectedAfterRestart(error) => {
                self.kill_and_set_down(DownReason::InitializeRejected(error)).await
            }
            HandshakeOutcome::Unanswered => self.kill_and_set_down(DownReason::InitializeUnanswered).await,
        }
    }

    /// Kills a process that cannot be used and records the reason.
    async fn kill_and_set_down(&mut self, why: DownReason) {
        self.running = None;
        self.set_down(why).await;
    }

    /// Handles the exit of the process: records it, and starts a new process if a restart is allowed.
    pub(super) async fn process_ended(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        let status = match running.control() {
            Some(control) => {
                tokio::time::timeout(Duration::from_millis(500), control.exit()).await.ok().flatten()
            }
            None => None,
        };
        let stderr_tail = running.stderr_tail.text().await;
        let remote = running.guard.remote_end();
        let ending = ServerExit { status: status.or_else(|| running.guard.status()), stderr_tail, remote };
        running.connection.report_exit(&ending);
        let lost = running.control().map(SupervisorControl::lost_masks).unwrap_or_default();
        let (was_pending, was_probed) = (running.handshake.is_open(), running.handshake.is_probed());
        drop(running);
        self.report_lost_masks(lost).await;
        self.early_exits = if self.started.elapsed() < MIN_UPTIME { self.early_exits + 1 } else { 0 };
        let why = DownReason::Exited(Arc::new(ending));
        self.failed_handshakes += u32::from(was_pending);
        if was_probed {
            // The server did not understand the version probe, so it uses the handshake protocol.
            self.options.versions.insert(&self.options.server.command_line(), ProtocolVersion::Handshake);
        }
        if was_pending
            && (was_probed || !self.replay.is_initialize_pending())
            && self.failed_handshakes < MAX_HANDSHAKES
        {
            self.mounted.clear();
            self.record(format!("reinitializing the server {}: {why}", self.options.server.name)).await;
            self.start_server().await;
            return self.reconcile().await;
        }
        self.set_down(why).await;
    }

    pub(super) fn outcome(&self) -> Result<(), DownReason> {
        match &*self.state.borrow() {
            ServerState::Down(reason) => Err(reason.clone()),
            ServerState::Up { .. } | ServerState::Starting(_) => Ok(()),
        }
    }

    pub(super) async fn restart(&mut self, why: &str) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
        self.mounted.clear();
        self.record(format!("the server {} was stopped: {why}", self.options.server.name)).await;
        self.early_exits = 0;
        self.start_server().await;
    }

    pub(super) async fn set_down(&mut self, reason: DownReason) {
        self.mounted.clear();
        self.failed_handshakes = 0;
        self.options.log.write(format!("the server is down: {reason}"));
        self.record(format!("the server {} is not running: {reason}", self.options.server.name)).await;
        self.not_running(reason);
    }

    /// Notifies all waiting callers that the server is not running.
    pub(super) fn not_running(&self, reason: DownReason) {
        self.replay.fail_pending_initialize(&reason);
        self.state.send_replace(ServerState::Down(reason));
    }
}
