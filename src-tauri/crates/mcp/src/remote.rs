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

mod events;
mod exchange;
mod fault;
mod headers;
mod http;
pub mod login;
mod required_login;
mod response_head;
mod sending;
mod session;
mod session_renewal;

use crate::wire::{Allowance, Input, Output, pair};
use exchange::{ConnectionStatus, Exchange, Streams};
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
    pub shutdown_token: Option<TaskTrackerToken>,
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
    pub guard: RemoteGuard,
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
pub struct RemoteGuard {
    _end: DropGuard,
    reason: Arc<OnceLock<String>>,
    fault: Arc<Mutex<String>>,
    needs_login: Arc<AtomicBool>,
}

impl RemoteGuard {
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
    let RemoteOptions { dialer, redact, refused, login, needs_login, memory, shutdown_token } = options;
    let http = Http::new(endpoint, dialer, (refused, login)).await?;
    let (input, stdin) = pair()?;
    let (stdout, output) = pair()?;
    let (stderr, log) = pair()?;
    let (end, reason, fault) = (CancellationToken::new(), Arc::default(), Arc::default());
    let needs_login_flag = Arc::<AtomicBool>::default();
    let streams = Streams { output, log, redact };
    let exchange = Exchange::new(
        http,
        streams,
        memory.with_copies(COPIES),
        ConnectionStatus {
            reason: Arc::clone(&reason),
            fault: Arc::clone(&fault),
            login: RequiredLogin::new(Arc::clone(&needs_login_flag), needs_login),
        },
    );
    let sender = sending::run(exchange, input, memory.with_copies(COPIES), end.clone());
    tokio::spawn(async move {
        sender.await;
        drop(shutdown_token);
    });
    let guard = RemoteGuard { _end: end.drop_guard(), reason, fault, needs_login: needs_login_flag };
    Ok(RemoteConnection { stdin, stdout, stderr, guard })
}
