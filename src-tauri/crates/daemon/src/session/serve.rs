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
const ANSWERS_TIMEOUT: Duration = Duration::from_secs(15);

/// A session that has been opened and must now be served.
pub struct Opened {
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
pub enum Attached {
    /// Shim that is waiting on its socket.
    Shim(UnixStream),
    /// A shim that copies the streams itself and receives no notes.
    Copying,
    /// Connection to several servers that the session belongs to.
    Connection(mpsc::UnboundedSender<OutgoingNote>),
}

/// Reason why the session is no longer served.
enum Ending {
    /// The client disconnected, or the user closed the session.
    Asked,
    /// The session must be closed. Contains the reason.
    Cut(&'static str),
    /// Another daemon process continues the session.
    Moved,
}

impl Opened {
    /// Serves the client until it has closed its input and received all responses, the shim disconnects, or the session
    /// is closed or handed over. Then closes the session and records the reason.
    pub async fn serve(self, stdio: ClientStdio, attached: Attached) {
        let Self { session, notes, sampling, unread, version } = self;
        tokio::spawn(sampling::serve(session.clone(), sampling));
        tokio::spawn(workspace::propose(session.clone()));
        session.to_client.open_to(stdio.output);
        let can_move = !matches!(attached, Attached::Copying);
        let hung_up = async {
            match attached {
                Attached::Shim(shim) => forward_notes(shim, notes).await,
                Attached::Connection(told) => relay_notes(notes, &told).await,
                Attached::Copying => {
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
                ReadEnd::HungUp => {
                    session.flush_responses(ANSWERS_TIMEOUT).await;
                    Ending::Asked
                }
                ReadEnd::Echo => Ending::Cut(echo::WHY),
                ReadEnd::TakenOver { unread: Some(unread), version }
                    if can_move && session.hand_over(&unread, &*version).await =>
                {
                    Ending::Moved
                }
                ReadEnd::TakenOver { .. } => Ending::Cut("the app replaced the trusted process"),
            }
        };
        tokio::pin!(hung_up);
        let ending = tokio::select! {
            ending = served => ending,
            () = &mut hung_up => Ending::Asked,
            () = session.to_client.closed() => Ending::Asked,
            () = session.end.cancelled() => Ending::Asked,
        };
        session.to_client.close();
        session.close(&ending).await;
        if matches!(ending, Ending::Moved) {
            // Waits until the shim has received the note about the handover. A shim that does not read the note has
            // exited.
            let _ = tokio::time::timeout(ANSWERS_TIMEOUT, hung_up).await;
        }
    }

    /// Closes the session, because its shim disconnected before [`serve`](Self::serve) was called.
    pub async fn close_unserved(self) {
        self.session.close(&Ending::Cut("its shim disconnected before it was served")).await;
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
            self.to_client.is_written().await;
        };
        // Requests that take longer are abandoned.
        let _ = tokio::time::timeout(bound, answered).await;
    }

    /// Cancels pending work, and records the end of the session with its reason.
    async fn close(&self, ending: &Ending) {
        self.end.cancel();
        for (id, call) in &self.in_flight.take_all() {
            self.abandon(id, call, "the session ended before the call was answered").await;
        }
        self.services.grants.end_session(&self.id);
        self.services.broker.end_session(&self.id);
        self.services.autostart.ended(&self.id);
        let name = &self.principal.client.view.name;
        let summary = match ending {
            Ending::Asked => format!("{name} ended its session"),
            Ending::Cut(why) => format!("the session of {name} was ended: {why}"),
            Ending::Moved => format!("the session of {name} was moved to the app"),
        };
        if let Err(problem) = self.services.audit.record(self.entry(Event::Session, summary)).await {
            tracing::error!(%problem, "failed to record the end of a session");
        }
        self.services.changed();
    }
}

impl Session {
    /// Aborts the work for an unanswered request, and records that the request was abandoned.
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
