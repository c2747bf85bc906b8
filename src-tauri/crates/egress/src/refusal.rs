//! Reasons for refusing a connection, as text for people and as a code for programs.

use crate::address::AddressScope;
use crate::hello::ClientHelloError;
use std::net::IpAddr;

/// Reason why a connection is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionRefusal {
    /// A denied pattern matches.
    #[error("`{0}` is on the list of denied domains")]
    Denied(String),
    /// No pattern or grant matches.
    #[error("`{0}` is not on the list of allowed domains")]
    NotAllowed(String),
    /// The target is an address literal, which no pattern for names covers.
    #[error("`{0}` is an IP address, which the list of allowed domains does not cover")]
    Address(String),
    /// The target is not a valid host.
    #[error("{0}")]
    Host(#[from] crate::host::HostError),
    /// The user denied it or could not be asked; the reason is for the agent.
    #[error("`{target}` was not allowed: {why}")]
    SaidNo {
        /// Target of the question.
        target: String,
        /// Reason.
        why: String,
    },
    /// The name could not be resolved.
    #[error("`{name}` cannot be resolved: {why}")]
    Unresolvable {
        /// Host name.
        name: String,
        /// Reason from the resolver.
        why: String,
    },
    /// The name resolves to an address that is not public.
    #[error("`{target}` resolves to {address}, which {place}")]
    NotPublic {
        /// Requested target.
        target: String,
        /// Address that it resolves to.
        address: IpAddr,
        /// Scope of that address.
        place: AddressScope,
    },
    /// The name resolves to a denied address.
    #[error("`{target}` resolves to {address}, which is on the list of denied domains")]
    DeniedAddress {
        /// Requested target.
        target: String,
        /// Address that it resolves to.
        address: IpAddr,
    },
    /// The target did not accept a connection.
    #[error("`{target}` cannot be reached: {why}")]
    Unreachable {
        /// Requested target.
        target: String,
        /// Reason from the kernel.
        why: String,
    },
    /// The first bytes on port 443 are not an acceptable ClientHello.
    #[error("the connection to `{target}` was cut: {why}")]
    Hello {
        /// Allowed target.
        target: String,
        /// Defect of the received bytes.
        why: ClientHelloError,
    },
    /// The ClientHello names a host other than the allowed one.
    #[error("the connection to `{target}` was cut: the TLS ClientHello names `{named}`")]
    OtherName {
        /// Allowed target.
        target: String,
        /// Host that the ClientHello names.
        named: String,
    },
    /// The permission was revoked.
    #[error("`{0}` is no longer allowed")]
    Withdrawn(String),
    /// The decision could not be recorded.
    #[error("the decision on `{target}` could not be recorded: {why}")]
    NotRecorded {
        /// Target of the decision.
        target: String,
        /// Reason.
        why: String,
    },
    /// The proxy does not support this request.
    #[error("{0}")]
    Request(&'static str),
}

impl ConnectionRefusal {
    /// Returns a stable code for the reason header and the audit log.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied(_) => "denied-domain",
            Self::NotAllowed(_) => "unknown-domain",
            Self::Address(_) => "address-literal",
            Self::Host(_) => "bad-host",
            Self::SaidNo { .. } => "said-no",
            Self::Unresolvable { .. } => "unresolvable",
            Self::NotPublic { .. } => "not-public",
            Self::DeniedAddress { .. } => "denied-address",
            Self::Unreachable { .. } => "unreachable",
            Self::Hello { .. } => "not-tls",
            Self::OtherName { .. } => "other-name",
            Self::Withdrawn(_) => "withdrawn",
            Self::NotRecorded { .. } => "not-recorded",
            Self::Request(_) => "bad-request",
        }
    }

    /// Returns whether the connection failed technically instead of being denied.
    #[must_use]
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Self::Unresolvable { .. } | Self::Unreachable { .. })
    }
}
