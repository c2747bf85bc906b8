//! Approvals across machines: a remote machine's daemon asks the user through the daemon on the user's desktop.
//!
//! - The processes that connect the two daemons (`ironcurtain relay`, ssh and `ironcurtain attach`) only copy
//!   ciphertext. Both daemons hold the keys.
//! - The remote machine makes and enforces every grant. The desktop only shows questions and returns answers.

pub(crate) mod desktop;
mod pairing;
mod received_question;
pub(crate) mod relay;

use ironcurtain_audit::{AuditError, Entry, Event};
use ironcurtain_connection::{Peer, send};
use ironcurtain_export::{DeviceKeyError, KeyStore};
use ironcurtain_mcp::wire::{Line, Lines};
use ironcurtain_protocol::{AttachNote, RefusalCode};
use ironcurtain_remote::{
    ChannelError, ChannelKey, ChannelStream, MAX_MESSAGE_BYTES, PairedError, PairingError, PairingRefusal,
};
use ironcurtain_secrets::with_unlock_timeout;
use ironcurtain_services::Services;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::UnixStream;

/// Interval between pings.
const PING: Duration = Duration::from_secs(10);

/// Maximum time without a message from the peer.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(35);

/// Reason a connection to the other daemon ended.
#[derive(Debug, thiserror::Error)]
enum AttachError {
    #[error("the connection was closed")]
    Closed,
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    #[error("the connection timed out")]
    TimedOut,
    #[error("the peer sent an invalid message: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("the peer sent an unexpected message")]
    Unexpected,
    #[error(transparent)]
    Channel(#[from] ChannelError),
    #[error(transparent)]
    Key(#[from] DeviceKeyError),
    #[error(transparent)]
    Paired(#[from] PairedError),
    #[error(transparent)]
    Pairing(#[from] PairingError),
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// One side refused the other.
    #[error("{why}")]
    Refused { why: String, refusal: PairingRefusal },
}

impl AttachError {
    /// Returns a refusal that only the user can resolve.
    fn final_refusal(why: impl Into<String>) -> Self {
        Self::Refused { why: why.into(), refusal: PairingRefusal::Final }
    }

    /// Returns a temporary refusal.
    fn temporary_refusal(why: impl Into<String>) -> Self {
        Self::Refused { why: why.into(), refusal: PairingRefusal::Busy }
    }

    fn refusal(&self) -> PairingRefusal {
        match self {
            Self::Refused { refusal, .. } => *refusal,
            Self::Malformed(_) | Self::Unexpected | Self::Paired(_) | Self::Pairing(_) => {
                PairingRefusal::Final
            }
            Self::Closed
            | Self::Io(_)
            | Self::TimedOut
            | Self::Channel(_)
            | Self::Key(_)
            | Self::Audit(_) => PairingRefusal::Busy,
        }
    }

    fn to_note(&self) -> AttachNote {
        AttachNote::Ended { why: self.to_string(), is_final: self.refusal() == PairingRefusal::Final }
    }
}

/// Messages to and from the other daemon.
struct MessageStream {
    lines: Lines<ReadHalf<ChannelStream<UnixStream>>>,
    writer: WriteHalf<ChannelStream<UnixStream>>,
}

impl MessageStream {
    fn new(stream: ChannelStream<UnixStream>) -> Self {
        let (from, to) = split(stream);
        Self { lines: Lines::new(from, MAX_MESSAGE_BYTES), writer: to }
    }

    /// Returns the next message.
    async fn next<T: DeserializeOwned>(&mut self) -> Result<T, AttachError> {
        Ok(serde_json::from_slice(&self.next_line().await?)?)
    }

    /// Returns the next message as bytes.
    async fn next_line(&mut self) -> Result<Vec<u8>, AttachError> {
        match self.lines.next().await {
            Ok(Some(Line::Whole(line, _))) => Ok(line),
            Ok(Some(Line::TooLong { .. } | Line::NoMemory { .. })) => Err(AttachError::Unexpected),
            Ok(None) => Err(AttachError::Closed),
            // A killed peer does not close its TLS connection properly.
            Err(problem) if problem.kind() == io::ErrorKind::UnexpectedEof => Err(AttachError::Closed),
            Err(problem) => Err(problem.into()),
        }
    }

    async fn send(&mut self, message: &impl Serialize) -> Result<(), AttachError> {
        let sent = async {
            send(&mut self.writer, message).await?;
            self.writer.flush().await
        };
        Ok(tokio::time::timeout(SILENCE_TIMEOUT, sent).await.map_err(|_| AttachError::TimedOut)??)
    }
}

/// Returns this machine's channel key, derived from the device key.
async fn channel_key(services: &Services) -> Result<ChannelKey, AttachError> {
    let store = KeyStore::new(&services.home.state, services.home.has_keyring);
    let key =
        with_unlock_timeout(move || Ok(store.open_or_create())).await.map_err(DeviceKeyError::from)??;
    Ok(ChannelKey::from_seed(key.channel_seed().as_ref())?)
}

async fn record(services: &Services, text: String) -> Result<(), AuditError> {
    services.audit.record(Entry::new(Event::Daemon, text)).await.map(|_| ())
}

/// Takes the socket that the peer sent and welcomes the peer, or refuses the peer.
async fn accept_link(peer: &mut Peer) -> Option<UnixStream> {
    match peer.take_link() {
        Ok(link) => peer.welcome(None).await.is_ok().then_some(link),
        Err(problem) => {
            peer.refuse(RefusalCode::Malformed, problem.to_string()).await;
            None
        }
    }
}

/// Sends a notification to the attaching or relaying process. Drops the notification if the process does not read.
async fn send_note(to: &mut (impl AsyncWrite + Unpin), note: &AttachNote) {
    let _ = tokio::time::timeout(PING, send(to, note)).await;
}
