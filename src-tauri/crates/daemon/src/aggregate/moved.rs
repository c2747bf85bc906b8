//! Moving a connection to another trusted process: each of its sessions moves as one of a single server does, and what the
//! connection knows of its client goes along.
//!
//! - INVARIANT: nothing is handed to a session any more when it moves, so nothing is lost between the two.
//! - A server that was missing begins anew there.

use super::upstream::Phase;
use super::{Aggregate, CUT_OFF, FromUpstream, private_dir};
use crate::session::{Kept, TicketError, as_base64, take_kept};
use ironcurtain_mcp::client::ClientVersion;
use ironcurtain_mcp::wire::Fields;
use ironcurtain_protocol::ShimNote;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use tokio::sync::mpsc;

/// A connection on its way.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MovedAggregate {
    pub(super) id: String,
    client: String,
    profile: Option<String>,
    /// The parameters of the client's greeting.
    pub(super) greeting: Option<Box<RawValue>>,
    pub(super) level: Option<Box<RawValue>>,
    pub(super) tasks: HashMap<String, String>,
    /// The sessions, by their server.
    pub(super) upstreams: BTreeMap<String, MovedUpstream>,
    pub(super) version: ClientVersion,
    /// Bytes of the client, from the beginning of a message.
    #[serde(with = "as_base64")]
    pub(super) unread: Vec<u8>,
}

/// A session that moves with it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MovedUpstream {
    pub(super) ticket: String,
    /// The capabilities of the server, which is not greeted again.
    pub(super) capabilities: Fields,
}

impl MovedAggregate {
    /// One that begins here, by this name.
    pub(super) fn none(id: String) -> Self {
        Self {
            id,
            client: String::new(),
            profile: None,
            greeting: None,
            level: None,
            tasks: HashMap::new(),
            upstreams: BTreeMap::new(),
            version: ClientVersion::default(),
            unread: Vec::new(),
        }
    }

    /// Takes the connection of a ticket, which opens nothing from then on.
    pub(crate) fn take(
        sessions: &Path,
        ticket: &str,
        client: &str,
        profile: Option<&str>,
    ) -> Result<Self, TicketError> {
        let moved = take_kept(sessions, ticket, |id, moved: &Self| {
            (moved.id.as_str(), moved.client.as_str(), moved.profile.as_deref()) == (id, client, profile)
        })?;
        // An empty folder that stays is nobody's.
        let _ = std::fs::remove_dir(sessions.join(&moved.id));
        Ok(moved)
    }
}

impl Aggregate {
    /// Moves the connection to the trusted process that takes the place of this one; `false` where it cannot be moved.
    pub(super) async fn moves(
        &mut self,
        (unread, version): (&[u8], &(dyn Fn() -> ClientVersion + Send + Sync)),
        events: &mut mpsc::UnboundedReceiver<FromUpstream>,
    ) -> bool {
        self.cut_off(CUT_OFF);
        for upstream in self.upstreams.values_mut() {
            if upstream.phase == Phase::Up { upstream.hang_up() } else { upstream.end() }
        }
        if tokio::time::timeout(super::serve::END_BOUND, self.until_ended(events)).await.is_err() {
            return false;
        }
        self.to_client.is_written().await;
        match self.keep(unread, version()) {
            // A shim that is gone is seen to be gone.
            Ok(ticket) => self.notes.send(ShimNote::Moved { ticket }.into()).is_ok(),
            Err(problem) => {
                tracing::error!(%problem, "a connection could not be moved, and is ended");
                false
            }
        }
    }

    fn keep(&mut self, unread: &[u8], version: ClientVersion) -> io::Result<String> {
        let sessions = self.state.services.home.sessions();
        private_dir(&sessions.join(&self.id)).map_err(io::Error::other)?;
        let upstreams = std::mem::take(&mut self.tickets).into_iter().filter_map(|(server, ticket)| {
            let capabilities = self.upstreams.get(&server)?.capabilities.clone();
            Some((server, MovedUpstream { ticket, capabilities }))
        });
        let moved = MovedAggregate {
            upstreams: upstreams.collect(),
            id: self.id.clone(),
            client: self.client.key.clone(),
            profile: self.profile.clone(),
            greeting: self.greeting.as_ref().map(|greeting| greeting.params.clone()),
            level: self.level.clone(),
            tasks: self.tables.tasks().clone(),
            version,
            unread: unread.to_vec(),
        };
        Kept::keep(&sessions, &self.id, moved)
    }
}
