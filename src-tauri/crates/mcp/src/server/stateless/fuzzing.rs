//! Server side without a process, for fuzzing.

use super::negotiation::{initialize_result, protocol_version};
use super::{ClientHandle, MetaFields, StatelessServer};
use crate::server::reader::{MAX_UNWRITTEN, Reader, SAMPLING};
use crate::server::{ClientRequest, NoResponse, RootList, RootsSource, SamplingRequest, ServerConnection};
use crate::wire::{LineSink, Outbox, Outgoing, request_parts};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc, watch};

/// Methods of server requests that the client supports.
const SUPPORTED_REQUESTS: [&str; 2] = ["elicitation/create", SAMPLING];

/// Connection to a server without a process.
pub struct FuzzedServer {
    connection: ServerConnection,
    reader: Reader,
    for_server: mpsc::UnboundedReceiver<Outgoing>,
    for_client: mpsc::UnboundedReceiver<Outgoing>,
    sampling: mpsc::UnboundedReceiver<SamplingRequest>,
}

impl FuzzedServer {
    /// Creates a connection to a stateless server with this `server/discover` result, or to a handshake server if there
    /// is no result. Returns `None` if the protocol version is unsupported.
    #[must_use]
    pub fn new(initialize: &RawValue, discovered: Option<&RawValue>) -> Option<Self> {
        let (to_server, for_server) = mpsc::unbounded_channel();
        let (to_client, for_client) = mpsc::unbounded_channel();
        let (sampling_sender, sampling) = mpsc::unbounded_channel();
        let roots: Arc<dyn RootsSource> = Arc::new(RootList::default());
        let client_supports =
            watch::channel(SUPPORTED_REQUESTS.map(str::to_owned).into_iter().collect::<HashSet<_>>()).1;
        let (sent_roots_sender, sent_roots) = watch::channel(0);
        let (stdin, client) = (Outbox::unopened(), Outbox::unopened());
        stdin.open_sink(LineSink::Channel(to_server));
        client.open_sink(LineSink::Channel(to_client));
        let connection = ServerConnection {
            pending: Arc::default(),
            to_server: stdin,
            initialized: Arc::default(),
            stateless: Arc::default(),
            sent_roots,
        };
        if let Some(discovered) = discovered {
            initialize_result(discovered, protocol_version(initialize).as_deref())?;
            let client = ClientHandle {
                outbox: client.clone(),
                roots: roots.clone(),
                client_supports: client_supports.clone(),
                sampling: sampling_sender.clone(),
            };
            connection.set_stateless(StatelessServer::new(
                MetaFields::from_initialize(initialize).ok()?,
                client,
                discovered,
            ));
        }
        let reader = Reader {
            connection: connection.clone(),
            client,
            roots,
            client_supports,
            sampling: sampling_sender,
            log_invalid: Arc::new(drop),
            sent_roots: sent_roots_sender,
            unwritten: Arc::new(Semaphore::new(MAX_UNWRITTEN)),
        };
        Some(Self { connection, reader, for_server, for_client, sampling })
    }

    /// Returns the connection, as the core uses it.
    #[must_use]
    pub fn connection(&self) -> &ServerConnection {
        &self.connection
    }

    /// Feeds a line from the server, without its line feed.
    pub fn server_sends(&self, line: Vec<u8>) {
        self.reader.receive(line, None);
    }

    /// Ends the server's output, as an exit does.
    pub fn ends(&self) {
        self.connection.close(&NoResponse::ServerExited(None));
    }

    /// Returns the lines sent to the server since the last call.
    pub fn server_receives(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.for_server.try_recv().ok()).map(|line| line.bytes().collect()).collect()
    }

    /// Returns the lines sent to the client since the last call. Approves every sampling request.
    pub fn client_receives(&mut self) -> Vec<Vec<u8>> {
        let sampled = std::iter::from_fn(|| self.sampling.try_recv().ok()).map(|request| {
            request.connection.add_client_request(request.id.clone(), ClientRequest::Sampling);
            request_parts(&request.id, SAMPLING, request.params)
        });
        let all: Vec<Outgoing> =
            sampled.chain(std::iter::from_fn(|| self.for_client.try_recv().ok())).collect();
        all.iter().map(|line| line.bytes().collect()).collect()
    }
}
