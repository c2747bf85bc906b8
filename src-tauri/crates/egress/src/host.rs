//! Target host in canonical form, as used for rule checks, resolution and comparison.
//!
//! - A name is ASCII, lower case and without a trailing dot.
//! - Text that a resolver would parse as an address, in any notation, is a [`Host::Address`] rather than a name.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Maximum length of a DNS name in characters.
const MAX_NAME_LEN: usize = 253;
const MAX_LABEL_LEN: usize = 63;

/// Host name or IP address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// Host name in canonical form.
    Name(String),
    /// IP address. An IPv4-mapped IPv6 address is stored as IPv4.
    Address(IpAddr),
}

/// Host and port to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// Host name or address.
    pub host: Host,
    /// TCP port.
    pub port: u16,
}

/// Error returned for text that is not a valid host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid host name", text = .0.escape_debug())]
pub struct HostError(pub String);

impl Host {
    /// Parses a host as in a URL, but rejects percent-encoding.
    ///
    /// # Errors
    /// Returns a [`HostError`] if the text is not a valid host. Such text must not be passed to a resolver.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        read(text).ok_or_else(|| HostError(text.chars().take(MAX_NAME_LEN).collect()))
    }

    /// Returns `true` if the host names this machine or a machine in its local network.
    #[must_use]
    pub fn is_local(&self) -> bool {
        const LOCAL: [&str; 6] = ["localhost", "local", "internal", "home.arpa", "lan", "localdomain"];
        let Self::Name(name) = self else { return false };
        !name.contains('.') || LOCAL.iter().any(|parent| name == parent || is_subdomain(name, parent))
    }
}

impl HostPort {
    /// Parses `host:port`. Without a port, uses `default`.
    ///
    /// # Errors
    /// Returns a [`HostError`] if the host or port is invalid, or the port is missing and `default` is `None`.
    pub fn parse(text: &str, default: Option<u16>) -> Result<Self, HostError> {
        let bad = || HostError(text.chars().take(MAX_NAME_LEN).collect());
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            Some(_) | None => (text, None),
        };
        let port = match port {
            Some(digits) => parse_port(digits).ok_or_else(bad)?,
            None => default.ok_or_else(bad)?,
        };
        if host.contains(':') && !host.starts_with('[') {
            return Err(bad());
        }
        Ok(Self { host: Host::parse(host)?, port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Address(address) => write!(f, "{}", SocketAddr::new(*address, self.port)),
        }
    }
}

/// Returns `true` if `name` is a subdomain of `parent`, at any depth.
pub(crate) fn is_subdomain(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// Parses a port number. Rejects 0, signs and leading zeros.
pub(crate) fn parse_port(digits: &str) -> Option<u16> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| plain)
}

fn read(text: &str) -> Option<Host> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if let Some(inside) = text.strip_prefix('[') {
        return inside.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(address);
    }
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(address);
    }
    // The URL parser would decode percent-encoding, unlike the resolver and the target.
    if text.contains('%') {
        return None;
    }
    match url::Host::parse(text).ok()? {
        url::Host::Ipv4(ip) => Some(Host::Address(IpAddr::V4(ip))),
        url::Host::Ipv6(ip) => Some(address(ip)),
        url::Host::Domain(name) => is_name(&name).then_some(Host::Name(name)),
    }
}

fn address(ip: Ipv6Addr) -> Host {
    Host::Address(ip.to_canonical())
}

fn is_name(name: &str) -> bool {
    let label = |label: &str| {
        (1..=MAX_LABEL_LEN).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    name.len() <= MAX_NAME_LEN && name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Host {
        Host::Name(text.into())
    }

    #[test]
    fn names_are_normalized() {
        let bücher = "b\u{fc}cher.Example";
        for (text, expected) in [
            ("Example.COM", "example.com"),
            ("example.com.", "example.com"),
            (bücher, "xn--bcher-kva.example"),
            ("B\u{dc}CHER.example", "xn--bcher-kva.example"),
            ("ex\u{ad}ample.com", "example.com"),
            ("example\u{3002}com", "example.com"),
            ("_dmarc.example.com", "_dmarc.example.com"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(Host::parse(text), Ok(name(expected)), "{text}");
        }
    }

    #[test]
    fn an_address_in_any_notation_is_an_address() {
        let loopback = Host::Address("127.0.0.1".parse().unwrap());
        for text in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "2130706433",
            "0177.0.0.1",
            "017700000001",
            "0x7f.0.0.1",
            "0x7F000001",
            "0X7f.1",
            "127.0.0.1.",
            "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
            "\u{2460}\u{2461}\u{2466}.0.0.1",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "::ffff:127.0.0.1",
        ] {
            assert_eq!(Host::parse(text), Ok(loopback.clone()), "{text}");
        }
        assert_eq!(Host::parse("[2001:DB8::1]"), Ok(Host::Address("2001:db8::1".parse().unwrap())));
        assert_eq!(Host::parse("::1"), Ok(Host::Address("::1".parse().unwrap())));
    }

    #[test]
    fn invalid_hosts_are_refused_and_named() {
        for text in [
            "",
            ".",
            "..",
            "a..b",
            "a.b..",
            ".a.b",
            "a b",
            "a/b",
            "a\\b",
            "a@b",
            "a?b",
            "a#b",
            "a%62",
            "a\0b",
            "a\nb",
            "a,b",
            "a;b",
            "*.a.b",
            "[::1%eth0]",
            "[::1",
            "::1]",
            "[fe80::1%25lo]",
            "1.2.3.4.5",
            "1.2.3.256",
            "256.1.1.1",
            "0x7f.0.0.0x1ff",
            "xn--a.b",
            "a.b:c:d",
            "\u{202e}a.b",
            "a.1",
        ] {
            assert_eq!(Host::parse(text), Err(HostError(text.into())), "{text}");
        }
        assert!(Host::parse(&format!("{}.com", "a".repeat(64))).is_err());
        assert!(Host::parse(&format!("{}com", "a.".repeat(126))).is_err());
        assert!(Host::parse(&format!("{}.com", "a".repeat(63))).is_ok());
    }

    #[test]
    fn targets_parse_as_host_and_port() {
        let parse = |text| HostPort::parse(text, Some(80)).map(|t| t.to_string()).ok();
        assert_eq!(parse("A.example:443").as_deref(), Some("a.example:443"));
        assert_eq!(parse("a.example").as_deref(), Some("a.example:80"));
        assert_eq!(parse("[::1]:8080").as_deref(), Some("[::1]:8080"));
        assert_eq!(parse("[::1]").as_deref(), Some("[::1]:80"));
        for text in
            ["a.b:", "a.b:0", "a.b:080", "a.b:+80", "a.b:65536", "::1", "::1:80", "a.b:8 0", ":80", "a:b:80"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(HostPort::parse("a.b", None), Err(HostError("a.b".into())));
    }

    #[test]
    fn local_names_are_recognized() {
        for text in ["localhost", "a.localhost", "printer.local", "db.corp.internal", "router", "x.home.arpa"]
        {
            assert!(Host::parse(text).unwrap().is_local(), "{text}");
        }
        assert!(!Host::parse("local.example").unwrap().is_local());
        assert!(!Host::parse("notlocal.com").unwrap().is_local());
    }
}
