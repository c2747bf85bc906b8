//! Serving the client of a session, and the end of it.

use super::client::ReadEnd;
use super::in_flight::InFlight;
use super::{Session, client, echo, sampling, workspace};
use crate::listener::{ClientStdio, OutgoingNote, attend};
use ironcurtain_audit::{CallResult, Event};
use ironcurtain_mcp::client::{ClientReader, ClientVersion};
use ironcurtain_mcp::server::SamplingRequest;
use ironcurtain_mcp::wire::Id;
use ironcurtain_protocol::ShimNote;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// The time for which a client that says no more still gets answers to what it asked before.
const ANSWERS_BOUND: Duration = Duration::from_secs(15);

/// A session that is about to be served.
pub struct Opened {
    /// The session.
    pub session: Arc<Session>,
    pub(super) notes: mpsc::UnboundedReceiver<OutgoingNote>,
    /// The server's requests for the client's model.
    pub(super) sampling: mpsc::UnboundedReceiver<SamplingRequest>,
    /// Bytes of the client that are read before those of its stream.
    pub(super) unread: Vec<u8>,
    pub(super) version: ClientVersion,
}

/// Whoever is told of a session, and can bring it to another trusted process.
pub enum Attached {
    /// A shim that waits, by its connection.
    Shim(UnixStream),
    /// A shim that copies, which nothing can be told.
    Copying,
    /// The connection that the session is a part of.
    Connection(mpsc::UnboundedSender<OutgoingNote>),
}

/// Why a session ends here.
enum Ending {
    /// The client hung up, or the person ended it.
    Asked,
    /// It hears itself, or could not be served.
    Cut(&'static str),
    /// It goes on in another trusted process.
    Moved,
}

impl Opened {
    /// Serves the client until it hangs up and has its answers, the shim does, or the session is ended or moved; then nothing of
    /// it is left but its record.
    pub async fn serve(self, stdio: ClientStdio, attached: Attached) {
        let Self { session, notes, sampling, unread, version } = self;
        tokio::spawn(sampling::serve(session.clone(), sampling));
        tokio::spawn(workspace::propose(session.clone()));
        session.to_client.open_to(stdio.output);
        let can_move = !matches!(attached, Attached::Copying);
        let hung_up = async {
            match attached {
                Attached::Shim(shim) => attend(shim, notes).await,
                Attached::Connection(told) => hand_on(notes, &told).await,
                Attached::Copying => {
                    // Nobody waits for a note to be written.
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
                    session.answers_are_out(ANSWERS_BOUND).await;
                    Ending::Asked
                }
                ReadEnd::HearsItself => Ending::Cut(echo::WHY),
                ReadEnd::TakenOver { unread: Some(unread), version }
                    if can_move && session.moves(&unread, &*version).await =>
                {
                    Ending::Moved
                }
                ReadEnd::TakenOver { .. } => Ending::Cut("the app took the place of the trusted process"),
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
            // It ends with the note that the session is moved. A shim that does not take that is gone.
            let _ = tokio::time::timeout(ANSWERS_BOUND, hung_up).await;
        }
    }

    /// Ends it before it is served, for this reason.
    pub async fn unserved(self) {
        self.session.close(&Ending::Cut("its shim was gone before it was served")).await;
    }
}

/// Hands notes on; completes when the session is moved, or nobody takes them.
async fn hand_on(mut notes: mpsc::UnboundedReceiver<OutgoingNote>, to: &mpsc::UnboundedSender<OutgoingNote>) {
    while let Some(note) = notes.recv().await {
        let is_last = matches!(note.note, ShimNote::Moved { .. });
        if to.send(note).is_err() || is_last {
            return;
        }
    }
}

impl Session {
    /// Waits until every request of the client is answered and the client has the answers, within a bound.
    pub(super) async fn answers_are_out(&self, bound: Duration) {
        let answered = async {
            self.in_flight.none_left().await;
            self.to_client.is_written().await;
        };
        // What takes longer is given up.
        let _ = tokio::time::timeout(bound, answered).await;
    }

    /// Ends what is under way and puts the end on record, with the reason where it is ours.
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
            tracing::error!(%problem, "the end of a session is not on record");
        }
        self.services.changed();
    }
}

impl Session {
    /// Ends what waits for a request that nobody wants answered any more, and puts that on record.
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
            tracing::error!(%problem, "the end of a call is not on record");
        }
    }
}
