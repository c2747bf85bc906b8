//! The record of every connection that was decided on.

use crate::BoxFuture;
use crate::rules::PermittedBy;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;

/// Takes what was decided. A decision that could not be taken down does not allow.
pub trait Record: Send + Sync + 'static {
    /// Takes it down, before it has effect.
    ///
    /// # Errors
    /// [`RecordError`]: nothing goes out.
    fn record(&self, event: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>>;
}

/// Why a decision could not be taken down: the error of whoever keeps the record.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RecordError(Box<dyn Error + Send + Sync>);

impl RecordError {
    /// An error of the record's keeper.
    pub fn new(problem: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(problem.into())
    }
}

/// One decision on one connection or plain request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionEvent {
    /// The server that called.
    pub server: String,
    /// The protocol that it asked by.
    pub protocol: Protocol,
    /// The host, in canonical spelling where it has one, as it was written where not.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The decision.
    pub verdict: ConnectionVerdict,
    /// The addresses that the name led to, as far as it was resolved. The one that is dialled is among them.
    pub addresses: Vec<IpAddr>,
}

/// The decision on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionVerdict {
    /// It may go out.
    Allowed(PermittedBy),
    /// It may not, and why.
    Refused {
        /// A short name that does not change.
        code: &'static str,
        /// The same in words.
        reason: String,
    },
    /// It may, and could not.
    Failed {
        /// A short name that does not change.
        code: &'static str,
        /// The same in words.
        reason: String,
    },
}

/// The protocols by which a program asks for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP's CONNECT.
    Connect,
    /// A plain HTTP request with a whole URL.
    Http,
    /// SOCKS version 5.
    Socks5,
    /// None: a connection of our own.
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
