//! Accepts connections from shims and from the user's own programs.

use super::serve_session::{SessionOrigin, refuse, serve_session};
use super::{SHUTDOWN_TIMEOUT, run_sessions};
use crate::daemon_state::DaemonState;
use crate::record_export::RecordExport;
use crate::run::{Run, RunOptions};
use crate::{attach, control, identity};
use futures_util::FutureExt;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_connection::{Listener, Peer};
use ironcurtain_protocol::{Purpose, RefusalCode, RunAsk, RunHello};
use ironcurtain_services::{Services, next_connection};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Serves connections until shutdown is requested. Then closes all sessions and waits for them.
pub(super) async fn accept(state: Arc<DaemonState>, listener: Listener, export: RecordExport) {
    let mut peers = JoinSet::new();
    loop {
        tokio::select! {
            () = state.services.shutdown.requested.cancelled() => break,
            () = state.services.shutdown.takeover_requested.cancelled() => break,
            Some(_) = peers.join_next() => {}
            stream = next_connection(|| listener.accept()) => {
                let state = state.clone();
                peers.spawn(async move {
                    if let Some(peer) = Peer::accept(stream).await {
                        serve(state, peer).await;
                    }
                });
            }
        }
    }
    // Keep the locks on the state until everything has been recorded.
    let locks = listener.close();
    let ended = async {
        if state.services.shutdown.takeover_requested.is_cancelled() {
            state.services.shutdown.taken_over.cancel();
        } else {
            state.sessions().iter().for_each(|session| session.end());
        }
        // Runs cannot be handed over to another daemon.
        state.runs().iter().for_each(|run| run.end());
        while (!state.sessions().is_empty() || !state.runs().is_empty()) && peers.join_next().await.is_some()
        {
        }
        state.services.shutdown.requested.cancel();
        state.services.shutdown.sandboxes_exited().await;
    };
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, ended).await.is_err() {
        record_timeout(&state).await;
    }
    state.services.grants.close().await;
    if let Err(problem) =
        state.services.audit.record(Entry::new(Event::Daemon, "the trusted process ended")).await
    {
        tracing::error!(%problem, "failed to record the shutdown");
    }
    state.services.audit.flush().await;
    tokio::join!(state.services.record_head.end(), export.end());
    // Closing the connection tells a connected program that another daemon can start.
    drop(locks);
    state.services.shutdown.ended.cancel();
}

/// Records that shutdown timed out before the last check for autostart files was complete.
async fn record_timeout(state: &DaemonState) {
    let unfinished_checks = state.services.autostart.final_checks().descriptions();
    let summary = format!(
        "the trusted process ended before the final check of sandbox-writable folders was complete ({}); the \
         next start repeats it",
        if unfinished_checks.is_empty() {
            "one sandbox did not exit".to_owned()
        } else {
            unfinished_checks.join("; ")
        }
    );
    tracing::error!("{summary}");
    if let Err(problem) = state.services.audit.record(Entry::new(Event::Daemon, summary)).await {
        tracing::error!(%problem, "failed to record the shutdown");
    }
}

async fn serve(state: Arc<DaemonState>, peer: Peer) {
    match peer.hello.purpose.clone() {
        Purpose::Control => control::serve(state, peer).await,
        Purpose::Session(shim) => {
            let origin =
                SessionOrigin { client: identity::identify_client(peer.pid, shim.label.clone()), run: None };
            serve_session(state, peer, shim, origin).await;
        }
        Purpose::Run(request) => serve_run(state, peer, request).await,
        Purpose::TakeOver => yield_to_app(&state, peer).await,
        Purpose::Attach { host } => attach::desktop::serve(&state, peer, &host).await,
        Purpose::Relay => attach::relay::serve(&state, peer).await,
    }
}

/// Shuts down so that the app's daemon, which can ask the user, takes over.
///
/// The app starts its daemon once this connection closes.
async fn yield_to_app(state: &DaemonState, mut peer: Peer) {
    if state.services.broker.can_ask() {
        let text = "IronCurtain is already running and can show its questions itself".to_owned();
        return peer.refuse(RefusalCode::CannotTakeOver, text).await;
    }
    let summary = "the app replaces the trusted process, which could not ask the user";
    if let Err(problem) = state.services.audit.record(Entry::new(Event::Daemon, summary)).await {
        return peer.refuse(RefusalCode::Unavailable, problem.to_string()).await;
    }
    if peer.welcome(None).await.is_ok() {
        state.services.shutdown.takeover_requested.cancel();
        state.services.shutdown.ended.cancelled().await;
    }
}

/// Serves a run until it ends.
async fn serve_run(state: Arc<DaemonState>, mut peer: Peer, request: RunHello) {
    state.reloader.reload().await;
    let settings = state.reloader.settings();
    let starter = identity::identify_client(peer.pid, None);
    // The run counts towards the session limit until it ends.
    let _slot = match state.reserve_slot(settings.config.max_sessions, None) {
        Ok(slot) => slot,
        Err(problem) => {
            return refuse(&state, &mut peer, &starter, RefusalCode::Unavailable, problem.to_string()).await;
        }
    };
    let descriptors = match peer.take_run(request.ask == RunAsk::Terminal) {
        Ok(descriptors) => descriptors,
        Err(problem) => {
            return refuse(&state, &mut peer, &starter, RefusalCode::Malformed, problem.to_string()).await;
        }
    };
    let services = Services { config: settings.config.clone(), ..state.services.clone() };
    let options = RunOptions { starter: starter.view.clone(), request, descriptors };
    let opening = state.opening_run().await;
    let (opened, sessions) = match Run::open(services, options).await {
        Ok(opened) => opened,
        Err(problem) => {
            return refuse(&state, &mut peer, &starter, RefusalCode::Unavailable, problem.to_string()).await;
        }
    };
    let run = opened.run.clone();
    state.add_run(run.clone());
    drop(opening);
    let sessions = tokio::spawn(run_sessions::serve(state.clone(), run.clone(), sessions));
    let sessions_ended = async move {
        if let Err(problem) = sessions.await {
            tracing::error!(%problem, "failed to serve the sessions of a run");
        }
    };
    let sessions_ended = sessions_ended.boxed().shared();
    match peer.welcome(Some(run.id.clone())).await {
        Err(_) => {
            opened.close_unserved().await;
            state.remove_run(&run.id);
        }
        Ok(()) => {
            let remove = || state.remove_run(&run.id);
            opened.serve(peer.stream, sessions_ended.clone(), remove).await;
        }
    }
    // Every stream of the sandbox is closed by now, so each session ends.
    sessions_ended.await;
}
