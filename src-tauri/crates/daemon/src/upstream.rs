//! Opens the sessions of a connection to several servers.
//!
//! - Each session judges and records calls, and asks the user, as if it were the client's only session. It receives its
//!   messages through a channel.

use crate::daemon_state::{DaemonState, SlotError};
use crate::session::{NoteReceiver, Session, SessionError, SessionHandover, SessionOptions};
use ironcurtain_connection::{
    AggregateHost, ClientStdio, TicketError, ToolLookup, UpstreamEvent, UpstreamSession,
};
use ironcurtain_grants::{Client, ToolListCache};
use ironcurtain_mcp::wire::{LineSink, LineSource};
use ironcurtain_services::Services;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Reason why a session with a server cannot be opened.
#[derive(Debug, thiserror::Error)]
enum UpstreamError {
    /// The maximum number of sessions has been reached.
    #[error(transparent)]
    Slot(#[from] SlotError),
    /// The session from the previous daemon cannot be continued.
    #[error(transparent)]
    Ticket(#[from] TicketError),
    /// The session cannot be opened.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Returns the interface through which a client's connection opens its sessions. `run` is the run that contains the
/// client, if any.
pub(crate) fn host(state: Arc<DaemonState>, client: Client, run: Option<String>) -> AggregateHost {
    let services = state.services.clone();
    let memory = ToolListCache::of(&services.home.database());
    let tool_memory = memory.clone();
    AggregateHost {
        settings: services.settings,
        sessions: services.home.sessions(),
        instructions: services.instructions,
        memory: services.memory,
        audit: services.audit,
        changes: services.changes,
        shutdown: services.shutdown.requested,
        taken_over: services.shutdown.taken_over,
        open: Box::new(move |upstream| {
            tokio::spawn(open_and_serve(state.clone(), (client.clone(), run.clone()), upstream));
        }),
        look_up_tools: Box::new(move |ToolLookup { servers, client }| {
            let memory = memory.clone();
            tokio::task::spawn_blocking(move || {
                let identities: Vec<String> = servers.iter().map(|(server, _)| server.clone()).collect();
                let found = memory.find(&identities, &client).unwrap_or_else(|problem| {
                    tracing::warn!(%problem, "failed to read remembered tools");
                    Vec::new()
                });
                let all = found.into_iter().chain(std::iter::repeat(None));
                for ((_, events), tools) in servers.into_iter().zip(all) {
                    events.send(UpstreamEvent::ToolsLookedUp(tools));
                }
            });
        }),
        remember_tools: Box::new(move |server, client, tools| {
            let memory = tool_memory.clone();
            tokio::task::spawn_blocking(move || {
                if let Err(problem) = memory.remember(&server, &client, tools.as_ref()) {
                    tracing::warn!(%problem, "failed to remember a server's tools");
                }
            });
        }),
    }
}

/// Opens a session, serves it until it closes, and reports the reason.
async fn open_and_serve(
    state: Arc<DaemonState>,
    client: (Client, Option<String>),
    upstream: UpstreamSession,
) {
    let events = upstream.events.clone();
    let why = serve(state, client, upstream).await.err().map(|problem| problem.to_string());
    events.send(UpstreamEvent::Closed(why));
}

async fn serve(
    state: Arc<DaemonState>,
    (client, run): (Client, Option<String>),
    upstream: UpstreamSession,
) -> Result<(), UpstreamError> {
    let UpstreamSession { connection, config, ticket, lines, events } = upstream;
    let settings = state.reloader.settings();
    let _slot = state.reserve_slot(settings.config.max_sessions, run.as_deref())?;
    let services = Services { config: settings.config.clone(), ..state.services.clone() };
    let handover = ticket
        .map(|ticket| SessionHandover::redeem(&services.home.sessions(), &ticket, &client.key, &config.name))
        .transpose()?;
    let options = SessionOptions { client, server: config, connection: Some(connection), run, handover };
    let opened = Session::open(services, options).await?;
    let session = opened.session.clone();
    state.add_session(session.clone());
    events.send(UpstreamEvent::Opened(session.ending()));
    let (output, mut lines_from_session) = mpsc::unbounded_channel();
    let (notes_sender, mut notes) = mpsc::unbounded_channel();
    let stdio = ClientStdio { input: LineSource::Channel(lines), output: LineSink::Channel(output) };
    let id = session.id.clone();
    drop(session);
    let served = opened.serve(stdio, NoteReceiver::Connection(notes_sender));
    tokio::pin!(served);
    loop {
        let event = tokio::select! {
            biased;
            Some(line) = lines_from_session.recv() => UpstreamEvent::Line(line),
            Some(note) = notes.recv() => UpstreamEvent::Note(note),
            () = &mut served => break,
        };
        events.send(event);
    }
    let lines = std::iter::from_fn(|| lines_from_session.try_recv().ok()).map(UpstreamEvent::Line);
    let last = lines.chain(std::iter::from_fn(|| notes.try_recv().ok()).map(UpstreamEvent::Note));
    last.for_each(|event| events.send(event));
    state.remove_session(&id);
    Ok(())
}
