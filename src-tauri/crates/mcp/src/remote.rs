//! Remote server over streamable HTTP, with the same interface as a local process: the same lines in both directions,
//! and our own log lines in place of standard error.
//!
//! - Messages are forwarded unchanged, except that the server's secrets are redacted. Only transport headers and
//!   configured headers are added.
//! - INVARIANT: a message that the server may have carried out is never sent again, so an interrupted call fails. A
//!   message that the server rejected because it is busy or has forgotten the session is sent again.
//! - Connects only to the host in the URL, under the same network rules and audit records as every server. Redirects
//!   are not followed.
//! - When the server forgets a session with state, the connection closes as if a process had exited. The next
//!   connection is initialized again.

mod answer;
mod conversation;
mod events;
mod exchange;
mod fault;
mod headers;
mod http;
pub mod login;
mod renewal;
mod required_login;
mod session;

use crate::wire::{Allowance, Input, Output, pair};
use exchange::{Ends, Exchange, Notes};
use http::Http;
use ironcurtain_egress::{Dialer, HostPort};
use ironcurtain_tls::TlsError;
use login::ServerLogin;
use required_login::RequiredLogin;
use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::task_tracker::TaskTrackerToken;
use url::Url;

/// Number of copies of a message in memory: the body and the line made from it.
const COPIES: u32 = 2;

/// Callback that redacts the secrets sent to the server from its responses.
pub type Redact = Box<dyn for<'a> Fn(&'a [u8]) -> Cow<'a, [u8]> + Send + Sync>;

/// Callback that returns the message for a refused login (status 401 or 403), including advice for the user. The
/// second argument is the scope that the server requires, if it names one.
pub type RefusedLogin = Box<dyn Fn(u16, Option<&str>) -> String + Send + Sync>;

/// URL of a remote server and its configured headers.
#[derive(Clone, Copy)]
pub struct RemoteEndpoint<'a> {
    /// URL of the server's MCP endpoint.
    pub url: &'a Url,
    /// Host and port of the URL.
    pub target: &'a HostPort,
    /// Header names and values. The values are secret.
    pub headers: &'a [(&'a str, &'a str)],
}

/// Resources and callbacks of a remote connection.
pub struct RemoteOptions<'a> {
    /// Opens network connections, subject to the network rules.
    pub dialer: Dialer,
    /// Redacts secrets in the server's messages.
    pub redact: Redact,
    /// Returns the message for a refused login.
    pub refused: RefusedLogin,
    /// Login whose token is sent, or `None` if the entry has its own credentials.
    pub login: Option<ServerLogin>,
    /// Called with `true` the first time that the server refuses a request for lack of a login, and the first time
    /// after each new login. Called with `false` for the first accepted request, and for the first accepted request
    /// after each reported refusal.
    pub needs_login: Box<dyn Fn(bool) + Send + Sync>,
    /// Memory for the server's messages.
    pub memory: &'a Allowance,
    /// Token that delays the shutdown of the trusted process until the connection has closed.
    pub waited_for: Option<TaskTrackerToken>,
}

/// Remote server with the interface of a process.
#[derive(Debug)]
pub struct RemoteConnection {
    /// Standard input: lines to the server.
    pub stdin: Output,
    /// Standard output: lines from the server.
    pub stdout: Input,
    /// Standard error: our own log lines.
    pub stderr: Input,
    /// Keeps the connection open until it is dropped.
    pub hold: RemoteHold,
}

/// Reason a connection to a remote server cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// A header value is invalid.
    #[error("`headers.{0}` has a character that is not allowed in a header")]
    Header(String),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The streams could not be created.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Keeps a remote connection open. Dropping it closes the session at the server.
#[derive(Debug)]
pub struct RemoteHold {
    _end: DropGuard,
    reason: Arc<OnceLock<String>>,
    fault: Arc<Mutex<String>>,
    needs_login: Arc<AtomicBool>,
}

impl RemoteHold {
    /// Returns `true` if the server refuses requests because the user must log in.
    #[must_use]
    pub fn needs_login(&self) -> bool {
        self.needs_login.load(Ordering::Relaxed)
    }

    /// Returns the reason the connection closed, or `None` if it is open or IronCurtain closed it.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Returns the error message of the last request that failed, or an empty string.
    #[must_use]
    pub fn fault(&self) -> String {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Sets up the connection. Nothing is sent before the first message.
///
/// # Errors
/// Returns [`RemoteError`] if the connection cannot be set up.
pub async fn connect(
    endpoint: RemoteEndpoint<'_>,
    options: RemoteOptions<'_>,
) -> Result<RemoteConnection, RemoteError> {
    let RemoteOptions { dialer, redact, refused, login, needs_login, memory, waited_for } = options;
    let http = Http::new(endpoint, dialer, (refused, login)).await?;
    let (from_us, stdin) = pair()?;
    let (stdout, to_us) = pair()?;
    let (stderr, log) = pair()?;
    let (end, reason, fault) = (CancellationToken::new(), Arc::default(), Arc::default());
    let refused_login = Arc::<AtomicBool>::default();
    let ends = Ends { to_us, log, redact };
    let exchange = Exchange::new(
        http,
        ends,
        memory.another(COPIES),
        Notes {
            reason: Arc::clone(&reason),
            fault: Arc::clone(&fault),
            login: RequiredLogin::new(Arc::clone(&refused_login), needs_login),
        },
    );
    let conversation = conversation::run(exchange, from_us, memory.another(COPIES), end.clone());
    tokio::spawn(async move {
        conversation.await;
        drop(waited_for);
    });
    let hold = RemoteHold { _end: end.drop_guard(), reason, fault, needs_login: refused_login };
    Ok(RemoteConnection { stdin, stdout, stderr, hold })
}
