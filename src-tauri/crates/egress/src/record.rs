//! Record of every decision on a connection.

use crate::BoxFuture;
use crate::rules::PermittedBy;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;

/// Records decisions. A decision that cannot be recorded does not allow anything.
pub trait Record: Send + Sync + 'static {
    /// Records a decision before it takes effect.
    ///
    /// # Errors
    /// [`RecordError`]; the connection is then not made.
    fn record(&self, event: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>>;
}

/// Error from the record's implementation.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RecordError(Box<dyn Error + Send + Sync>);

impl RecordError {
    /// Wraps an error from the record's implementation.
    pub fn new(problem: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(problem.into())
    }
}

/// One decision on one connection or plain HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionEvent {
    /// Name of the server that asked.
    pub server: String,
    /// Protocol of the request.
    pub protocol: Protocol,
    /// Host, in canonical spelling if it has one, else verbatim.
    pub host: String,
    /// Port number.
    pub port: u16,
    /// Decision.
    pub verdict: ConnectionVerdict,
    /// Resolved addresses, including the dialled one; empty if the name was not resolved.
    pub addresses: Vec<IpAddr>,
}

/// Decision on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionVerdict {
    /// Allowed, on these grounds.
    Allowed(PermittedBy),
    /// Refused by the rules or the user.
    Refused {
        /// Stable code.
        code: &'static str,
        /// Reason as text.
        reason: String,
    },
    /// Allowed, but the connection could not be made.
    Failed {
        /// Stable code.
        code: &'static str,
        /// Reason as text.
        reason: String,
    },
}

/// Protocol by which a program asks for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP CONNECT.
    Connect,
    /// Plain HTTP request with an absolute URL.
    Http,
    /// SOCKS version 5.
    Socks5,
    /// Our own connection, without a proxy protocol.
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
