//! Forwards ports between a sandbox and this computer: to local services, and from ports that a run publishes.

use super::local::LocalServices;
use ironcurtain_sandbox::{PROXY_PORT, ServiceLink};
use ironcurtain_services::next_connection;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Maximum number of open connections per published port.
const MAX_CONNECTIONS: usize = 256;

/// Maximum number of pending requests per sandbox. Further requests wait in the sandbox.
const MAX_REQUESTS: usize = 64;

/// Maximum number of connections to one published port that are being opened. Each connection blocks a thread until the
/// program in the run accepts it.
const MAX_OPENING: usize = 16;

/// Stack size for the thread that waits for requests, in bytes.
const STACK: usize = 64 * 1024;

/// Port in the run that is published on this computer.
#[derive(Debug)]
pub struct PublishedPort {
    port: u16,
    listener: TcpListener,
}

/// Error returned when a port cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The run's proxy uses the port.
    #[error("port {PROXY_PORT} cannot be published, because the run's proxy uses it")]
    Proxy,
    /// The port cannot be bound on this computer.
    #[error("failed to publish port {port}: {problem}")]
    Listen {
        /// Port number.
        port: u16,
        /// Operating system error.
        problem: io::Error,
    },
}

impl PublishedPort {
    /// Binds a port on this computer's loopback interface.
    ///
    /// # Errors
    /// Returns [`PublishError`] if the port is the proxy's or cannot be bound.
    pub fn listen(port: u16) -> Result<Self, PublishError> {
        if port == PROXY_PORT {
            return Err(PublishError::Proxy);
        }
        let failed = |problem| PublishError::Listen { port, problem };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { port, listener })
    }
}

/// Serves the ports of a sandbox until the link closes or the returned set is dropped.
///
/// # Errors
/// Returns the operating system's error if the link cannot be duplicated or the thread cannot be spawned.
pub fn serve_ports(
    services: Option<Arc<LocalServices>>,
    link: ServiceLink,
    published: Vec<PublishedPort>,
) -> io::Result<JoinSet<()>> {
    let mut serving = JoinSet::new();
    for port in published {
        serving.spawn(publish(port, link.try_clone()?));
    }
    let (requests, mut asked) = mpsc::channel(1);
    std::thread::Builder::new().name("run-ports".into()).stack_size(STACK).spawn(move || {
        // The link closes when the sandbox exits.
        while let Ok(request) = link.next() {
            if requests.blocking_send(request).is_err() {
                return;
            }
        }
    })?;
    serving.spawn(async move {
        let mut answering = JoinSet::new();
        loop {
            tokio::select! {
                request = asked.recv(), if answering.len() < MAX_REQUESTS => {
                    let Some(request) = request else { return };
                    let Some(services) = services.clone() else { continue };
                    answering.spawn(async move {
                        if let Err(problem) = services.answer(request).await {
                            tracing::warn!(%problem, "failed to connect a run to a service of this computer");
                        }
                    });
                }
                Some(_) = answering.join_next() => {}
            }
        }
    });
    Ok(serving)
}

async fn publish(published: PublishedPort, link: ServiceLink) {
    let PublishedPort { port, listener } = published;
    // Fails only outside a runtime.
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let (link, slots) = (Arc::new(link), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
    let opening = Arc::new(Semaphore::new(MAX_OPENING));
    let mut connections = JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let (outside, _) = loop {
            tokio::select! {
                accepted = next_connection(|| listener.accept()) => break accepted,
                Some(_) = connections.join_next() => {}
            }
        };
        let (link, opening) = (link.clone(), opening.clone());
        connections.spawn(async move {
            if let Err(problem) = relay(outside, port, (link, &*opening)).await {
                tracing::debug!(%problem, port, "a connection to a published port ended");
            }
            drop(slot);
        });
    }
}

async fn relay(
    mut outside: TcpStream,
    port: u16,
    (link, opening): (Arc<ServiceLink>, &Semaphore),
) -> io::Result<()> {
    let inside = {
        // The semaphore is never closed.
        let _place = opening.acquire().await;
        tokio::task::spawn_blocking(move || link.connect(port)).await??
    };
    inside.set_nonblocking(true)?;
    copy_bidirectional(&mut outside, &mut TcpStream::from_std(inside)?).await?;
    Ok(())
}
