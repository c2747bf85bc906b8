//! Opens a session for each shim and serves it until it closes.

use crate::daemon_state::DaemonState;
use crate::session::{NoteReceiver, Session, SessionHandover, SessionOptions};
use crate::upstream::host;
use ironcurtain_audit::{CallResult, Entry, Event};
use ironcurtain_config::{Server as ServerConfig, SessionSettings};
use ironcurtain_connection::{Aggregate, AggregateHandover, ClientStdio, Peer, unknown_profile};
use ironcurtain_grants::Client;
use ironcurtain_mcp::wire::{Input, LineSink, LineSource, Output};
use ironcurtain_protocol::{RefusalCode, ShimHello, StdioMode};
use ironcurtain_services::Services;
use std::io;
use std::sync::Arc;
use tokio::net::UnixStream;

/// Origin of a session, as determined by this process.
pub(super) struct SessionOrigin {
    /// The connecting client.
    pub(super) client: Client,
    /// Id of the run that contains the client, if any.
    pub(super) run: Option<String>,
}

/// Serves a shim that connects to one or several servers.
pub(super) async fn serve_session(
    state: Arc<DaemonState>,
    mut peer: Peer,
    shim: ShimHello,
    origin: SessionOrigin,
) {
    state.reloader.reload().await;
    let settings = state.reloader.settings();
    let Some(server) = &shim.server else { return serve_aggregate(state, peer, shim, origin).await };
    let SessionOrigin { client, run } = origin;
    let config = match find_server(&settings, server) {
        Ok(config) => config,
        Err(problem) => {
            return refuse(&state, &mut peer, &client, RefusalCode::UnknownServer, problem.to_string()).await;
        }
    };
    // The session counts towards the limit until it ends.
    let _slot = match state.reserve_slot(settings.config.max_sessions, run.as_deref()) {
        Ok(slot) => slot,
        Err(problem) => {
            return refuse(&state, &mut peer, &client, RefusalCode::Unavailable, problem.to_string()).await;
        }
    };
    let stdio = match take_stdio(&mut peer, shim.stdio) {
        Ok(stdio) => stdio,
        Err(problem) => {
            return refuse(&state, &mut peer, &client, RefusalCode::Malformed, problem.to_string()).await;
        }
    };
    let services = Services { config: settings.config.clone(), ..state.services.clone() };
    let handover = shim.resume.map(|ticket| {
        SessionHandover::redeem(&state.services.home.sessions(), &ticket, &client.key, &config.name)
    });
    let handover = match handover.transpose() {
        Ok(handover) => handover,
        Err(problem) => {
            return refuse(&state, &mut peer, &client, RefusalCode::Unavailable, problem.to_string()).await;
        }
    };
    let options = SessionOptions { client: client.clone(), server: config, connection: None, run, handover };
    let opened = match Session::open(services, options).await {
        Ok(opened) => opened,
        Err(problem) => {
            return refuse(&state, &mut peer, &client, RefusalCode::Unavailable, problem.to_string()).await;
        }
    };
    let session = opened.session.clone();
    state.add_session(session.clone());
    match peer.welcome(Some(session.id.clone())).await {
        Err(_) => opened.close_unserved().await,
        Ok(()) => match streams(stdio, peer.stream) {
            (stdio, Some(shim)) => opened.serve(stdio, NoteReceiver::Shim(shim)).await,
            (stdio, None) => opened.serve(stdio, NoteReceiver::RelayingShim).await,
        },
    }
    state.remove_session(&session.id);
}

