//! Accepts connections from shims and from the user's own programs.

use super::ENDING;
use crate::daemon_state::DaemonState;
use crate::run::{Run, RunOptions};
use crate::services::Services;
use crate::session::{Attached, Session, SessionHandover, SessionOptions};
use crate::upstream::host;
use crate::{control, identity};
use ironcurtain_audit::{CallResult, Entry, Event};
use ironcurtain_config::{Server as ServerConfig, SessionSettings};
use ironcurtain_connection::{Aggregate, AggregateHandover, ClientStdio, Listener, Peer, unknown_profile};
use ironcurtain_grants::Client;
use ironcurtain_mcp::wire::{Inlet, Input, Outlet, Output};
use ironcurtain_protocol::{Purpose, RefusalCode, RunAsk, RunHello, ShimHello, StdioMode};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

/// Delay after a failed accept, for example because no file descriptors are available.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves connections until shutdown is requested. Then closes all sessions and waits for them.
pub(super) async fn accept(state: Arc<DaemonState>, listener: Listener) {
    let mut peers = JoinSet::new();
    loop {
        tokio::select! {
            () = state.services.shutdown.requested.cancelled() => break,
            () = state.services.shutdown.takeover_requested.cancelled() => break,
            Some(_) = peers.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok(stream) => {
                    let state = state.clone();
                    peers.spawn(async move {
                        if let Some(peer) = Peer::accept(stream).await {
                            serve(state, peer).await;
                        }
                    });
                }
                Err(problem) => {
                    tracing::error!(%problem, "failed to accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    // Keep the locks on the state until everything has been recorded.
    let locks = listener.close();
    let ended = async {
        if state.services.shutdown.takeover_requested.is_cancelled() {
            state.services.shutdown.taken_over.cancel();
        } else {
            state.live().iter().for_each(|session| session.end());
        }
        // Runs cannot be handed over to another daemon.
        state.runs().iter().for_each(|run| run.end());
        while (!state.live().is_empty() || !state.runs().is_empty()) && peers.join_next().await.is_some() {}
        state.services.shutdown.requested.cancel();
        state.services.shutdown.sandboxes_exited().await;
    };
    if tokio::time::timeout(ENDING, ended).await.is_err() {
        record_timeout(&state).await;
    }
    state.services.grants.close().await;
    if let Err(problem) =
        state.services.audit.record(Entry::new(Event::Daemon, "the trusted process ended")).await
    {
        tracing::error!(%problem, "failed to record the shutdown");
    }
    state.services.audit.settle().await;
    state.services.record_head.end().await;
    // The closed connection lets a connected program know that another daemon can start.
    drop(locks);
    state.services.shutdown.ended.cancel();
}

/// Records that shutdown timed out before the last check for autostart files was complete.
async fn record_timeout(state: &DaemonState) {
    let words = state.services.autostart.last_looks().words();
    let summary = format!(
        "the trusted process ended before the last check of what sandboxes could write to was complete ({}); the next \
         start repeats it",
        if words.is_empty() { "one sandbox did not exit".to_owned() } else { words.join("; ") }
    );
    tracing::error!("{summary}");
    if let Err(problem) = state.services.audit.record(Entry::new(Event::Daemon, summary)).await {
        tracing::error!(%problem, "failed to record the shutdown");
    }
}

async fn serve(state: Arc<DaemonState>, peer: Peer) {
    match peer.hello.purpose.clone() {
        Purpose::Control => control::serve(state, peer).await,
        Purpose::Session(shim) => serve_session(state, peer, shim).await,
        Purpose::Run(request) => serve_run(state, peer, request).await,
        Purpose::TakeOver => give_way(&state, peer).await,
    }
}

/// Shuts down so that the app's daemon, which can ask the user, takes over.
///
/// The app starts its daemon once this connection closes.
async fn give_way(state: &DaemonState, mut peer: Peer) {
    if state.services.broker.can_ask() {
        let text = "IronCurtain is already running, and asks where it runs".to_owned();
        return peer.refuse(RefusalCode::Stays, text).await;
    }
    let summary = "the app takes the place of the trusted process, which could ask nobody";
    if let Err(problem) = state.services.audit.record(Entry::new(Event::Daemon, summary)).await {
        return peer.refuse(RefusalCode::Unavailable, problem.to_string()).await;
    }
    if peer.welcome(None).await.is_ok() {
        state.services.shutdown.takeover_requested.cancel();
        state.services.shutdown.ended.cancelled().await;
    }
}

async fn serve_session(state: Arc<DaemonState>, mut peer: Peer, shim: ShimHello) {
    state.reloader.reload().await;
    let now = state.reloader.settings();
    let client = identity::of_shim(peer.pid, shim.label.clone());
    let Some(server) = &shim.server else { return serve_aggregate(state, peer, shim, client).await };
    let config = match configured(&now, server) {
        Ok(config) => config,
        Err(none) => {
            return refuse(&state, &mut peer, &client, RefusalCode::UnknownServer, none.to_string()).await;
        }
    };
    // Counts towards the limit until the session ends.
    let _place = match state.place(now.config.max_sessions) {
        Ok(place) => place,
        Err(none) => {
            return refuse(&state, &mut peer, &client, RefusalCode::Unavailable, none.to_string()).await;
        }
    };
    let stdio = match stdio_of(&mut peer, shim.stdio) {
        Ok(stdio) => stdio,
        Err(problem) => {
            return refuse(&state, &mut peer, &client, RefusalCode::Malformed, problem.to_string()).await;
        }
    };
    let services = Services { config: now.config.clone(), ..state.services.clone() };
    let moved = shim.resume.map(|ticket| {
        SessionHandover::take(&state.services.home.sessions(), &ticket, &client.key, &config.name)
    });
    let moved = match moved.transpose() {
        Ok(moved) => moved,
        Err(problem) => {
            return refuse(&state, &mut peer, &client, RefusalCode::Unavailable, problem.to_string()).await;
        }
    };
    let options = SessionOptions { client: client.clone(), server: config, connection: None, moved };
    let opened = match Session::open(services, options).await {
        Ok(opened) => opened,
        Err(problem) => {
            return refuse(&state, &mut peer, &client, RefusalCode::Unavailable, problem.to_string()).await;
        }
    };
    let session = opened.session.clone();
    state.began(session.clone());
    match peer.welcome(Some(session.id.clone())).await {
        Err(_) => opened.close_unserved().await,
        Ok(()) => match streams(stdio, peer.stream) {
            (stdio, Some(shim)) => opened.serve(stdio, Attached::Shim(shim)).await,
            (stdio, None) => opened.serve(stdio, Attached::Copying).await,
        },
    }
    state.ended(&session.id);
}

/// Serves a run until it ends.
async fn serve_run(state: Arc<DaemonState>, mut peer: Peer, request: RunHello) {
    state.reloader.reload().await;
    let now = state.reloader.settings();
    let starter = identity::of_shim(peer.pid, None);
    // Counts towards the limit until the run ends.
    let _place = match state.place(now.config.max_sessions) {
        Ok(place) => place,
        Err(none) => {
            return refuse(&state, &mut peer, &starter, RefusalCode::Unavailable, none.to_string()).await;
        }
    };
    let descriptors = match peer.take_run(request.ask == RunAsk::Terminal) {
        Ok(descriptors) => descriptors,
        Err(problem) => {
            return refuse(&state, &mut peer, &starter, RefusalCode::Malformed, problem.to_string()).await;
        }
    };
    let services = Services { config: now.config.clone(), ..state.services.clone() };
    let options = RunOptions { starter: starter.view.clone(), request, descriptors };
    let opened = match Run::open(services, options).await {
        Ok(opened) => opened,
        Err(problem) => {
            return refuse(&state, &mut peer, &starter, RefusalCode::Unavailable, problem.to_string()).await;
        }
    };
    let run = opened.run.clone();
    state.run_began(run.clone());
    match peer.welcome(Some(run.id.clone())).await {
        Err(_) => opened.unserved().await,
        Ok(()) => opened.serve(peer.stream).await,
    }
    state.run_ended(&run.id);
}

/// Serves a shim that connects to several servers.
async fn serve_aggregate(state: Arc<DaemonState>, mut peer: Peer, shim: ShimHello, client: Client) {
    let now = state.reloader.settings();
    let unknown = shim.profile.as_deref().and_then(|name| unknown_profile(&now, name));
    if let Some(text) = unknown {
        return refuse(&state, &mut peer, &client, RefusalCode::UnknownServer, text).await;
    }
    let stdio = match stdio_of(&mut peer, shim.stdio) {
        Ok(stdio) => stdio,
        Err(problem) => {
            return refuse(&state, &mut peer, &client, RefusalCode::Malformed, problem.to_string()).await;
        }
    };
    let sessions = state.services.home.sessions();
    let moved = shim
        .resume
        .map(|ticket| AggregateHandover::take(&sessions, &ticket, &client.key, shim.profile.as_deref()));
    let moved = match moved.transpose() {
        Ok(moved) => moved,
        Err(problem) => {
            return refuse(&state, &mut peer, &client, RefusalCode::Unavailable, problem.to_string()).await;
        }
    };
    let opened =
        match Aggregate::open(host(state.clone(), client.clone()), client.clone(), shim.profile, moved) {
            Ok(opened) => opened,
            Err(problem) => {
                return refuse(&state, &mut peer, &client, RefusalCode::Unavailable, problem.to_string())
                    .await;
            }
        };
    // Ignore the error: `serve` detects that the shim has disconnected.
    let _ = peer.welcome(Some(opened.id().to_owned())).await;
    let (stdio, shim) = streams(stdio, peer.stream);
    opened.serve(stdio, shim).await;
}

/// Reason why no server can be selected by a name.
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
fn configured(now: &SessionSettings, name: &str) -> Result<ServerConfig, NotConfiguredError> {
    if let Some(config) = now.servers.find(Some(name)) {
        for key in now.servers.ignored(name) {
            tracing::warn!(
                "ignoring `{key}` of the server `{name}`: the policy and your answers decide which calls are allowed"
            );
        }
        return Ok(config.clone());
    }
    if now.servers.is_disabled(name) {
        return Err(NotConfiguredError::Disabled(name.to_owned()));
    }
    let known = now.servers.names().collect::<Vec<_>>().join("`, `");
    Err(NotConfiguredError::Unknown { name: name.to_owned(), known })
}

/// Returns the client's standard streams if the shim passed their descriptors, or `None` if the shim relays them.
fn stdio_of(peer: &mut Peer, mode: StdioMode) -> io::Result<Option<ClientStdio>> {
    match mode {
        StdioMode::HandedOver => peer.take_stdio().map(Some),
        StdioMode::Relayed => Ok(None),
    }
}

/// Returns the streams to the client. Also returns the shim's socket if it is not used as that stream.
fn streams(stdio: Option<ClientStdio>, stream: UnixStream) -> (ClientStdio, Option<UnixStream>) {
    if let Some(stdio) = stdio {
        return (stdio, Some(stream));
    }
    let (input, output) = stream.into_split();
    let (input, output) = (Input::Half(input), Output::Half(output));
    (ClientStdio { input: Inlet::Stream(input), output: Outlet::Stream(output) }, None)
}

/// Refuses a session, and records the refusal.
async fn refuse(state: &DaemonState, peer: &mut Peer, client: &Client, code: RefusalCode, why: String) {
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
