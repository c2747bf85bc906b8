//! Reasons for refusing a connection, each with a human-readable text and a machine-readable code.

use crate::address::AddressScope;
use crate::hello::ClientHelloError;
use std::net::IpAddr;

/// Reason a connection was refused or closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionRefusal {
    /// The target matches a denied pattern.
    #[error("`{0}` is on the list of denied domains")]
    Denied(String),
    /// The target matches no pattern and no grant.
    #[error("`{0}` is not on the list of allowed domains")]
    NotAllowed(String),
    /// The target is an IP address that no allowed pattern covers.
    #[error("`{0}` is an IP address, which the list of allowed domains does not cover")]
    Address(String),
    /// The target is not a valid host.
    #[error("{0}")]
    InvalidHost(#[from] crate::host::HostError),
    /// The user denied the target or could not be asked.
    #[error("`{target}` was not allowed: {why}")]
    DeniedByUser {
        /// Target that the question was about.
        target: String,
        /// Reason shown to the agent.
        why: String,
    },
    /// The resolver failed or found no address.
    #[error("`{name}` cannot be resolved: {why}")]
    Unresolvable {
        /// Host name that was looked up.
        name: String,
        /// Error from the resolver.
        why: String,
    },
    /// The target is a non-public address or resolves to one.
    #[error("`{target}` resolves to {address}, which {scope}")]
    NotPublic {
        /// Requested host and port.
        target: String,
        /// Resolved address.
        address: IpAddr,
        /// Scope of the address.
        scope: AddressScope,
    },
    /// The target resolves to an address that matches a denied pattern.
    #[error("`{target}` resolves to {address}, which is on the list of denied domains")]
    DeniedAddress {
        /// Requested host and port.
        target: String,
        /// Resolved address.
        address: IpAddr,
    },
    /// No address of the target accepts a connection.
    #[error("`{target}` cannot be reached: {why}")]
    Unreachable {
        /// Requested host and port.
        target: String,
        /// Error from the last attempt.
        why: String,
    },
    /// The first bytes on port 443 are not an acceptable ClientHello.
    #[error("closed the connection to `{target}`: {why}")]
    InvalidClientHello {
        /// Host and port allowed by the rules.
        target: String,
        /// Problem with the first bytes.
        why: ClientHelloError,
    },
    /// The ClientHello names a different host.
    #[error("closed the connection to `{target}`: the TLS ClientHello names `{named}`")]
    NameMismatch {
        /// Host and port that the rules allow.
        target: String,
        /// Server name in the ClientHello.
        named: String,
    },
    /// The permission for this target was revoked.
    #[error("`{0}` is no longer allowed")]
    Revoked(String),
    /// The permission could not be recorded.
    #[error("the decision on `{target}` could not be recorded: {why}")]
    RecordFailed {
        /// Target of the decision.
        target: String,
        /// Error from the audit log.
        why: String,
    },
    /// The request is invalid or not supported by the proxy.
    #[error("{0}")]
    InvalidRequest(&'static str),
}

impl ConnectionRefusal {
    /// Returns a stable code for the proxy's response header and the audit log.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied(_) => "denied-domain",
            Self::NotAllowed(_) => "unknown-domain",
            Self::Address(_) => "address-literal",
            Self::InvalidHost(_) => "bad-host",
            Self::DeniedByUser { .. } => "said-no",
            Self::Unresolvable { .. } => "unresolvable",
            Self::NotPublic { .. } => "not-public",
            Self::DeniedAddress { .. } => "denied-address",
            Self::Unreachable { .. } => "unreachable",
            Self::InvalidClientHello { .. } => "not-tls",
            Self::NameMismatch { .. } => "other-name",
            Self::Revoked(_) => "withdrawn",
            Self::RecordFailed { .. } => "not-recorded",
            Self::InvalidRequest(_) => "bad-request",
        }
    }

    /// Returns `true` if the target was allowed but is unreachable.
    #[must_use]
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Self::Unresolvable { .. } | Self::Unreachable { .. })
    }
}
