//! Rules for the hosts that a server is allowed to reach. They neither resolve names nor read a clock.
//!
//! - Denied patterns are checked first, then allowed patterns, then grants. Any other target requires approval or is
//!   denied.
//! - `*.x` matches every subdomain of `x`, but not `x` itself. `*` alone is valid only as a denied pattern.
//! - An allowed pattern without a port covers ports 80 and 443; a denied pattern without a port covers all ports.
//! - A name pattern covers neither IP addresses nor names that resolve to non-public addresses. Such addresses are
//!   covered only by a pattern that contains the address itself.

use crate::host::{Host, HostPort, is_subdomain, parse_port};
use crate::refusal::ConnectionRefusal;
use std::net::IpAddr;

/// Name of this computer in targets.
const LOCALHOST: &str = "localhost";

/// Ports covered by an allowed pattern without a port.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// Rules for the hosts that one server is allowed to reach.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostRules {
    denied: Vec<HostPattern>,
    allowed: Vec<HostPattern>,
    granted: Vec<GrantedHost>,
    ask_unknown: bool,
    /// `true` if services on this computer require approval per port, under the name `localhost`.
    local_services: bool,
}

/// Target allowed by a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedHost {
    /// Identifier of the grant.
    pub id: String,
    /// Granted host and port.
    pub target: HostPort,
}

/// Decision on a target.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum HostDecision {
    /// The target is denied.
    Deny {
        /// Reason for the agent and the audit log.
        reason: ConnectionRefusal,
    },
    /// No rule matches, so the user must be asked.
    Ask {
        /// Host name to ask about.
        host: String,
        /// Port to ask about.
        port: u16,
    },
    /// The target is allowed.
    Allow {
        /// Pattern or grant that allows the target.
        by: PermittedBy,
    },
}

/// Permission under which a connection is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermittedBy {
    /// An allowed pattern, as written.
    Rule(String),
    /// A grant, by identifier.
    Grant(String),
    /// The user's answer, for the connections that were waiting for it.
    Once,
}