/// Serves a shim that connects to several servers.
async fn serve_aggregate(state: Arc<DaemonState>, mut peer: Peer, shim: ShimHello, origin: SessionOrigin) {
    let SessionOrigin { client, run } = origin;
    let settings = state.reloader.settings();
    let unknown = shim.profile.as_deref().and_then(|name| unknown_profile(&settings, name));
    if let Some(text) = unknown {
        return refuse(&state, &mut peer, &client, RefusalCode::UnknownServer, text).await;
    }
    let stdio = match take_stdio(&mut peer, shim.stdio) {
        Ok(stdio) => stdio,
        Err(problem) => {
            return refuse(&state, &mut peer, &client, RefusalCode::Malformed, problem.to_string()).await;
        }
    };
    let sessions = state.services.home.sessions();
    let handover = shim
        .resume
        .map(|ticket| AggregateHandover::redeem(&sessions, &ticket, &client.key, shim.profile.as_deref()));
    let handover = match handover.transpose() {
        Ok(handover) => handover,
        Err(problem) => {
            return refuse(&state, &mut peer, &client, RefusalCode::Unavailable, problem.to_string()).await;
        }
    };
    let opened = match Aggregate::open(
        host(state.clone(), client.clone(), run),
        client.clone(),
        shim.profile,
        handover,
    ) {
        Ok(opened) => opened,
        Err(problem) => {
            return refuse(&state, &mut peer, &client, RefusalCode::Unavailable, problem.to_string()).await;
        }
    };
    // `serve` detects that the shim has disconnected, so the error is ignored.
    let _ = peer.welcome(Some(opened.id().to_owned())).await;
    let (stdio, shim) = streams(stdio, peer.stream);
    opened.serve(stdio, shim).await;
}

/// Reason why a name does not select a server.
#[derive(Debug, thiserror::Error)]
enum NotConfiguredError {
    /// The server's entry disables it.
    #[error("the server `{0}` is disabled; remove `disabled` from its entry in `mcp-servers.json`")]
    Disabled(String),
    /// No entry has this name.
    #[error(
        "no server is named `{name}`; pass one of `{known}` to `--server`, or add `{name}` to `mcp-servers.json`"
    )]
    Unknown { name: String, known: String },
}

/// Returns the server entry with this name.
fn find_server(settings: &SessionSettings, name: &str) -> Result<ServerConfig, NotConfiguredError> {
    if let Some(config) = settings.servers.find(Some(name)) {
        for key in settings.servers.ignored(name) {
            tracing::warn!(
                "ignoring `{key}` of the server `{name}`: the policy and your answers decide which calls are allowed"
            );
        }
        return Ok(config.clone());
    }
    if settings.servers.is_disabled(name) {
        return Err(NotConfiguredError::Disabled(name.to_owned()));
    }
    let known = settings.servers.names().collect::<Vec<_>>().join("`, `");
    Err(NotConfiguredError::Unknown { name: name.to_owned(), known })
}

/// Returns the client's standard streams if the shim passed their descriptors, or `None` if the shim relays them.
fn take_stdio(peer: &mut Peer, mode: StdioMode) -> io::Result<Option<ClientStdio>> {
    match mode {
        StdioMode::HandedOver => peer.take_stdio().map(Some),
        StdioMode::Relayed => Ok(None),
    }
}

/// Returns the streams to the client, and the shim's socket unless it is one of the streams.
fn streams(stdio: Option<ClientStdio>, stream: UnixStream) -> (ClientStdio, Option<UnixStream>) {
    if let Some(stdio) = stdio {
        return (stdio, Some(stream));
    }
    let (input, output) = stream.into_split();
    let (input, output) = (Input::Half(input), Output::Half(output));
    (ClientStdio { input: LineSource::Stream(input), output: LineSink::Stream(output) }, None)
}

/// Refuses a session and records the refusal.
pub(super) async fn refuse(
    state: &DaemonState,
    peer: &mut Peer,
    client: &Client,
    code: RefusalCode,
    why: String,
) {
    let name = &client.view.name;
    let mut entry = Entry::new(Event::Session, format!("{name} was refused a session: {why}"));
    entry.client = Some(name.clone());
    entry.result = Some(CallResult::Refused);
    if let Err(problem) = state.services.audit.record(entry).await {
        tracing::error!(%problem, "failed to record the refusal of a session");
    }
    state.services.changed();
    peer.refuse(code, why).await;
}
