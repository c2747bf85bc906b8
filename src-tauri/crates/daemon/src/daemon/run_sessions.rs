//! Sessions that programs of a run open, at a socket that exists only in its sandbox.
//!
//! - INVARIANT: the client of such a session is always the run, independent of the process that connects and of its
//!   messages. A peer cannot resume a session of another client, or request anything else.
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

/// Maximum number of connections of one run.
const MAX_CONNECTIONS: usize = 64;

/// Serves connections until the run ends, then ends its sessions and waits for them.
pub(super) async fn serve(state: Arc<DaemonState>, run: Arc<Run>, listener: UnixListener) {
    let mut peers = JoinSet::new();
    loop {
        tokio::select! {
            () = run.ending() => break,
            Some(_) = peers.join_next() => {}
            (stream, _) = next_connection(|| listener.accept()), if peers.len() < MAX_CONNECTIONS => {
                peers.spawn(admit(state.clone(), run.clone(), stream));
            }
        }
    }
    drop(listener);
    let live = state.live();
    live.iter().filter(|session| session.run.as_ref() == Some(&run.id)).for_each(|session| session.end());
    while peers.join_next().await.is_some() {}
}

async fn admit(state: Arc<DaemonState>, run: Arc<Run>, stream: UnixStream) {
    // Opening and refusing a session is recorded.
    run.files.pace.turn().await;
    let Some(mut peer) = Peer::accept_sandboxed(stream).await else { return };
    match peer.hello.purpose.clone() {
        Purpose::Session(shim @ ShimHello { resume: None, stdio: StdioMode::Relayed, .. }) => {
            if shim.server.as_deref() == Some(BUILT_IN_SERVER) {
                // The loop notices if the client has disconnected.
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
