//! Hands a session over to another trusted process, with everything that process needs except the client's streams, which the
//! shim passes on.
//!
//! - INVARIANT: a session is handed over with no unanswered client request, and with every byte that was read but not
//!   processed.
//! - The state file is in the session directory, which only we can write. Its ticket works once.

use super::Session;
use crate::server::ReplayState;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_mcp::client::ClientVersion;
use ironcurtain_mcp::wire::error_line;
use ironcurtain_paths::atomic_file;
use ironcurtain_paths::bounded_read;
use ironcurtain_paths::random_name;
use ironcurtain_protocol::ShimNote;
use rmcp::model::ErrorCode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Name of the state file in the session directory.
const NAME: &str = "moved.json";

/// Time limit for in-flight calls, because the app is waiting.
const ANSWERS_BOUND: Duration = Duration::from_secs(2);

/// Error for calls that take longer.
pub(crate) const CUT_OFF: &str = "IronCurtain moved to its app while this call was in flight, so its outcome is unknown; check before \
    you call again";

/// Maximum size of the state file: one partial client message, and the subscriptions.
const LONGEST: u64 = 256 << 20;

/// State of a session that is handed over to another trusted process.
#[derive(Debug, Serialize, Deserialize)]
pub struct SessionHandover {
    client: String,
    server: String,
    pub(super) state: ClientState,
}

/// Per-client state of a session.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ClientState {
    pub(super) id: String,
    pub(super) started_ms: u64,
    pub(super) says_it_is: Option<String>,
    /// Server methods that the client accepts.
    pub(super) takes: HashSet<String>,
    /// Set if the client declared roots.
    pub(super) has_roots: bool,
    pub(super) greeted: bool,
    pub(super) has_batches: bool,
    pub(super) paused: bool,
    pub(super) told: ReplayState,
    #[serde(rename = "era")]
    pub(super) version: ClientVersion,
    /// Bytes of the client to process first, starting at a message boundary.
    #[serde(with = "as_base64")]
    pub(super) unread: Vec<u8>,
}

impl ClientState {
    /// Creates the state of a new session.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            id: random_name()?,
            started_ms: now_ms(),
            says_it_is: None,
            takes: HashSet::new(),
            has_roots: false,
            greeted: false,
            has_batches: false,
            paused: false,
            told: ReplayState::default(),
            version: ClientVersion::Open,
            unread: Vec::new(),
        })
    }
}

/// Reason why a session cannot be continued.
#[derive(Debug, thiserror::Error)]
pub enum TicketError {
    /// The ticket is unknown, or belongs to another client or server.
    #[error("this session has expired; restart the server in your client")]
    Unknown,
    /// The state file cannot be read.
    #[error("failed to read the session to continue: {0}")]
    Unreadable(#[from] io::Error),
}

impl SessionHandover {
    /// Redeems a ticket, which is invalid from then on.
    ///
    /// # Errors
    /// Returns [`TicketError`] if the ticket does not fit or the state cannot be read.
    pub fn take(sessions: &Path, ticket: &str, client: &str, server: &str) -> Result<Self, TicketError> {
        take_kept(sessions, ticket, |id, moved: &Self| {
            (moved.state.id.as_str(), moved.client.as_str(), moved.server.as_str()) == (id, client, server)
        })
    }
}

/// State stored for another trusted process, in a folder below the sessions directory.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Kept<T> {
    secret: String,
    state: T,
}

impl<T: Serialize> Kept<T> {
    /// Stores the state in folder `id`, and returns the ticket that opens it once.
    pub(crate) fn keep(sessions: &Path, id: &str, state: T) -> io::Result<String> {
        let secret = random_name()?;
        let ticket = format!("{id}.{secret}");
        let kept = serde_json::to_string(&Self { secret, state })?;
        atomic_file::replace(&sessions.join(id).join(NAME), &kept)?;
        Ok(ticket)
    }
}

/// Redeems a ticket, which is invalid from then on. `is_for` decides from the folder name and the state whether it belongs to
/// the caller.
pub(crate) fn take_kept<T: DeserializeOwned>(
    sessions: &Path,
    ticket: &str,
    is_for: impl FnOnce(&str, &T) -> bool,
) -> Result<T, TicketError> {
    let (id, secret) = ticket.split_once('.').ok_or(TicketError::Unknown)?;
    let is_name = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
    if !is_name(id) || !is_name(secret) {
        return Err(TicketError::Unknown);
    }
    let file = sessions.join(id).join(NAME);
    let opened = match bounded_read::open_unlinked(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(TicketError::Unknown),
        opened => opened?,
    };
    let kept: Kept<Box<RawValue>> =
        serde_json::from_reader(BufReader::new(opened.take(LONGEST))).map_err(io::Error::from)?;
    if kept.secret != secret {
        return Err(TicketError::Unknown);
    }
    // State of another kind belongs to another caller.
    let state: T = serde_json::from_str(kept.state.get()).map_err(|_| TicketError::Unknown)?;
    if !is_for(id, &state) {
        return Err(TicketError::Unknown);
    }
    std::fs::remove_file(&file)?;
    Ok(state)
}

impl Session {
    /// Hands the session over to the trusted process that replaces this one, and notifies the shim. Returns `false` if that
    /// fails.
    pub(super) async fn hand_over(
        &self,
        unread: &[u8],
        version: &(dyn Fn() -> ClientVersion + Send + Sync),
    ) -> bool {
        self.flush_responses(ANSWERS_BOUND).await;
        for (id, call) in &self.in_flight.take_all() {
            self.abandon(id, call, "the session was moved before the call was answered").await;
            self.reply(error_line(Some(id), ErrorCode::INTERNAL_ERROR.0, CUT_OFF));
        }
        self.flush_responses(ANSWERS_BOUND).await;
        match self.write_handover(unread, version()) {
            // Sending fails only if the shim has disconnected.
            Ok(ticket) => self.notes.send(ShimNote::Moved { ticket }.into()).is_ok(),
            Err(problem) => {
                tracing::error!(%problem, "failed to hand over a session, which is closed now");
                false
            }
        }
    }

    /// Stores what another trusted process needs to continue, and returns the ticket.
    fn write_handover(&self, unread: &[u8], version: ClientVersion) -> io::Result<String> {
        let state = ClientState {
            id: self.id.clone(),
            started_ms: self.started_ms,
            says_it_is: self.principal.says_it_is.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            takes: self.client_takes.borrow().clone(),
            has_roots: self.client_roots.is_declared(),
            greeted: self.is_initialized.load(Ordering::Relaxed),
            has_batches: self.has_batches.load(Ordering::Relaxed),
            paused: self.is_paused(),
            told: self.server.replay_state(),
            version,
            unread: unread.to_vec(),
        };
        let (client, server) = (self.principal.client.key.clone(), self.config.name.clone());
        let handover = SessionHandover { client, server, state };
        Kept::keep(&self.services.home.sessions(), &self.id, handover)
    }
}

/// Serializes bytes as base64.
pub(crate) mod as_base64 {
    use super::{BASE64_STANDARD, Engine};
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map_err(de::Error::custom)
    }
}
