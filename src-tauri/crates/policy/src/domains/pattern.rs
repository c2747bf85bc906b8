//! Patterns for hosts and repositories.

use super::host::{CanonicalHost, HostKind, is_same_or_subdomain};
use super::{Destination, HostTarget};
use percent_encoding::percent_decode_str;

/// Pattern for hosts and repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// Every public host name.
    Any,
    /// A host and all its subdomains.
    WithSubdomains(String),
    /// One host, or one repository.
    Exact(String),
}

/// Reason no host can match a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The pattern is a whole URL.
    #[error("`{0}` is an address; write only its host")]
    Address(String),
    /// The pattern has a `*` in an unsupported position.
    #[error("unsupported `*` in `{0}`; write `*` for every host, or `*.d` for `d` and its subdomains")]
    MisplacedWildcard(String),
    /// The pattern names a repository on several hosts.
    #[error("`{0}` names a repository on more than one host")]
    RepositoryOnSeveralHosts(String),
    /// The pattern has a port.
    #[error("`{0}` has a port; remove it, because rules apply to every port")]
    Port(String),
    /// The pattern is not a valid host.
    #[error("`{0}` is not a host")]
    InvalidHost(String),
}

impl HostPattern {
    /// Parses a pattern leniently. A pattern that is not a valid host matches only the same text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text == "*" {
            return Self::Any;
        }
        match text.strip_prefix("*.") {
            Some(parent) => Self::WithSubdomains(CanonicalHost::parse_lenient(parent).name),
            None => Self::Exact(HostTarget::parse(text).domain),
        }
    }

    /// Parses a pattern.
    ///
    /// # Errors
    /// Returns [`PatternError`] if no host can match the pattern.
    pub fn parse_strict(text: &str) -> Result<Self, PatternError> {
        let (host, path) = text.split_once('/').map_or((text, None), |(host, path)| (host, Some(path)));
        let parent = host.strip_prefix("*.");
        let name = parent.unwrap_or(host);
        let error: fn(String) -> PatternError = match text {
            "*" => return Ok(Self::Any),
            _ if text.contains("://") => PatternError::Address,
            _ if name.contains('*') => PatternError::MisplacedWildcard,
            _ if parent.is_some() && path.is_some() => PatternError::RepositoryOnSeveralHosts,
            _ if CanonicalHost::parse_standalone(name).is_some() => return Ok(Self::parse(text)),
            _ if name.rsplit_once(':').is_some_and(|(host, _)| CanonicalHost::parse(host).is_some()) => {
                PatternError::Port
            }
            _ => PatternError::InvalidHost,
        };
        Err(error(text.to_owned()))
    }

    /// Returns `true` if the pattern covers a target, given as `host` or `host/path`.
    #[must_use]
    pub fn covers(&self, domain: &str) -> bool {
        self.covers_target(&HostTarget::parse(domain))
    }

    /// Returns `true` if the pattern covers everything that another pattern covers.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Any) => *self == Self::Any,
            (Self::Exact(_), Self::WithSubdomains(_)) => false,
            (Self::Exact(outer), Self::Exact(inner)) => outer == inner || self.covers(inner),
            (Self::Any | Self::WithSubdomains(_), Self::WithSubdomains(host) | Self::Exact(host)) => {
                self.covers(host)
            }
        }
    }

    pub(super) fn covers_target(&self, target: &HostTarget) -> bool {
        let host = target.host();
        match self {
            Self::Any => !host.is_empty() && target.kind == HostKind::Public,
            Self::WithSubdomains(parent) => target.has_name() && is_same_or_subdomain(host, parent),
            Self::Exact(wanted) if wanted.contains('/') => *wanted == target.domain,
            Self::Exact(wanted) => !wanted.is_empty() && wanted == host,
        }
    }

    /// Returns `true` if the pattern's author may have meant a destination that the pattern does not cover. This is
    /// always possible if the destination's target is unknown.
    pub(crate) fn may_match(&self, destination: &Destination) -> bool {
        destination.target.as_ref().is_none_or(|target| self.may_match_target(target))
    }

    /// Returns `true` if the pattern's author may have meant a host that the pattern does not cover.
    pub(crate) fn may_match_host(&self, host: &str) -> bool {
        self.may_match_target(&HostTarget::parse(host))
    }

    /// Returns `true` for a local name or IP address if the pattern is `*`, for a different spelling of an exact
    /// repository, and for any text that is not a valid host.
    fn may_match_target(&self, target: &HostTarget) -> bool {
        match (self, target.kind) {
            (_, HostKind::Invalid) => true,
            (Self::Any, HostKind::Local | HostKind::Address) => true,
            (Self::Exact(wanted), _) => {
                wanted.contains('/') && normalize_repository(wanted) == normalize_repository(&target.domain)
            }
            (Self::Any | Self::WithSubdomains(_), _) => false,
        }
    }
}

/// Normalizes a repository name as lenient git hosts do, by ignoring letter case, escapes, empty components and
/// `.git`.
fn normalize_repository(domain: &str) -> String {
    let decoded = percent_decode_str(domain).decode_utf8_lossy().to_lowercase();
    let parts: Vec<&str> = decoded.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let joined = parts.join("/");
    joined.strip_suffix(".git").unwrap_or(&joined).to_owned()
}
