//! Accepts connections from the sandbox, detects their protocol and enforces the proxy's limits.

use crate::activity::ActivityStream;
use crate::gate::Gate;
use crate::proxy::Proxy;
use crate::{http, socks};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Accepts connections until the listener fails, and returns the listener's error. Dropping the future closes all
/// connections.
pub async fn serve(listener: std::net::TcpListener, proxy: Proxy) -> io::Error {
    let accepting = listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener));
    let listener = match accepting {
        Ok(listener) => listener,
        Err(problem) => return problem,
    };
    let slots = Arc::new(Semaphore::new(proxy.limits.connections));
    let gate = Arc::new(Gate::new(proxy));
    let mut connections = JoinSet::new();
    loop {
        // Acquires a permit before accepting so that excess connections wait in the kernel's backlog.
        let Ok(slot) = slots.clone().acquire_owned().await else { return io::ErrorKind::Other.into() };
        let accepted = loop {
            tokio::select! {
                accepted = listener.accept() => break accepted,
                // Reaps finished tasks so that the set does not grow.
                Some(_) = connections.join_next() => {}
            }
        };
        match accepted {
            Ok((stream, _)) => {
                let gate = gate.clone();
                connections.spawn(async move {
                    connection(stream, &gate).await;
                    drop(slot);
                });
            }
            Err(problem) if is_temporary(&problem) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(problem) => return problem,
        }
    }
}

/// Returns `true` for a temporary error: the client has already disconnected, or the descriptor limit was reached.
fn is_temporary(problem: &io::Error) -> bool {
    const TOO_MANY_FILES: [i32; 2] = [23, 24];
    let kinds =
        [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset, io::ErrorKind::Interrupted];
    kinds.contains(&problem.kind())
        || problem.raw_os_error().is_some_and(|code| TOO_MANY_FILES.contains(&code))
}

async fn connection(stream: TcpStream, gate: &Gate) {
    // An error is ignored, because it only delays small writes.
    let _ = stream.set_nodelay(true);
    let mut first = [0];
    let Ok(Ok(1)) = timeout(gate.limits.handshake, stream.peek(&mut first)).await else { return };
    let (stream, activity) = ActivityStream::new(stream);
    let served = async {
        match first {
            [socks::VERSION] => socks::serve(stream, gate).await,
            [b'A'..=b'Z'] => http::serve(stream, gate).await,
            // The protocol is unknown, so the connection is closed.
            _ => {}
        }
    };
    tokio::select! {
        () = served => {}
        () = activity.wait_idle(gate.limits.idle) => {}
    }
}
