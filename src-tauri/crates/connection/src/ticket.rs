//! Tickets with which another daemon process continues a session or connection of this process.
//!
//! - The state file is in the sessions directory, which only IronCurtain can write. The ticket for it can be used only
//!   once.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ironcurtain_paths::{atomic_file, bounded_read, random_name};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Name of the state file in the directory of a session or connection.
const STATE_FILE: &str = "moved.json";

/// Error for calls that are in flight during a handover.
pub const HANDOVER_ERROR: &str = "IronCurtain moved to its app while this call was in flight, so its outcome is unknown; check before \
    you call again";

/// Maximum size of the state file, in bytes. It holds one partial client message and the subscriptions.
const MAX_LEN: u64 = 256 << 20;

/// Reason a ticket cannot be redeemed.
#[derive(Debug, thiserror::Error)]
pub enum TicketError {
    /// The ticket is unknown, was redeemed before, or belongs to another client or server.
    #[error("this session has expired; restart the server in your client")]
    Unknown,
    /// The state file cannot be read.
    #[error("failed to read the session to continue: {0}")]
    Unreadable(#[from] io::Error),
}

/// Content of a state file.
#[derive(Debug, Serialize, Deserialize)]
struct StateFile<T> {
    secret: String,
    state: T,
}

/// Stores the state in the directory `id`. Returns a ticket that can be redeemed once.
///
/// # Errors
/// Returns the operating system's error if the file cannot be written.
pub fn issue_ticket(sessions: &Path, id: &str, state: impl Serialize) -> io::Result<String> {
    let secret = random_name()?;
    let ticket = format!("{id}.{secret}");
    let state_file = serde_json::to_string(&StateFile { secret, state })?;
    atomic_file::replace(&sessions.join(id).join(STATE_FILE), &state_file)?;
    Ok(ticket)
}

/// Redeems a single-use ticket and returns its state. `is_for` receives the directory name and the state, and returns
/// `true` if they belong to the caller.
///
/// # Errors
/// Returns [`TicketError`] if the ticket is invalid or the state cannot be read.
pub fn redeem<T: DeserializeOwned>(
    sessions: &Path,
    ticket: &str,
    is_for: impl FnOnce(&str, &T) -> bool,
) -> Result<T, TicketError> {
    let (id, secret) = ticket.split_once('.').ok_or(TicketError::Unknown)?;
    let is_name = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
    if !is_name(id) || !is_name(secret) {
        return Err(TicketError::Unknown);
    }
    let file = sessions.join(id).join(STATE_FILE);
    let opened = match bounded_read::open_nofollow(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(TicketError::Unknown),
        opened => opened?,
    };
    let state_file: StateFile<Box<RawValue>> =
        serde_json::from_reader(BufReader::new(opened.take(MAX_LEN))).map_err(io::Error::from)?;
    if state_file.secret != secret {
        return Err(TicketError::Unknown);
    }
    // If the state has a different type, the ticket belongs to another caller.
    let state: T = serde_json::from_str(state_file.state.get()).map_err(|_| TicketError::Unknown)?;
    if !is_for(id, &state) {
        return Err(TicketError::Unknown);
    }
    std::fs::remove_file(&file)?;
    Ok(state)
}

/// Serde format for bytes, as base64 text.
pub mod as_base64 {
    use super::{BASE64_STANDARD, Engine};
    use serde::{Deserialize, Deserializer, Serializer, de};

    /// Serializes bytes as base64 text.
    ///
    /// # Errors
    /// Returns the serializer's error.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    /// Deserializes bytes from base64 text.
    ///
    /// # Errors
    /// Fails if the text is not base64.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map_err(de::Error::custom)
    }
}
