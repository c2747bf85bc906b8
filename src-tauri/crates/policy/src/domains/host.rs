//! Canonical form of hosts: lower case, punycode, IP addresses in standard notation, no trailing dot.

use url::{Host, Url};

/// A host in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CanonicalHost {
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
    Invalid,
}

impl CanonicalHost {
    /// Parses the host in an address. Returns `None` if it is not valid.
    pub(super) fn parse(host: &str) -> Option<Self> {
        match Host::parse(host.trim_end_matches('.')).ok()? {
            // IDNA maps the dots of other scripts to ASCII, so parsing can produce a trailing dot.
            Host::Domain(name) if name.ends_with('.') => Self::parse(&name),
            Host::Domain(name) => Self::from_name(name),
            address @ (Host::Ipv4(_) | Host::Ipv6(_)) => Some(Self::from_ip(&address)),
        }
    }

    /// Returns the host of a URL.
    pub(super) fn from_url(url: &Url) -> Option<Self> {
        match url.host()? {
            // The URL parser normalizes the host of a web URL, except for a trailing dot.
            Host::Domain(name) if url.is_special() && !name.ends_with('.') => {
                Self::from_name(name.to_owned())
            }
            Host::Domain(name) => Self::parse(name),
            address @ (Host::Ipv4(_) | Host::Ipv6(_)) => Some(Self::from_ip(&address.to_owned())),
        }
    }

    /// Parses a host that is not part of a URL. An IPv6 address does not need brackets.
    pub(super) fn parse_standalone(host: &str) -> Option<Self> {
        let is_bare = host.contains(':') && !host.starts_with('[');
        if is_bare { Self::parse(&format!("[{host}]")) } else { Self::parse(host) }
    }

    /// Parses a host like [`Self::parse_standalone`], but returns an invalid host as [`HostKind::Invalid`].
    pub(super) fn parse_lenient(host: &str) -> Self {
        let invalid = || Self { name: host.trim_end_matches('.').to_lowercase(), kind: HostKind::Invalid };
        Self::parse_standalone(host).unwrap_or_else(invalid)
    }

    fn from_name(name: String) -> Option<Self> {
        const LOCAL: [&str; 3] = ["localhost", "internal", "local"];
        let is_local = LOCAL.iter().any(|suffix| is_same_or_subdomain(&name, suffix));
        let kind = if is_local { HostKind::Local } else { HostKind::Public };
        (!name.is_empty()).then_some(Self { name, kind })
    }

    fn from_ip(address: &Host) -> Self {
        Self { name: address.to_string(), kind: HostKind::Address }
    }
}

/// Returns `true` if a host is, or resembles, an IP address in any notation that resolvers accept.
#[must_use]
pub fn is_ip_address(host: &str) -> bool {
    let is_number = |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit());
    let looks_like_ipv4 = || host.split('.').count() == 4 && host.split('.').all(is_number);
    host.contains(':') || matches!(Host::parse(host), Ok(Host::Ipv4(_) | Host::Ipv6(_))) || looks_like_ipv4()
}

/// Returns `true` if a host is `parent` or a subdomain of it.
pub(super) fn is_same_or_subdomain(host: &str, parent: &str) -> bool {
    !parent.is_empty()
        && host
            .strip_suffix(parent)
            .is_some_and(|rest| rest.is_empty() || (rest.len() > 1 && rest.ends_with('.')))
}