/// Error returned for an invalid pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The pattern is a URL or contains parts of one.
    #[error("`{0}` is not a host: write it without scheme, path and login")]
    Url(String),
    /// The pattern is `*` or covers a whole top-level domain, such as `*.com`.
    #[error("`{0}` covers too much; name at least a domain and its ending, as in `*.example.com`")]
    TooWide(String),
    /// The pattern contains a star that is not its first label.
    #[error("invalid pattern `{0}`: `*` is allowed only as the first label, as in `*.example.com`")]
    Star(String),
    /// An IPv6 address is written without brackets.
    #[error("invalid pattern `{0}`: an IPv6 address requires brackets, as in `[2001:db8::1]:443`")]
    Brackets(String),
    /// An address is not in canonical notation.
    #[error("`{pattern}` is an address in unusual notation; write it as `{canonical}`")]
    Notation {
        /// Pattern as written.
        pattern: String,
        /// Canonical spelling of the address.
        canonical: String,
    },
    /// The host name has no dot.
    #[error("`{0}` has no dot; write the full host name")]
    Short(String),
    /// The port is not a number from 1 to 65535.
    #[error("invalid pattern `{0}`: the port must be a number from 1 to 65535")]
    Port(String),
    /// The host name is invalid.
    #[error("`{0}` is not a valid host name")]
    Name(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct HostPattern {
    hosts: HostSet,
    port: Option<u16>,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostSet {
    Any,
    Subdomains(String),
    Name(String),
    Address(IpAddr),
}

impl HostRules {
    /// Parses patterns into rules. If `ask_unknown` is `true`, unmatched names require approval; otherwise they are
    /// denied.
    ///
    /// # Errors
    /// Returns a [`RuleError`] for the first invalid pattern.
    pub fn new<A: AsRef<str>, D: AsRef<str>>(
        allowed: impl IntoIterator<Item = A>,
        denied: impl IntoIterator<Item = D>,
        ask_unknown: bool,
    ) -> Result<Self, RuleError> {
        let allowed =
            allowed.into_iter().map(|text| parse_pattern(text.as_ref(), false)).collect::<Result<_, _>>()?;
        let denied =
            denied.into_iter().map(|text| parse_pattern(text.as_ref(), true)).collect::<Result<_, _>>()?;
        Ok(Self { denied, allowed, ask_unknown, ..Self::default() })
    }

    /// Returns rules without patterns, under which every name requires approval.
    #[must_use]
    pub fn ask_for_all() -> Self {
        Self { ask_unknown: true, ..Self::default() }
    }

    /// Returns these rules, but requires approval for services on this computer. Has no effect on rules that never
    /// require approval.
    #[must_use]
    pub fn with_local_services(self) -> Self {
        Self { local_services: self.ask_unknown, ..self }
    }

    /// Returns the target that the rules are applied to: `localhost` for a loopback address, unless the rules name
    /// that address.
    #[must_use]
    pub(crate) fn normalize_target(&self, target: HostPort) -> HostPort {
        let is_loopback =
            matches!(&target.host, Host::Address(address) if address.to_canonical().is_loopback());
        let is_named = || self.allowed.iter().any(|pattern| pattern.allows(&target));
        if self.local_services && is_loopback && !is_named() {
            return HostPort { host: Host::Name(LOCALHOST.to_owned()), port: target.port };
        }
        target
    }

    /// Returns the same rules with all grants replaced by `granted`.
    #[must_use]
    pub fn with_grants(&self, granted: Vec<GrantedHost>) -> Self {
        Self { granted, ..self.clone() }
    }

    /// Returns the hosts that are reachable without approval: allowed patterns, and grants that no denied pattern
    /// matches.
    #[must_use]
    pub fn reachable(&self) -> Vec<String> {
        let granted = self
            .granted
            .iter()
            .filter(|grant| self.still_allows(&grant.target, &PermittedBy::Grant(String::new())));
        let granted = granted.map(|grant| match grant.target.port {
            443 => grant.target.host.to_string(),
            _ => grant.target.to_string(),
        });
        let mut hosts: Vec<String> = self.allowed.iter().map(|pattern| pattern.text.clone()).collect();
        for host in granted {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        hosts
    }

    /// Returns `true` if these rules allow no target at all. In that case, no proxy is needed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.allowed.is_empty() && self.granted.is_empty() && !self.ask_unknown
    }

    /// Decides on a target before its name is resolved.
    pub fn judge(&self, target: &HostPort) -> HostDecision {
        if let Some(pattern) = self.denied.iter().find(|pattern| pattern.denies(target)) {
            return HostDecision::Deny { reason: ConnectionRefusal::Denied(pattern.text.clone()) };
        }
        if let Some(pattern) = self.allowed.iter().find(|pattern| pattern.allows(target)) {
            return HostDecision::Allow { by: PermittedBy::Rule(pattern.text.clone()) };
        }
        if let Some(grant) = self.granted.iter().find(|grant| grant.target == *target) {
            return HostDecision::Allow { by: PermittedBy::Grant(grant.id.clone()) };
        }
        match &target.host {
            Host::Address(_) => HostDecision::Deny { reason: ConnectionRefusal::Address(target.to_string()) },
            Host::Name(name)
                if self.ask_unknown
                    && (!target.host.is_local() || self.local_services && is_localhost(target)) =>
            {
                HostDecision::Ask { host: name.clone(), port: target.port }
            }
            Host::Name(_) => HostDecision::Deny { reason: ConnectionRefusal::NotAllowed(target.to_string()) },
        }
    }

    /// Returns `true` if an open connection is still allowed. A connection that the user allowed once stays allowed
    /// until a rule denies it.
    #[must_use]
    pub(crate) fn still_allows(&self, target: &HostPort, by: &PermittedBy) -> bool {
        match self.judge(target) {
            HostDecision::Allow { .. } => true,
            HostDecision::Ask { .. } => *by == PermittedBy::Once,
            HostDecision::Deny { .. } => false,
        }
    }

    /// Returns `true` if a denied pattern matches this address.
    #[must_use]
    pub(crate) fn denies_address(&self, address: IpAddr, port: u16) -> bool {
        self.denied
            .iter()
            .any(|pattern| pattern.denies(&HostPort { host: Host::Address(address.to_canonical()), port }))
    }

    /// Returns `true` if connecting to a non-public address is allowed for a target, because a pattern contains the
    /// address, or the target is `localhost` and the address is a loopback address.
    #[must_use]
    pub fn lists_address(&self, target: &HostPort, address: IpAddr) -> bool {
        let literal = HostPort { host: Host::Address(address.to_canonical()), port: target.port };
        let localhost = || is_localhost(target) && address.is_loopback();
        self.allowed.iter().any(|pattern| pattern.allows(&literal) || (localhost() && pattern.allows(target)))
    }

    /// Returns `true` if the user allowed a service on this computer and the address is a loopback address.
    #[must_use]
    pub(crate) fn allows_local_service(&self, target: &HostPort, address: IpAddr, by: &PermittedBy) -> bool {
        let is_answered = match by {
            PermittedBy::Rule(_) => false,
            PermittedBy::Grant(_) | PermittedBy::Once => self.local_services,
        };
        is_answered && is_localhost(target) && address.is_loopback()
    }
}

fn is_localhost(target: &HostPort) -> bool {
    target.host == Host::Name(LOCALHOST.to_owned())
}

impl HostPattern {
    fn allows(&self, target: &HostPort) -> bool {
        let port = self.port.map_or_else(|| DEFAULT_PORTS.contains(&target.port), |port| port == target.port);
        port && self.hosts.matches(&target.host)
    }

    fn denies(&self, target: &HostPort) -> bool {
        self.port.is_none_or(|port| port == target.port) && self.hosts.matches(&target.host)
    }
}

impl HostSet {
    fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Subdomains(parent), Host::Name(name)) => is_subdomain(name, parent),
            (Self::Name(wanted), Host::Name(name)) => wanted == name,
            (Self::Address(wanted), Host::Address(address)) => wanted == address,
            (Self::Subdomains(_) | Self::Name(_), Host::Address(_)) | (Self::Address(_), Host::Name(_)) => {
                false
            }
        }
    }
}

