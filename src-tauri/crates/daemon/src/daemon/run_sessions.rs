//! Sessions that a run's programs open through a socket that exists only in the run's sandbox.
//!
//! - INVARIANT: the client of such a session is always the run, regardless of the connecting process and its messages.
//!   A peer can only open a session. It cannot resume one or send any other request.
//! - The sessions end with the run.

use super::serve_session::{SessionOrigin, refuse, serve_session};
use crate::daemon_state::DaemonState;
use crate::run::{BUILT_IN_SERVER, Run};
use ironcurtain_connection::Peer;
use ironcurtain_protocol::{Purpose, RefusalCode, ShimHello, StdioMode};
use ironcurtain_services::next_connection;
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// Maximum number of connections from one run.
const MAX_CONNECTIONS: usize = 64;

/// Serves connections until the run ends. Then ends the run's sessions and waits for them.
pub(super) async fn serve(state: Arc<DaemonState>, run: Arc<Run>, listener: UnixListener) {
    let mut peers = JoinSet::new();
    loop {
        tokio::select! {
            () = run.wait_for_end() => break,
            Some(_) = peers.join_next() => {}
            (stream, _) = next_connection(|| listener.accept()), if peers.len() < MAX_CONNECTIONS => {
                peers.spawn(admit(state.clone(), run.clone(), stream));
            }
        }
    }
    drop(listener);
    let live = state.sessions();
    live.iter().filter(|session| session.run.as_ref() == Some(&run.id)).for_each(|session| session.end());
    while peers.join_next().await.is_some() {}
}

async fn admit(state: Arc<DaemonState>, run: Arc<Run>, stream: UnixStream) {
    // Limits the rate, because each opened or refused session is recorded.
    run.files.pace.acquire().await;
    let Some(mut peer) = Peer::accept_sandboxed(stream).await else { return };
    match peer.hello.purpose.clone() {
        Purpose::Session(shim @ ShimHello { resume: None, stdio: StdioMode::Relayed, .. }) => {
            if shim.server.as_deref() == Some(BUILT_IN_SERVER) {
                // `serve_tools` detects that the client has disconnected, so the error is ignored.
                let _ = peer.welcome(Some(run.id.clone())).await;
                return run.serve_tools(peer.stream).await;
            }
            let origin = SessionOrigin { client: run.client(shim.label.clone()), run: Some(run.id.clone()) };
            serve_session(state, peer, shim, origin).await;
        }
        Purpose::Session(_)
        | Purpose::Run(_)
        | Purpose::Control
        | Purpose::TakeOver
        | Purpose::Attach { .. }
        | Purpose::Relay => {
            let why = "a program in a run can only open new sessions".to_owned();
            refuse(&state, &mut peer, &run.client(None), RefusalCode::Malformed, why).await;
        }
    }
}
