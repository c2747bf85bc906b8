//! Accepts what the sandbox opens, finds out which language it speaks, and keeps every bound.

use crate::ask::Ask;
use crate::connections::Connections;
use crate::gate::Gate;
use crate::io::Watched;
use crate::record::Record;
use crate::resolve::Resolve;
use crate::rules::Rules;
use crate::{http, socks};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// What one proxy needs.
pub struct Proxy {
    /// The server behind it, for the record.
    pub server: String,
    /// What may be reached. It may change at any time: connections that it no longer allows are cut. When its sender is
    /// gone, so is every permission.
    pub rules: watch::Receiver<Arc<Rules>>,
    /// Who is asked about what the rules do not know; without anybody, it is refused.
    pub ask: Option<Arc<dyn Ask>>,
    /// Where decisions are written down.
    pub record: Arc<dyn Record>,
    /// Who knows the addresses of names.
    pub resolve: Arc<dyn Resolve>,
    /// Where open connections are counted.
    pub connections: Connections,
    /// The bounds.
    pub limits: Limits,
}

/// How much and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; more wait in the kernel's queue.
    pub connections: usize,
    /// The longest head of a request, in bytes.
    pub head: usize,
    /// For each step in which the client has to say something: first byte, head, SOCKS greeting, ClientHello.
    pub handshake: Duration,
    /// For one look-up of a name.
    pub resolve: Duration,
    /// For each address that is dialled.
    pub dial: Duration,
    /// For an answer to a question; whoever asks has a shorter one.
    pub answer: Duration,
    /// For a connection on which nothing passes.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            head: 64 * 1024,
            handshake: Duration::from_secs(20),
            resolve: Duration::from_secs(15),
            dial: Duration::from_secs(15),
            answer: Duration::from_secs(40 * 60),
            idle: Duration::from_secs(60 * 60),
        }
    }
}

/// Serves the listener until it fails; the error says how. Dropping the future ends every connection.
pub async fn serve(listener: std::net::TcpListener, proxy: Proxy) -> io::Error {
    let accepting = listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener));
    let listener = match accepting {
        Ok(listener) => listener,
        Err(problem) => return problem,
    };
    let places = Arc::new(Semaphore::new(proxy.limits.connections));
    let gate = Arc::new(Gate::new(proxy));
    let mut connections = JoinSet::new();
    loop {
        // A place first: whoever finds none waits in the kernel's queue.
        let Ok(place) = places.clone().acquire_owned().await else { return io::ErrorKind::Other.into() };
        let accepted = loop {
            tokio::select! {
                accepted = listener.accept() => break accepted,
                // Reaped as they end, so that the set does not grow.
                Some(_) = connections.join_next() => {}
            }
        };
        match accepted {
            Ok((stream, _)) => {
                let gate = gate.clone();
                connections.spawn(async move {
                    connection(stream, &gate).await;
                    drop(place);
                });
            }
            Err(problem) if is_passing(&problem) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(problem) => return problem,
        }
    }
}

/// Whether accepting can go on after this: the connection was gone already, or descriptors are short for now.
fn is_passing(problem: &io::Error) -> bool {
    const TOO_MANY: [i32; 2] = [23, 24];
    let kinds =
        [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset, io::ErrorKind::Interrupted];
    kinds.contains(&problem.kind()) || problem.raw_os_error().is_some_and(|code| TOO_MANY.contains(&code))
}

async fn connection(stream: TcpStream, gate: &Gate) {
    // Without it, answers are only later.
    let _ = stream.set_nodelay(true);
    let mut first = [0];
    let Ok(Ok(1)) = timeout(gate.limits.handshake, stream.peek(&mut first)).await else { return };
    let (stream, activity) = Watched::new(stream);
    let served = async {
        match first {
            [socks::VERSION] => socks::serve(stream, gate).await,
            [b'A'..=b'Z'] => http::serve(stream, gate).await,
            // Nothing that a proxy is asked in.
            _ => {}
        }
    };
    tokio::select! {
        () = served => {}
        () = activity.silence(gate.limits.idle) => {}
    }
}
