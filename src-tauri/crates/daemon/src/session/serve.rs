//! Serves a session's client until the session closes.

use super::client::ReadEnd;
use super::in_flight::InFlight;
use super::{Session, client, echo, sampling, workspace};
use ironcurtain_audit::{CallResult, Event};
use ironcurtain_connection::{ClientStdio, OutgoingNote, forward_notes};
use ironcurtain_mcp::client::{ClientReader, ClientVersion};
use ironcurtain_mcp::server::SamplingRequest;
use ironcurtain_mcp::wire::Id;
use ironcurtain_protocol::ShimNote;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// Maximum time to wait for pending responses after the client has closed its input.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(15);

/// A session that has been opened and must now be served.
pub struct OpenedSession {
    /// Session to serve.
    pub session: Arc<Session>,
    pub(super) notes: mpsc::UnboundedReceiver<OutgoingNote>,
    /// Receives the server's sampling requests.
    pub(super) sampling: mpsc::UnboundedReceiver<SamplingRequest>,
    /// Bytes from the client that must be processed before its stream is read.
    pub(super) unread: Vec<u8>,
    pub(super) version: ClientVersion,
}

/// Receiver of the session's notes for the shim.
pub enum NoteReceiver {
    /// Shim that is waiting on its socket.
    Shim(UnixStream),
    /// A shim that copies the streams itself and receives no notes.
    RelayingShim,
    /// Connection to several servers that the session belongs to.
    Connection(mpsc::UnboundedSender<OutgoingNote>),
}

/// Reason why the session is no longer served.
enum CloseReason {
    /// The client disconnected.
    Disconnected,
    /// The user closed the session, its run ended, or IronCurtain is shutting down.
    Requested,
    /// The session must be closed. Contains the reason.
    Forced(&'static str),
    /// Another daemon process continues the session.
    HandedOver,
}

impl OpenedSession {
    /// Serves the client until it has closed its input and received all responses, the shim disconnects, or the session
    /// is closed or handed over. Then closes the session and records the reason.
    pub async fn serve(self, stdio: ClientStdio, note_receiver: NoteReceiver) {
        let Self { session, notes, sampling, unread, version } = self;
        tokio::spawn(sampling::serve(session.clone(), sampling));
        tokio::spawn(workspace::propose(session.clone()));
        session.to_client.open_sink(stdio.output);
        let can_hand_over = !matches!(note_receiver, NoteReceiver::RelayingShim);
        let hung_up = async {
            match note_receiver {
                NoteReceiver::Shim(shim) => forward_notes(shim, notes).await,
                NoteReceiver::Connection(notes_sender) => relay_notes(notes, &notes_sender).await,
                NoteReceiver::RelayingShim => {
                    // No shim reads notes, so the receiver is closed.
                    drop(notes);
                    std::future::pending().await
                }
            }
        };
        let (memory, to_client) = (session.memory.clone(), session.to_client.clone());
        let lines = ClientReader::new(memory, stdio.input, unread, to_client, version);
        let served = async {
            match client::read(&session, lines).await {
                ReadEnd::ClientEof => {
                    session.flush_responses(FLUSH_TIMEOUT).await;
                    CloseReason::Disconnected
                }
                ReadEnd::Echo => CloseReason::Forced(echo::ECHO_REASON),
                ReadEnd::TakenOver { unread: Some(unread), version }
                    if can_hand_over && session.hand_over(&unread, &*version).await =>
                {
                    CloseReason::HandedOver
                }
                ReadEnd::TakenOver { .. } => CloseReason::Forced("the app replaced the trusted process"),
            }
        };
        tokio::pin!(hung_up);
        let ending = tokio::select! {
            ending = served => ending,
            () = &mut hung_up => CloseReason::Disconnected,
            () = session.to_client.closed() => CloseReason::Disconnected,
            () = session.end.cancelled() => CloseReason::Requested,
        };
        session.to_client.close();
        if matches!(ending, CloseReason::Disconnected) {
            session.let_server_exit().await;
        }
        session.close(&ending).await;
        if matches!(ending, CloseReason::HandedOver) {
            // Waits until the shim has received the note about the handover. A shim that does not read the note has
            // exited.
            let _ = tokio::time::timeout(FLUSH_TIMEOUT, hung_up).await;
        }
    }

    /// Closes the session, because its shim disconnected before [`serve`](Self::serve) was called.
    pub async fn close_unserved(self) {
        self.session.close(&CloseReason::Forced("its shim disconnected before it was served")).await;
    }
}

/// Forwards notes until the session is handed over or the receiver is dropped.
async fn relay_notes(
    mut notes: mpsc::UnboundedReceiver<OutgoingNote>,
    to: &mpsc::UnboundedSender<OutgoingNote>,
) {
    while let Some(note) = notes.recv().await {
        let is_last = matches!(note.note, ShimNote::Moved { .. });
        if to.send(note).is_err() || is_last {
            return;
        }
    }
}

impl Session {
    /// Waits until the client has received all responses, or `bound` has passed.
    pub(super) async fn flush_responses(&self, bound: Duration) {
        let answered = async {
            self.in_flight.wait_until_empty().await;
            self.to_client.drained().await;
        };
        // Requests that take longer are abandoned.
        let _ = tokio::time::timeout(bound, answered).await;
    }

    /// Lets the server save its state and exit, unless the session must end at once. Pauses the session, which withdraws its
    /// questions and denies further ones. What the server already has access to stays.
    async fn let_server_exit(&self) {
        self.services.broker.pause(&self.id);
        self.abandon_all().await;
        self.server.ask_to_exit();
        tokio::select! {
            () = self.server.wait_for_exit() => {}
            () = self.end.cancelled() => {}
        }
    }

    async fn abandon_all(&self) {
        for (id, call) in &self.in_flight.drain() {
            self.abandon(id, call, "the session ended before the call was answered").await;
        }
    }

    /// Cancels pending work and records the end of the session with its reason.
    async fn close(&self, ending: &CloseReason) {
        self.end.cancel();
        self.abandon_all().await;
        self.services.grants.end_session(&self.id);
        self.services.broker.end_session(&self.id);
        self.services.autostart.session_ended(&self.id);
        let name = &self.principal.client.view.name;
        let summary = match ending {
            CloseReason::Disconnected | CloseReason::Requested => format!("{name} ended its session"),
            CloseReason::Forced(why) => format!("the session of {name} was ended: {why}"),
            CloseReason::HandedOver => format!("the session of {name} was moved to the app"),
        };
        if let Err(problem) = self.services.audit.record(self.entry(Event::Session, summary)).await {
            tracing::error!(%problem, "failed to record the end of a session");
        }
        self.services.changed();
    }
}

impl Session {
    /// Aborts the work for an unanswered request and records that the request was abandoned.
    pub(super) async fn abandon(&self, id: &Id, call: &InFlight, why: &str) {
        if let Some(task) = &call.task {
            task.abort();
        }
        let Some(tool) = &call.tool else { return };
        let mut entry = self.entry(Event::Outcome, why);
        entry.request_id = Some(id.as_json().to_owned());
        entry.tool_name = Some(tool.clone());
        entry.result = Some(CallResult::GivenUp);
        if let Err(problem) = self.services.audit.record(entry).await {
            tracing::error!(%problem, "failed to record the end of a call");
        }
    }
}
