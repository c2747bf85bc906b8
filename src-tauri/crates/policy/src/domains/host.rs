//! Canonical form of hosts: lower case, punycode, IP addresses in standard notation, no trailing dot.

use url::{Host, Url};

/// A host in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CleanHost {
    pub(super) name: String,
    pub(super) kind: HostKind,
}

/// Kind of host, as distinguished by patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostKind {
    /// A name that a public resolver may resolve.
    Public,
    /// A name in the local network or for this computer.
    Local,
    /// An IP address.
    Address,
    /// Not a valid host. Different programs may interpret it differently.
    Odd,
}

impl CleanHost {
    /// Parses the host in an address. Returns `None` if it is not valid.
    pub(super) fn parse(host: &str) -> Option<Self> {
        match Host::parse(host.trim_end_matches('.')).ok()? {
            // IDNA maps the dots of other scripts to ASCII, so parsing can produce a trailing dot.
            Host::Domain(name) if name.ends_with('.') => Self::parse(&name),
            Host::Domain(name) => Self::named(name),
            address @ (Host::Ipv4(_) | Host::Ipv6(_)) => Some(Self::address(&address)),
        }
    }

    /// Returns the host of a URL.
    pub(super) fn of(url: &Url) -> Option<Self> {
        match url.host()? {
            // The URL parser normalizes the host of a web URL, except for a trailing dot.
            Host::Domain(name) if url.is_special() && !name.ends_with('.') => Self::named(name.to_owned()),
            Host::Domain(name) => Self::parse(name),
            address @ (Host::Ipv4(_) | Host::Ipv6(_)) => Some(Self::address(&address.to_owned())),
        }
    }

    /// Parses a host that is not part of a URL. An IPv6 address does not need brackets.
    pub(super) fn alone(host: &str) -> Option<Self> {
        let is_bare = host.contains(':') && !host.starts_with('[');
        if is_bare { Self::parse(&format!("[{host}]")) } else { Self::parse(host) }
    }

    /// Parses a host like [`Self::alone`], but returns an invalid host as [`HostKind::Odd`].
    pub(super) fn spelled(host: &str) -> Self {
        let odd = || Self { name: host.trim_end_matches('.').to_lowercase(), kind: HostKind::Odd };
        Self::alone(host).unwrap_or_else(odd)
    }

    fn named(name: String) -> Option<Self> {
        const LOCAL: [&str; 3] = ["localhost", "internal", "local"];
        let is_local = LOCAL.iter().any(|suffix| is_below(&name, suffix));
        let kind = if is_local { HostKind::Local } else { HostKind::Public };
        (!name.is_empty()).then_some(Self { name, kind })
    }

    fn address(address: &Host) -> Self {
        Self { name: address.to_string(), kind: HostKind::Address }
    }
}

/// Returns `true` if a host is, or resembles, an IP address in any notation that resolvers accept.
#[must_use]
pub fn is_ip_address(host: &str) -> bool {
    let is_number = |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit());
    let looks_like_one = || host.split('.').count() == 4 && host.split('.').all(is_number);
    host.contains(':') || matches!(Host::parse(host), Ok(Host::Ipv4(_) | Host::Ipv6(_))) || looks_like_one()
}

/// Returns `true` if a host is `parent` or a subdomain of it.
pub(super) fn is_below(host: &str, parent: &str) -> bool {
    !parent.is_empty()
        && host
            .strip_suffix(parent)
            .is_some_and(|rest| rest.is_empty() || (rest.len() > 1 && rest.ends_with('.')))
}
