//! A server that runs elsewhere and is spoken to by streamable HTTP, as if it were a process here: the same lines in both
//! directions, and lines of our own on its standard error.
//!
//! - Messages pass as they came, without the secrets that the server was sent; nothing is added to them but headers of the transport and
//!   of its entry.
//! - INVARIANT: what may have reached the server is not sent again. A call that breaks fails.
//! - Its one host is connected to, under the rules and on the record of every server's network; no redirect is followed.
//! - A server that has forgotten the session ends, as a process does: the next one is greeted before it is called.

mod answer;
mod conversation;
mod events;
mod exchange;
mod fault;
mod headers;
mod http;

use crate::wire::{Allowance, Input, Output, pair};
use exchange::{Ends, Exchange, Notes};
use http::Http;
use ironcurtain_egress::{Dialer, HostPort};
use std::borrow::Cow;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::task::JoinError;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::task_tracker::TaskTrackerToken;
use url::Url;

/// The number of times that a message is in memory: as it came, and as the line that it becomes.
const COPIES: u32 = 2;

/// Replaces the secrets that the server was sent in what it answers.
pub type Redact = Box<dyn for<'a> Fn(&'a [u8]) -> Cow<'a, [u8]> + Send + Sync>;

/// Says in words that the server refused the request with this status, 401 or 403, and what to do.
pub type RefusedLogin = Box<dyn Fn(u16) -> String + Send + Sync>;

/// The address of a remote server, and the headers of every request to it.
#[derive(Clone, Copy)]
pub struct RemoteEndpoint<'a> {
    /// The address.
    pub url: &'a Url,
    /// The host and port that it leads to.
    pub target: &'a HostPort,
    /// The headers by name. Their values are secret.
    pub headers: &'a [(&'a str, &'a str)],
}

/// Everything else that a connection to a remote server needs.
pub struct RemoteOptions<'a> {
    /// Opens its connections.
    pub dialer: Dialer,
    /// Hides secrets in what the server says.
    pub redact: Redact,
    /// Explains a refused login.
    pub refused: RefusedLogin,
    /// The memory for what it says.
    pub memory: &'a Allowance,
    /// Until it is dropped, the trusted process does not end.
    pub waited_for: Option<TaskTrackerToken>,
}

/// A remote server, as if it were a process.
#[derive(Debug)]
pub struct RemoteConnection {
    /// Its standard input.
    pub stdin: Output,
    /// Its standard output.
    pub stdout: Input,
    /// Lines of ours about it.
    pub stderr: Input,
    /// Keeps the connection.
    pub hold: RemoteHold,
}

/// Why there is no connection to a remote server.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// A header cannot be sent.
    #[error("`headers.{0}` has a character that no header has")]
    Header(String),
    /// Nothing tells which certificates are to be trusted.
    #[error(
        "no certificates are trusted on this machine ({0}); install them, as the package `ca-certificates` does"
    )]
    NoRoots(String),
    /// Its streams cannot be made.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The thread that reads the certificates is gone.
    #[error(transparent)]
    Thread(#[from] JoinError),
}

/// Keeps the conversation with a remote server. Dropped, the server is told that the session is over.
#[derive(Debug)]
pub struct RemoteHold {
    _end: DropGuard,
    reason: Arc<OnceLock<String>>,
    fault: Arc<Mutex<String>>,
}

impl RemoteHold {
    /// Why the conversation is over, if it ended by itself.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// The words of the last request that had no answer, which are ours and not the server's.
    #[must_use]
    pub fn fault(&self) -> String {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Begins the conversation; nothing is connected to before there is something to say.
///
/// # Errors
/// [`RemoteError`].
pub async fn connect(
    endpoint: RemoteEndpoint<'_>,
    options: RemoteOptions<'_>,
) -> Result<RemoteConnection, RemoteError> {
    let RemoteOptions { dialer, redact, refused, memory, waited_for } = options;
    let http = Http::new(endpoint, dialer, refused).await?;
    let (from_us, stdin) = pair()?;
    let (stdout, to_us) = pair()?;
    let (stderr, log) = pair()?;
    let (end, reason, fault) = (CancellationToken::new(), Arc::default(), Arc::default());
    let ends = Ends { to_us, log, redact };
    let exchange = Exchange::new(
        http,
        ends,
        memory.another(COPIES),
        Notes { reason: Arc::clone(&reason), fault: Arc::clone(&fault) },
    );
    let conversation = conversation::run(exchange, from_us, memory.another(COPIES), end.clone());
    tokio::spawn(async move {
        conversation.await;
        drop(waited_for);
    });
    let hold = RemoteHold { _end: end.drop_guard(), reason, fault };
    Ok(RemoteConnection { stdin, stdout, stderr, hold })
}
