//! Why a connection does not happen, in words for people and in a code for programs.

use crate::address::AddressScope;
use crate::hello::ClientHelloError;
use std::net::IpAddr;

/// The reasons why a connection does not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionRefusal {
    /// A denied entry covers it.
    #[error("`{0}` is on the list of denied domains")]
    Denied(String),
    /// Nothing allows it.
    #[error("`{0}` is not on the list of allowed domains")]
    NotAllowed(String),
    /// An address is not a name.
    #[error("`{0}` is an address, which no name on the list of allowed domains covers")]
    Address(String),
    /// The name that was asked for is no host.
    #[error("{0}")]
    Host(#[from] crate::host::HostError),
    /// The person said no, or nobody could be asked; the words are for the agent.
    #[error("`{target}` was not allowed: {why}")]
    SaidNo {
        /// The target that was asked about.
        target: String,
        /// The answer.
        why: String,
    },
    /// The name has no address.
    #[error("`{name}` cannot be resolved: {why}")]
    Unresolvable {
        /// The name.
        name: String,
        /// The resolver's word.
        why: String,
    },
    /// The name leads to where no name may lead.
    #[error("`{target}` leads to {address}, which {place}")]
    NotPublic {
        /// The target that was asked for.
        target: String,
        /// The address that it leads to.
        address: IpAddr,
        /// The kind of that address.
        place: AddressScope,
    },
    /// The name leads to a denied address.
    #[error("`{target}` leads to {address}, which is on the list of denied domains")]
    DeniedAddress {
        /// The target that was asked for.
        target: String,
        /// The address that it leads to.
        address: IpAddr,
    },
    /// Nobody answers there.
    #[error("`{target}` cannot be reached: {why}")]
    Unreachable {
        /// The target that was asked for.
        target: String,
        /// The kernel's word.
        why: String,
    },
    /// The first bytes on port 443 are not what they must be.
    #[error("the connection to `{target}` was cut: {why}")]
    Hello {
        /// The target that was allowed.
        target: String,
        /// The mistake in what came instead.
        why: ClientHelloError,
    },
    /// The TLS conversation is meant for somebody else.
    #[error("the connection to `{target}` was cut: it asks for `{named}` there")]
    OtherName {
        /// The target that was allowed.
        target: String,
        /// The host that the ClientHello names.
        named: String,
    },
    /// It was allowed, and is no longer.
    #[error("`{0}` is no longer allowed")]
    Withdrawn(String),
    /// The decision could not be written down.
    #[error("the decision on `{target}` could not be recorded: {why}")]
    NotRecorded {
        /// The target that it was on.
        target: String,
        /// The reason.
        why: String,
    },
    /// A request that this proxy does not carry out.
    #[error("{0}")]
    Request(&'static str),
}

impl ConnectionRefusal {
    /// A short name that does not change, for the reason header and the audit log.
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

    /// True when nobody decided against it: the way there is broken, or the request is.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Unresolvable { .. } | Self::Unreachable { .. })
    }
}
