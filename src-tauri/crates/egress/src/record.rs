//! Interface for recording the decision on every connection.

use crate::BoxFuture;
use crate::rules::PermittedBy;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;

/// Records decisions. A connection whose permission cannot be recorded is refused.
pub trait Record: Send + Sync + 'static {
    /// Records a decision before it takes effect.
    ///
    /// # Errors
    /// Returns a [`RecordError`] if the event cannot be written, in which case an allowed connection is refused.
    fn record(&self, event: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>>;
}

/// Failure to record a decision.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RecordError(Box<dyn Error + Send + Sync>);

impl RecordError {
    /// Wraps an error from an implementation of [`Record`].
    pub fn new(problem: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(problem.into())
    }
}

/// Decision on one connection or plain HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionEvent {
    /// Name of the server that requested the connection.
    pub server: String,
    /// Protocol of the server's request.
    pub protocol: Protocol,
    /// Host in canonical form, or as sent if it is invalid.
    pub host: String,
    /// Port, or 0 if the request was invalid.
    pub port: u16,
    /// Decision and its reason.
    pub verdict: ConnectionVerdict,
    /// Addresses to which the name resolved, including the one connected to. Empty if the name was not resolved.
    pub addresses: Vec<IpAddr>,
}

/// Decision on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionVerdict {
    /// The connection is allowed by this rule, grant or answer.
    Allowed(PermittedBy),
    /// The rules or the user refused the connection.
    Refused {
        /// Stable machine-readable code.
        code: &'static str,
        /// Human-readable reason.
        reason: String,
    },
    /// The target is allowed, but the connection failed.
    Failed {
        /// Stable machine-readable code.
        code: &'static str,
        /// Human-readable reason.
        reason: String,
    },
}

/// Protocol through which a connection is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP CONNECT.
    Connect,
    /// Plain HTTP request with an absolute URL.
    Http,
    /// SOCKS version 5.
    Socks5,
    /// Connection opened by a [`Dialer`](crate::Dialer), without a proxy protocol.
    Direct,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect",
            Self::Http => "http",
            Self::Socks5 => "socks5",
            Self::Direct => "direct",
        })
    }
}
