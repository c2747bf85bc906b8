//! Hands a connection over to another daemon process, with all its sessions and the state that it keeps for the
//! client.
//!
//! - INVARIANT: no message is routed to a session after its handover starts, so no message is lost.
//! - Only sessions of running servers are handed over. The other process starts all other servers from scratch.

use super::upstream::Phase;
use super::{Aggregate, FromUpstream};
use crate::ticket::{HANDOVER_ERROR, TicketError, as_base64, issue_ticket, redeem};
use ironcurtain_config::home::private_dir;
use ironcurtain_mcp::client::ClientVersion;
use ironcurtain_mcp::wire::Fields;
use ironcurtain_protocol::ShimNote;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use tokio::sync::mpsc;

/// State of a connection that is being handed over to another daemon process.
#[derive(Debug, Serialize, Deserialize)]
pub struct AggregateHandover {
    pub(super) id: String,
    client: String,
    profile: Option<String>,
    /// Parameters of the client's `initialize`, or `None` if the client has not sent it.
    #[serde(rename = "greeting")]
    pub(super) initialize_params: Option<Box<RawValue>>,
    pub(super) level: Option<Box<RawValue>>,
    pub(super) tasks: HashMap<String, String>,
    /// Handed-over sessions by server name.
    pub(super) upstreams: BTreeMap<String, UpstreamHandover>,
    pub(super) version: ClientVersion,
    /// Bytes from the client that must be processed first. They start at a message boundary.
    #[serde(with = "as_base64")]
    pub(super) unread: Vec<u8>,
}

/// Session with one server that is being handed over with its connection.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct UpstreamHandover {
    pub(super) ticket: String,
    /// The server's capabilities, stored because the handshake is not repeated.
    pub(super) capabilities: Fields,
}

impl AggregateHandover {
    /// Returns the state of a new connection.
    pub(super) fn new(id: String) -> Self {
        Self {
            id,
            client: String::new(),
            profile: None,
            initialize_params: None,
            level: None,
            tasks: HashMap::new(),
            upstreams: BTreeMap::new(),
            version: ClientVersion::default(),
            unread: Vec::new(),
        }
    }

    /// Redeems a single-use ticket and returns the state of its connection.
    ///
    /// # Errors
    /// Returns [`TicketError`] if the ticket is invalid for this client and profile, or if the state cannot be read.
    pub fn redeem(
        sessions: &Path,
        ticket: &str,
        client: &str,
        profile: Option<&str>,
    ) -> Result<Self, TicketError> {
        let handover = redeem(sessions, ticket, |id, handover: &Self| {
            (handover.id.as_str(), handover.client.as_str(), handover.profile.as_deref())
                == (id, client, profile)
        })?;
        // Ignore the error: an empty directory that remains is harmless.
        let _ = std::fs::remove_dir(sessions.join(&handover.id));
        Ok(handover)
    }
}

impl Aggregate {
    /// Hands the connection over to the process that replaces this one. Returns `false` on failure; the caller must
    /// then close the connection.
    pub(super) async fn hand_over(
        &mut self,
        (unread, version): (&[u8], &(dyn Fn() -> ClientVersion + Send + Sync)),
        events: &mut mpsc::UnboundedReceiver<FromUpstream>,
    ) -> bool {
        self.fail_all(HANDOVER_ERROR);
        for upstream in self.upstreams.values_mut() {
            if upstream.phase == Phase::Running { upstream.close_input() } else { upstream.end() }
        }
        if tokio::time::timeout(super::serve::CLOSE_TIMEOUT, self.wait_for_sessions(events)).await.is_err() {
            return false;
        }
        self.to_client.drained().await;
        match self.store_handover(unread, version()) {
            // Sending fails only if the shim has disconnected.
            Ok(ticket) => self.notes.send(ShimNote::Moved { ticket }.into()).is_ok(),
            Err(problem) => {
                tracing::error!(%problem, "failed to hand over a connection; closing it");
                false
            }
        }
    }

    fn store_handover(&mut self, unread: &[u8], version: ClientVersion) -> io::Result<String> {
        private_dir(&self.host.sessions.join(&self.id)).map_err(io::Error::other)?;
        let upstreams = std::mem::take(&mut self.tickets).into_iter().filter_map(|(server, ticket)| {
            let capabilities = self.upstreams.get(&server)?.capabilities.clone();
            Some((server, UpstreamHandover { ticket, capabilities }))
        });
        let handover = AggregateHandover {
            upstreams: upstreams.collect(),
            id: self.id.clone(),
            client: self.client.key.clone(),
            profile: self.profile.clone(),
            initialize_params: self.initialize_request.as_ref().map(|request| request.params.clone()),
            level: self.level.clone(),
            tasks: self.tables.tasks().clone(),
            version,
            unread: unread.to_vec(),
        };
        issue_ticket(&self.host.sessions, &self.id, handover)
    }
}
