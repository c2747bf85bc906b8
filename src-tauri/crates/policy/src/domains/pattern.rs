//! Patterns for hosts and repositories.

use super::host::{CleanHost, HostKind, is_below};
use super::{Destination, Site};
use percent_encoding::percent_decode_str;

/// Pattern for hosts and repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// Every public host name.
    Any,
    /// A host and all its subdomains.
    Below(String),
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
    StarInside(String),
    /// The pattern names a repository on several hosts.
    #[error("`{0}` names a repository on more than one host")]
    Repositories(String),
    /// The pattern has a port.
    #[error("`{0}` has a port; remove it, because rules apply to every port")]
    Port(String),
    /// The pattern is not a valid host.
    #[error("`{0}` is not a host")]
    NoHost(String),
}

impl HostPattern {
    /// Parses a pattern leniently. A pattern that is not a valid host matches only the same text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text == "*" {
            return Self::Any;
        }
        match text.strip_prefix("*.") {
            Some(below) => Self::Below(CleanHost::spelled(below).name),
            None => Self::Exact(Site::new(text).domain),
        }
    }

    /// Parses a pattern.
    ///
    /// # Errors
    /// Returns [`PatternError`] if no host can match the pattern.
    pub fn read(text: &str) -> Result<Self, PatternError> {
        let (host, path) = text.split_once('/').map_or((text, None), |(host, path)| (host, Some(path)));
        let below = host.strip_prefix("*.");
        let name = below.unwrap_or(host);
        let wrong: fn(String) -> PatternError = match text {
            "*" => return Ok(Self::Any),
            _ if text.contains("://") => PatternError::Address,
            _ if name.contains('*') => PatternError::StarInside,
            _ if below.is_some() && path.is_some() => PatternError::Repositories,
            _ if CleanHost::alone(name).is_some() => return Ok(Self::parse(text)),
            _ if name.rsplit_once(':').is_some_and(|(host, _)| CleanHost::parse(host).is_some()) => {
                PatternError::Port
            }
            _ => PatternError::NoHost,
        };
        Err(wrong(text.to_owned()))
    }

    /// Returns `true` if the pattern covers a target, given as `host` or `host/path`.
    #[must_use]
    pub fn covers(&self, domain: &str) -> bool {
        self.covers_site(&Site::new(domain))
    }

    /// Returns `true` if the pattern covers everything that another pattern covers.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Any) => *self == Self::Any,
            (Self::Exact(_), Self::Below(_)) => false,
            (Self::Exact(wide), Self::Exact(narrow)) => wide == narrow || self.covers(narrow),
            (Self::Any | Self::Below(_), Self::Below(host) | Self::Exact(host)) => self.covers(host),
        }
    }

    pub(super) fn covers_site(&self, site: &Site) -> bool {
        let host = site.host();
        match self {
            Self::Any => !host.is_empty() && site.kind == HostKind::Public,
            Self::Below(parent) => site.has_name() && is_below(host, parent),
            Self::Exact(wanted) if wanted.contains('/') => *wanted == site.domain,
            Self::Exact(wanted) => !wanted.is_empty() && wanted == host,
        }
    }

    /// Returns `true` if the pattern's author may have meant a destination that the pattern does not cover. This is
    /// always possible if the destination's target is unknown.
    pub(crate) fn may_mean(&self, destination: &Destination) -> bool {
        destination.site.as_ref().is_none_or(|site| self.may_mean_site(site))
    }

    /// Returns `true` if the pattern's author may have meant a host that the pattern does not cover.
    pub(crate) fn may_mean_host(&self, host: &str) -> bool {
        self.may_mean_site(&Site::new(host))
    }

    /// Returns `true` for a local name or IP address if the pattern is `*`, for a different spelling of an exact
    /// repository, and for any text that is not a valid host.
    fn may_mean_site(&self, site: &Site) -> bool {
        match (self, site.kind) {
            (_, HostKind::Odd) => true,
            (Self::Any, HostKind::Local | HostKind::Address) => true,
            (Self::Exact(wanted), _) => wanted.contains('/') && loosely(wanted) == loosely(&site.domain),
            (Self::Any | Self::Below(_), _) => false,
        }
    }
}

/// Normalizes a repository name as lenient git hosts do, by ignoring letter case, escapes, empty components and
/// `.git`.
fn loosely(domain: &str) -> String {
    let plain = percent_decode_str(domain).decode_utf8_lossy().to_lowercase();
    let parts: Vec<&str> = plain.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let joined = parts.join("/");
    joined.strip_suffix(".git").unwrap_or(&joined).to_owned()
}
