//! Patterns for places on the network, and the places that each covers.

use super::host::{CleanHost, HostKind, is_below};
use super::{Destination, Site};
use percent_encoding::percent_decode_str;

/// A pattern for places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// Any named public host.
    Any,
    /// A host and what is below it.
    Below(String),
    /// A host, or one repository.
    Exact(String),
}

/// Why no host can match a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is a whole address.
    #[error("`{0}` is an address: write its host alone")]
    Address(String),
    /// It has a star where none stands for anything.
    #[error("`{0}` has a `*` inside: write `*` for every host, or `*.d` for what is below `d`")]
    StarInside(String),
    /// It is about one repository of several hosts.
    #[error("`{0}` names a repository on more than one host")]
    Repositories(String),
    /// It is about one port of a host.
    #[error("`{0}` has a port: a rule is about every port of a host")]
    Port(String),
    /// It is not spelled like a host.
    #[error("`{0}` is no host")]
    NoHost(String),
}

impl HostPattern {
    /// Takes a pattern as it is spelled. One that no host can match covers what is spelled like it.
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

    /// Reads a pattern.
    ///
    /// # Errors
    /// [`PatternError`], when no host can match it.
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

    /// Returns `true` if it covers a place, given as `host` or `host/path`.
    #[must_use]
    pub fn covers(&self, domain: &str) -> bool {
        self.covers_site(&Site::new(domain))
    }

    /// Returns `true` if it covers all that another pattern covers.
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

    /// Returns `true` if it may be meant for a destination that it does not cover. Nobody knows where one without a place
    /// leads.
    pub(crate) fn may_mean(&self, destination: &Destination) -> bool {
        destination.site.as_ref().is_none_or(|site| self.may_mean_site(site))
    }

    /// Returns `true` if it may be meant for a host, given as text, that it does not cover.
    pub(crate) fn may_mean_host(&self, host: &str) -> bool {
        self.may_mean_site(&Site::new(host))
    }

    /// It may be for a name of this machine or an address as `*`, for a repository in another spelling as an exact one, and for
    /// anything that is no host.
    fn may_mean_site(&self, site: &Site) -> bool {
        match (self, site.kind) {
            (_, HostKind::Odd) => true,
            (Self::Any, HostKind::Local | HostKind::Address) => true,
            (Self::Exact(wanted), _) => wanted.contains('/') && loosely(wanted) == loosely(&site.domain),
            (Self::Any | Self::Below(_), _) => false,
        }
    }
}

/// A repository as hosts that are generous with spelling find it.
fn loosely(domain: &str) -> String {
    let plain = percent_decode_str(domain).decode_utf8_lossy().to_lowercase();
    let parts: Vec<&str> = plain.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let joined = parts.join("/");
    joined.strip_suffix(".git").unwrap_or(&joined).to_owned()
}
