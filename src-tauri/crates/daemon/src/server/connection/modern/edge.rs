//! The server's edge with nothing beside it, for whoever feeds it foreign bytes.

use super::negotiate::{revision, welcome};
use super::{Behalf, ModernServer, Stamp};
use crate::server::SamplingRequest;
use crate::server::connection::reader::{MOST_UNWRITTEN, Reader, SAMPLING};
use crate::server::connection::{NoAnswer, ServerConnection};
use crate::server::roots::ServerView;
use crate::session_log::SessionLogs;
use crate::wire::{Outbox, Outgoing, Outlet, request_parts};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};
use tokio::sync::{Semaphore, mpsc, watch};

/// The methods that the client takes from a server.
const TAKES: [&str; 2] = ["elicitation/create", SAMPLING];

/// Keeps nothing.
static LOGS: LazyLock<Option<SessionLogs>> = LazyLock::new(|| SessionLogs::start().ok());

/// A conversation with a server, without a process.
pub struct ServerEdge {
    connection: ServerConnection,
    reader: Reader,
    for_server: mpsc::UnboundedReceiver<Outgoing>,
    for_client: mpsc::UnboundedReceiver<Outgoing>,
    sampling: mpsc::UnboundedReceiver<SamplingRequest>,
}

impl ServerEdge {
    /// With a server that has answered `server/discover` with this, or that has shaken hands. Nothing where it would not be spoken
    /// to in the era.
    #[must_use]
    pub fn new(greeting: &RawValue, discovered: Option<&RawValue>) -> Option<Self> {
        let (to_server, for_server) = mpsc::unbounded_channel();
        let (to_client, for_client) = mpsc::unbounded_channel();
        let (sampling_sender, sampling) = mpsc::unbounded_channel();
        let roots = watch::channel(ServerView::default()).1;
        let client_takes = watch::channel(TAKES.map(str::to_owned).into_iter().collect::<HashSet<_>>()).1;
        let (told_sender, told) = watch::channel(0);
        let (stdin, client) = (Outbox::unopened(), Outbox::unopened());
        stdin.open_to(Outlet::Memory(to_server));
        client.open_to(Outlet::Memory(to_client));
        let connection = ServerConnection {
            asked: Arc::default(),
            to_server: stdin,
            initialized: Arc::default(),
            modern: Arc::default(),
            told,
        };
        if let Some(discovered) = discovered {
            welcome(discovered, revision(greeting).as_deref())?;
            let behalf = Behalf {
                client: client.clone(),
                roots: roots.clone(),
                client_takes: client_takes.clone(),
                sampling: sampling_sender.clone(),
            };
            connection.speaks_modern(ModernServer::new(Stamp::of(greeting).ok()?, behalf, discovered));
        }
        let reader = Reader {
            connection: connection.clone(),
            client,
            roots,
            client_takes,
            sampling: sampling_sender,
            noise: LOGS.as_ref()?.log("/dev/null".into()),
            told: told_sender,
            unwritten: Arc::new(Semaphore::new(MOST_UNWRITTEN)),
        };
        Some(Self { connection, reader, for_server, for_client, sampling })
    }

    /// The way in for the core.
    #[must_use]
    pub fn connection(&self) -> &ServerConnection {
        &self.connection
    }

    /// A line of the server, without its line feed.
    pub fn server_says(&self, line: Vec<u8>) {
        self.reader.receive(line, None);
    }

    /// The server's output has ended.
    pub fn ends(&self) {
        self.connection.over(&NoAnswer::Ended(None));
    }

    /// The lines that the server was sent since.
    pub fn server_hears(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.for_server.try_recv().ok()).map(|line| line.bytes().collect()).collect()
    }

    /// The lines that the client was sent since. What its model is to answer it is always allowed.
    pub fn client_hears(&mut self) -> Vec<Vec<u8>> {
        let sampled = std::iter::from_fn(|| self.sampling.try_recv().ok()).map(|request| {
            request.connection.asks_client(request.id.clone(), ClientRequest::Sampling);
            request_parts(&request.id, SAMPLING, request.params)
        });
        let all: Vec<Outgoing> =
            sampled.chain(std::iter::from_fn(|| self.for_client.try_recv().ok())).collect();
        all.iter().map(|line| line.bytes().collect()).collect()
    }
}
