//! Serving the client of a session, and the end of it.

use super::in_flight::InFlight;
use super::{Session, client};
use crate::listener::{ClientStdio, attend};
use crate::wire::Id;
use ironcurtain_audit::{CallResult, Event};
use ironcurtain_protocol::QuestionNote;
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
    pub(super) notes: mpsc::UnboundedReceiver<QuestionNote>,
}

impl Opened {
    /// Serves the client until it hangs up and has its answers, the shim does, or the session is ended; then nothing of it is left
    /// but its record. `shim` is the connection to a shim that waits.
    pub async fn serve(self, stdio: ClientStdio, shim: Option<UnixStream>) {
        let Self { session, notes } = self;
        session.to_client.open(stdio.output);
        let hung_up = async {
            match shim {
                Some(shim) => attend(shim, notes).await,
                None => std::future::pending().await,
            }
        };
        let served = async {
            let why = client::read(&session, stdio.input).await;
            if why.is_none() {
                session.answers_are_out().await;
            }
            why
        };
        let why = tokio::select! {
            why = served => why,
            () = hung_up => None,
            () = session.to_client.closed() => None,
            () = session.end.cancelled() => None,
        };
        session.to_client.close();
        session.close(why).await;
    }

    /// Ends it before it is served, for this reason.
    pub async fn unserved(self, why: &str) {
        self.session.close(Some(why)).await;
    }
}

impl Session {
    /// Waits until every request of the client is answered and the client has the answers, within a bound.
    async fn answers_are_out(&self) {
        let answered = async {
            self.in_flight.none_left().await;
            self.to_client.is_written().await;
        };
        // What takes longer is given up.
        let _ = tokio::time::timeout(ANSWERS_BOUND, answered).await;
    }

    /// Ends what is under way and puts the end on record, with the reason where it is ours.
    async fn close(&self, why: Option<&str>) {
        self.end.cancel();
        for (id, call) in &self.in_flight.take_all() {
            self.abandon(id, call, "the session ended before the call was answered").await;
        }
        self.services.grants.end_session(&self.id);
        self.services.autostart.ended(&self.id);
        let name = &self.principal.client.view.name;
        let summary = match why {
            None => format!("{name} ended its session"),
            Some(why) => format!("the session of {name} was ended: {why}"),
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
