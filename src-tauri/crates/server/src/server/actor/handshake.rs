//! Performs the `initialize` handshake with a new process.

use super::running::{Handshake, Running};
use super::{Actor, ServerState};
use crate::server::down::INITIALIZE_TIMEOUT;
use crate::server::roots::LatestRoots;
use ironcurtain_mcp::server::{ClientHandle, Negotiation, initialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;
use tokio::time::Instant;

impl Actor {
    /// Sends the client's `initialize` to a process. Does nothing if the client has not sent one.
    pub(super) fn initialize(&self, running: &mut Running) {
        let Some((params, number)) = self.replay.initialize_params() else { return };
        running.initialize_number = Some(number);
        let deadline = (!self.replay.is_initialize_pending()).then(|| Instant::now() + INITIALIZE_TIMEOUT);
        let (send, outcome) = oneshot::channel();
        let (replay, state, pid, number) =
            (self.replay.clone(), self.state.clone(), running.pid, self.starts.load(Ordering::Relaxed));
        let connection = running.connection.clone();
        let o = &self.options;
        let is_probed = Arc::new(AtomicBool::new(false));
        let negotiation = Negotiation {
            connection: connection.clone(),
            initialize: params,
            client: ClientHandle {
                sampling: self.options.sampling.clone(),
                outbox: o.client.clone(),
                roots: Arc::new(LatestRoots(self.roots.subscribe())),
                client_supports: o.client_takes.clone(),
            },
            versions: o.versions.clone(),
            program: o.server.command_line(),
            is_probed: is_probed.clone(),
        };
        let answered = move |answer, held| {
            let up = || {
                let up = ServerState::Up { connection: connection.clone(), pid, ready: false };
                // Another process may have been started in the meantime.
                state.send_if_modified(|state| {
                    let is_this = matches!(state, ServerState::Starting(n) if *n == number);
                    if is_this {
                        *state = up;
                    }
                    is_this
                });
            };
            // Ignore the error, which occurs only if the actor has exited.
            let _ = send.send(replay.handle_response(&connection, up, answer, held));
        };
        initialize(negotiation, Box::new(answered));
        running.handshake = Handshake::Open { outcome, deadline, is_probed };
    }
}