fn parse_pattern(text: &str, denied: bool) -> Result<HostPattern, RuleError> {
    let owned = || text.to_owned();
    if text.contains(['/', '@', '?', '#', '\\']) {
        return Err(RuleError::Url(owned()));
    }
    let (host, port) = split_port(text)?;
    Ok(HostPattern { hosts: hosts(text, host, denied)?, port, text: owned() })
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), RuleError> {
    let port = |digits| parse_port(digits).ok_or_else(|| RuleError::Port(text.to_owned()));
    let bracket = text.rfind(']').map_or(0, |at| at + 1);
    match text.get(bracket..).and_then(|rest| rest.split_once(':')) {
        Some((_, digits)) if digits.contains(':') => Err(RuleError::Brackets(text.to_owned())),
        Some((before, digits)) => {
            Ok((text.get(..bracket + before.len()).unwrap_or_default(), Some(port(digits)?)))
        }
        None => Ok((text, None)),
    }
}

fn hosts(text: &str, host: &str, denied: bool) -> Result<HostSet, RuleError> {
    let owned = || text.to_owned();
    if host == "*" {
        return if denied { Ok(HostSet::Any) } else { Err(RuleError::TooWide(owned())) };
    }
    let (name, is_wildcard) = match host.strip_prefix("*.") {
        Some(parent) => (parent, true),
        None => (host, false),
    };
    if name.contains('*') {
        return Err(RuleError::Star(owned()));
    }
    match (Host::parse(name).map_err(|_| RuleError::Name(owned()))?, is_wildcard) {
        (Host::Address(_), true) => Err(RuleError::Star(owned())),
        (Host::Address(address), false) => literal(text, name, address),
        (Host::Name(parent), true) if parent.contains('.') => Ok(HostSet::Subdomains(parent)),
        (Host::Name(_), true) => Err(RuleError::TooWide(owned())),
        (Host::Name(name), false) if name.contains('.') || name == "localhost" => Ok(HostSet::Name(name)),
        (Host::Name(_), false) => Err(RuleError::Short(owned())),
    }
}

/// Accepts an IPv4 address only in canonical notation, because parsers disagree about other notations.
fn literal(text: &str, written: &str, address: IpAddr) -> Result<HostSet, RuleError> {
    let canonical = match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    };
    let is_canonical = match address {
        IpAddr::V4(_) => written == canonical,
        IpAddr::V6(_) => true,
    };
    if is_canonical {
        Ok(HostSet::Address(address))
    } else {
        Err(RuleError::Notation { pattern: text.to_owned(), canonical })
    }
}

#[cfg(test)]
mod tests;
