//! Serves a connection's client until the connection closes.

use super::upstream::{FromUpstream, Upstream};
use super::{Aggregate, COPIES, OpenedAggregate};
use crate::listener::{ClientStdio, forward_notes};
use ironcurtain_mcp::client::ClientReader;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Time during which a client that has closed its input can still receive responses.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum time to wait for all sessions to close.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Reason [`Aggregate::listen`] returned.
enum CloseReason {
    /// The client closed its input, but may still read responses.
    ClientEof,
    /// The shim disconnected, the client closed its output, or the user or shutdown closed the connection.
    Closed,
    /// Another daemon process is replacing this one.
    TakenOver,
}

impl OpenedAggregate {
    /// Returns the connection's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.aggregate.id
    }

    /// Serves the client until the connection closes. `shim` is the shim's socket, or `None` if the shim copies the
    /// streams itself.
    pub async fn serve(self, stdio: ClientStdio, shim: Option<UnixStream>) {
        let Self { mut aggregate, mut events, notes, unread, version } = self;
        aggregate.to_client.open_sink(stdio.output);
        let memory = aggregate.host.memory.allowance(COPIES);
        let mut lines = ClientReader::new(memory, stdio.input, unread, aggregate.to_client.clone(), version);
        let can_move = shim.is_some();
        let hung_up = async {
            match shim {
                Some(shim) => forward_notes(shim, notes).await,
                None => {
                    // Close the receiver, because no shim reads notes.
                    drop(notes);
                    std::future::pending().await
                }
            }
        };
        tokio::pin!(hung_up);
        let ending = tokio::select! {
            ending = aggregate.listen(&mut lines, &mut events) => ending,
            () = &mut hung_up => CloseReason::Closed,
        };
        match ending {
            CloseReason::ClientEof => {
                tokio::select! {
                    () = aggregate.flush_responses(&mut events) => {}
                    () = &mut hung_up => {}
                }
            }
            CloseReason::TakenOver => {
                let version = lines.version();
                if let Some(unread) = lines.into_unread().filter(|_| can_move)
                    && aggregate.hand_over((&unread, &version), &mut events).await
                {
                    // If the shim has exited, the note about the handover is lost.
                    let _ = tokio::time::timeout(FLUSH_TIMEOUT, hung_up).await;
                    return;
                }
            }
            CloseReason::Closed => {}
        }
        aggregate.to_client.close();
        aggregate.upstreams.values_mut().for_each(Upstream::end);
        // Sessions that take longer close on their own.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, aggregate.wait_for_sessions(&mut events)).await;
    }
}

impl Aggregate {
    /// Handles messages from the client and the servers until the connection must close.
    async fn listen(
        &mut self,
        lines: &mut ClientReader,
        events: &mut mpsc::UnboundedReceiver<FromUpstream>,
    ) -> CloseReason {
        let (shutdown, taken_over) = (self.host.shutdown.clone(), self.host.taken_over.clone());
        let (unread, mut settings) = (self.unread.clone(), self.host.settings.clone());
        settings.mark_unchanged();
        self.apply_settings();
        let to_client = self.to_client.clone();
        loop {
            let deadline = self
                .upstreams
                .values()
                .filter_map(|upstream| upstream.retry)
                .chain(self.next_deadline())
                .min();
            let alarm = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            // Each line causes at most one reply. Stop reading from a client that does not read its replies.
            let message = async {
                drop(unread.acquire().await);
                lines.next().await
            };
            tokio::select! {
                () = shutdown.cancelled() => return CloseReason::Closed,
                () = taken_over.cancelled() => match lines.try_pending() {
                    Some(line) => self.handle_client_message(line).await,
                    None => return CloseReason::TakenOver,
                },
                () = to_client.closed() => return CloseReason::Closed,
                Ok(()) = settings.changed() => self.apply_settings(),
                // `self` holds a sender, so the channel stays open.
                Some(event) = events.recv() => self.handle_event(event),
                message = message => match message {
                    Ok(Some(message)) => self.handle_client_message(message).await,
                    Ok(None) | Err(_) => return CloseReason::ClientEof,
                },
                () = alarm => self.handle_due_retries(),
            }
            self.retry_held_requests().await;
            if self.user_closed_all() {
                return CloseReason::Closed;
            }
        }
    }

    /// Waits until the client has received all responses, or [`FLUSH_TIMEOUT`] has passed.
    async fn flush_responses(&mut self, events: &mut mpsc::UnboundedReceiver<FromUpstream>) {
        let bound = Instant::now() + FLUSH_TIMEOUT;
        let answered = async {
            while self.is_any_unanswered() {
                let deadline = self.next_deadline().unwrap_or(bound);
                tokio::select! {
                    Some(event) = events.recv() => self.handle_event(event),
                    () = tokio::time::sleep_until(deadline) => {}
                }
                self.retry_held_requests().await;
            }
            self.to_client.drained().await;
        };
        // Requests that take longer are abandoned.
        let _ = tokio::time::timeout_at(bound, answered).await;
    }

    fn is_any_unanswered(&self) -> bool {
        self.pending_initialize.is_some()
            || !self.held_requests.is_empty()
            || !self.task_lists.is_empty()
            || self.tables.has_in_flight()
    }

    /// Handles events until every session has closed.
    pub(super) async fn wait_for_sessions(&mut self, events: &mut mpsc::UnboundedReceiver<FromUpstream>) {
        while !self.running.is_empty() {
            match events.recv().await {
                Some(event) => self.handle_event(event),
                None => return,
            }
        }
    }
}
