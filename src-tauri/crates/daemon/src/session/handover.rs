//! Hands a session over to another daemon process, with its state and unprocessed input. The shim passes the client's
//! streams to that process.
//!
//! - INVARIANT: at the time of the handover, no client request is unanswered, and all input that was read but not
//!   processed is included.
//! - The state file is in the session directory, which only IronCurtain can write. The ticket for it is valid only
//!   once.

use super::Session;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_connection::{HANDOVER_ERROR, TicketError, as_base64, issue_ticket, redeem};
use ironcurtain_mcp::client::ClientVersion;
use ironcurtain_mcp::wire::error_line;
use ironcurtain_paths::random_name;
use ironcurtain_protocol::ShimNote;
use ironcurtain_server::ReplayState;
use rmcp::model::ErrorCode;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum time to wait for in-flight calls. It is short, because the user is waiting for the app to start.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// State of a session that is handed over to another daemon process.
#[derive(Debug, Serialize, Deserialize)]
pub struct SessionHandover {
    client: String,
    server: String,
    pub(super) state: ClientState,
}

/// The part of a session's state that concerns its client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ClientState {
    pub(super) id: String,
    pub(super) started_ms: u64,
    #[serde(rename = "says_it_is")]
    pub(super) claimed_name: Option<String>,
    /// Methods of the server requests that the client accepts.
    #[serde(rename = "takes")]
    pub(super) accepted_requests: HashSet<String>,
    /// `true` if the client declared the `roots` capability.
    pub(super) has_roots: bool,
    #[serde(rename = "greeted")]
    pub(super) initialized: bool,
    pub(super) has_batches: bool,
    pub(super) paused: bool,
    #[serde(rename = "told")]
    pub(super) replay: ReplayState,
    #[serde(rename = "era")]
    pub(super) version: ClientVersion,
    /// Bytes from the client that must be processed first. They start at a message boundary.
    #[serde(with = "as_base64")]
    pub(super) unread: Vec<u8>,
}

impl ClientState {
    /// Creates the state of a new session.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            id: random_name()?,
            started_ms: now_ms(),
            claimed_name: None,
            accepted_requests: HashSet::new(),
            has_roots: false,
            initialized: false,
            has_batches: false,
            paused: false,
            replay: ReplayState::default(),
            version: ClientVersion::Unknown,
            unread: Vec::new(),
        })
    }
}

impl SessionHandover {
    /// Redeems a ticket and returns its session's state. A ticket can be redeemed only once.
    ///
    /// # Errors
    /// Returns [`TicketError`] if the ticket is invalid for this client and server, or if the state cannot be read.
    pub fn redeem(sessions: &Path, ticket: &str, client: &str, server: &str) -> Result<Self, TicketError> {
        redeem(sessions, ticket, |id, handover: &Self| {
            (handover.state.id.as_str(), handover.client.as_str(), handover.server.as_str())
                == (id, client, server)
        })
    }
}

impl Session {
    /// Hands the session over to the process that replaces this one, and notifies the shim. Returns `false` on failure,
    /// after which the caller must close the session.
    pub(super) async fn hand_over(
        &self,
        unread: &[u8],
        version: &(dyn Fn() -> ClientVersion + Send + Sync),
    ) -> bool {
        self.flush_responses(FLUSH_TIMEOUT).await;
        for (id, call) in &self.in_flight.drain() {
            self.abandon(id, call, "the session was moved before the call was answered").await;
            self.reply(error_line(Some(id), ErrorCode::INTERNAL_ERROR.0, HANDOVER_ERROR));
        }
        self.flush_responses(FLUSH_TIMEOUT).await;
        match self.write_handover(unread, version()) {
            // Fails only if the shim has disconnected.
            Ok(ticket) => self.notes.send(ShimNote::Moved { ticket }.into()).is_ok(),
            Err(problem) => {
                tracing::error!(%problem, "failed to hand over a session; closing it");
                false
            }
        }
    }

    /// Stores the state for the other process and returns the ticket.
    fn write_handover(&self, unread: &[u8], version: ClientVersion) -> io::Result<String> {
        let state = ClientState {
            id: self.id.clone(),
            started_ms: self.started_ms,
            claimed_name: self.principal.claimed_name.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            accepted_requests: self.accepted_requests.borrow().clone(),
            has_roots: self.client_roots.is_declared(),
            initialized: self.is_initialized.load(Ordering::Relaxed),
            has_batches: self.has_batches.load(Ordering::Relaxed),
            paused: self.is_paused(),
            replay: self.server.replay_state(),
            version,
            unread: unread.to_vec(),
        };
        let (client, server) = (self.principal.client.key.clone(), self.config.name.clone());
        let handover = SessionHandover { client, server, state };
        issue_ticket(&self.services.home.sessions(), &self.id, handover)
    }
}
