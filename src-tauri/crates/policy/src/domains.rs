//! Hosts and repositories: where a URL or a git remote leads, and the patterns that cover such places.
//!
//! - A place is `host` or `host/owner/repository`; hosts are lower case without a trailing dot.
//! - `*` covers any named public host; `*.d` covers `d` and what is below it; a host covers any repository on it; a
//!   pattern with `/` is exact.
//! - A pattern of a gate that ends in a port covers that port alone; without one it covers every port.
//! - What has no place (a foreign scheme, no host, not a URL) is covered by nothing.

mod patterns;

pub(crate) use patterns::Patterns;

use crate::Role;
use crate::names::Names;
use std::collections::BTreeMap;
use url::{Host, Url};

/// Where a value of a URL role leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    text: String,
    place: Option<Place>,
    port: Option<u16>,
}

/// Where ssh is served.
const SSH: u16 = 22;

/// A host, or a repository on one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    domain: String,
    /// How much of `domain` is the host.
    host: usize,
    kind: HostKind,
}

/// What patterns must know of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostKind {
    /// A name that a public resolver may answer.
    Public,
    /// A name of this machine or its network.
    Local,
    /// An address.
    Address,
}

/// A pattern for places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// Any named public host.
    Any,
    /// A host and what is below it.
    Below(String),
    /// A host, or one repository.
    Exact(String),
}

/// The hosts each server may reach without a question. A server that is not listed has no gate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gates {
    servers: Names<Gate>,
}

/// What one server may reach.
#[derive(Debug, Clone, PartialEq, Default)]
struct Gate {
    hosts: Patterns,
    ports: Vec<(Pattern, u16)>,
}

impl Destination {
    /// Understands the value of a URL role.
    #[must_use]
    pub fn parse(role: Role, raw: &str) -> Self {
        if role == Role::GitRemoteUrl { Self::remote(raw) } else { Self::web(raw) }
    }

    /// The canonical spelling, as it is sent.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place, where there is one: `host` for the web, `host/path` for a git remote.
    #[must_use]
    pub fn domain(&self) -> Option<&str> {
        self.place.as_ref().map(|place| place.domain.as_str())
    }

    /// The host and the port that a connection there goes to, where both are known.
    #[must_use]
    pub fn host_and_port(&self) -> Option<(&str, u16)> {
        Some((self.place.as_ref()?.host(), self.port?))
    }

    fn web(raw: &str) -> Self {
        let Ok(url) = Url::parse(raw) else { return Self::nowhere(raw) };
        let place = matches!(url.scheme(), "http" | "https").then(|| host_of(&url)).flatten();
        let port = url.port_or_known_default();
        Self { place: place.map(|host| Place::below(host, "")), port, text: spell(url) }
    }

    fn remote(raw: &str) -> Self {
        if raw.contains("://") {
            return Self::remote_url(raw);
        }
        // `transport::address` starts a helper program, and a leading dash would be read as an option.
        let Some((login, path)) = raw.split_once(':').filter(|(login, path)| {
            !login.is_empty()
                && !login.contains(['/', '['])
                && !login.starts_with('-')
                && !path.starts_with(':')
        }) else {
            return Self::nowhere(raw);
        };
        let host = login.rsplit_once('@').map_or(login, |(_, host)| host);
        let place = CleanHost::parse(host).map(|host| Place::below(host, path));
        Self { text: raw.to_owned(), place, port: Some(SSH) }
    }

    /// Only what leads somewhere is normalized: anything else git could take for something else then.
    fn remote_url(raw: &str) -> Self {
        let Ok(url) = Url::parse(raw) else { return Self::nowhere(raw) };
        let known = matches!(url.scheme(), "ssh" | "git" | "http" | "https");
        match known.then(|| host_of(&url)).flatten() {
            Some(host) => Self {
                place: Some(Place::below(host, url.path())),
                port: url.port_or_known_default().or_else(|| usual_port(url.scheme())),
                text: spell(url),
            },
            None => Self::nowhere(raw),
        }
    }

    fn nowhere(raw: &str) -> Self {
        Self { text: raw.to_owned(), place: None, port: None }
    }
}

impl Pattern {
    /// Reads a pattern.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text == "*" {
            return Self::Any;
        }
        match text.strip_prefix("*.") {
            Some(below) => Self::Below(fold_host(below)),
            None => Self::Exact(fold_host(text)),
        }
    }

    /// Whether it covers a place, given as `host` or `host/path`.
    #[must_use]
    pub fn covers(&self, domain: &str) -> bool {
        self.covers_place(&Place::new(domain))
    }

    /// Whether it covers all that another pattern covers.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Any) => *self == Self::Any,
            (Self::Exact(_), Self::Below(_)) => false,
            (Self::Exact(wide), Self::Exact(narrow)) => wide == narrow || self.covers(narrow),
            (Self::Any | Self::Below(_), Self::Below(host) | Self::Exact(host)) => self.covers(host),
        }
    }

    fn covers_place(&self, place: &Place) -> bool {
        let host = place.host();
        match self {
            Self::Any => !host.is_empty() && place.kind == HostKind::Public,
            Self::Below(parent) => place.kind != HostKind::Address && is_below(host, parent),
            Self::Exact(wanted) if wanted.contains('/') => *wanted == place.domain,
            Self::Exact(wanted) => !wanted.is_empty() && wanted == host,
        }
    }
}

impl Place {
    /// A place in the one spelling: lower case up to the first slash, without the dot that ends a full name.
    fn new(domain: &str) -> Self {
        let domain = fold_host(domain);
        let host = domain.find('/').unwrap_or(domain.len());
        let kind = HostKind::of(domain.get(..host).unwrap_or_default());
        Self { domain, host, kind }
    }

    /// `host/owner/repository`, without the `.git` and the slashes that mean nothing.
    fn below(host: CleanHost, path: &str) -> Self {
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
        let CleanHost { name: mut domain, kind } = host;
        let host = domain.len();
        if !path.is_empty() {
            domain.push('/');
            domain.push_str(path);
        }
        Self { domain, host, kind }
    }

    fn host(&self) -> &str {
        self.domain.get(..self.host).unwrap_or_default()
    }
}

impl HostKind {
    fn of(host: &str) -> Self {
        if is_ip_address(host) { Self::Address } else { Self::of_name(host) }
    }

    fn of_name(host: &str) -> Self {
        const LOCAL: [&str; 3] = ["localhost", "internal", "local"];
        if LOCAL.iter().any(|suffix| is_below(host, suffix)) { Self::Local } else { Self::Public }
    }
}

impl Gates {
    /// Gates from the patterns of each server.
    #[must_use]
    pub fn new(servers: &BTreeMap<String, Vec<String>>) -> Self {
        let mut gates = Self::default();
        for (server, texts) in servers {
            if let Some(gate) = gates.servers.entry(server) {
                *gate = Gate::new(texts);
            }
        }
        gates
    }

    /// Whether a server may reach a place without a question.
    #[must_use]
    pub fn admits(&self, server: &str, destination: &Destination) -> bool {
        self.servers.get(server).is_none_or(|gate| gate.admits(destination))
    }
}

impl Gate {
    fn new(texts: &[String]) -> Self {
        let with_port = |text: &String| {
            let (host, port) = text.rsplit_once(':')?;
            // What stands behind the last colon of an address without brackets is a part of it.
            let is_host = !host.contains(':') || host.ends_with(']');
            Some((Pattern::parse(host), port.parse().ok().filter(|_| is_host)?))
        };
        Self {
            hosts: texts.iter().map(|text| Pattern::parse(text)).collect(),
            ports: texts.iter().filter_map(with_port).collect(),
        }
    }

    fn admits(&self, destination: &Destination) -> bool {
        let on_port = |(pattern, port): &(Pattern, u16)| {
            destination.port == Some(*port)
                && destination.place.as_ref().is_some_and(|place| pattern.covers_place(place))
        };
        self.hosts.cover(destination) || self.ports.iter().any(on_port)
    }
}

/// Whether a host is an IP address, in any notation that a resolver takes.
#[must_use]
pub fn is_ip_address(host: &str) -> bool {
    host.contains(':') || matches!(Host::parse(host), Ok(Host::Ipv4(_) | Host::Ipv6(_)))
}

/// The port of a scheme that the parser of URLs knows nothing of.
fn usual_port(scheme: &str) -> Option<u16> {
    match scheme {
        "ssh" => Some(SSH),
        "git" => Some(9418),
        _ => None,
    }
}

fn is_below(host: &str, parent: &str) -> bool {
    !parent.is_empty()
        && host
            .strip_suffix(parent)
            .is_some_and(|rest| rest.is_empty() || (rest.len() > 1 && rest.ends_with('.')))
}

fn host_of(url: &Url) -> Option<CleanHost> {
    match url.host()? {
        // The parser of the URL has made the host canonical, but for the dot that may end it and for foreign schemes.
        Host::Domain(name) if url.is_special() && !name.ends_with('.') => CleanHost::named(name.to_owned()),
        Host::Domain(name) => CleanHost::parse(name),
        Host::Ipv4(address) => Some(CleanHost::address(address.to_string())),
        Host::Ipv6(address) => Some(CleanHost::address(format!("[{address}]"))),
    }
}

/// A host in the one spelling, addresses in plain notation.
struct CleanHost {
    name: String,
    kind: HostKind,
}

impl CleanHost {
    fn parse(host: &str) -> Option<Self> {
        match Host::parse(host.trim_end_matches('.')) {
            // A dot in another script is a dot only now.
            Ok(Host::Domain(name)) if name.ends_with('.') => Self::parse(&name),
            Ok(Host::Domain(name)) => Self::named(name),
            Ok(Host::Ipv4(address)) => Some(Self::address(address.to_string())),
            Ok(Host::Ipv6(address)) => Some(Self::address(format!("[{address}]"))),
            Err(_) => None,
        }
    }

    fn named(name: String) -> Option<Self> {
        let kind = HostKind::of_name(&name);
        (!name.is_empty()).then_some(Self { name, kind })
    }

    fn address(name: String) -> Self {
        Self { name, kind: HostKind::Address }
    }
}

/// Lower case up to the first slash, without the dot that ends a full name.
fn fold_host(domain: &str) -> String {
    match domain.split_once('/') {
        Some((host, path)) => format!("{}/{path}", host.trim_end_matches('.').to_lowercase()),
        None => domain.trim_end_matches('.').to_lowercase(),
    }
}

/// The normalized spelling. A bare host has no slash, however it is written.
fn spell(url: Url) -> String {
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let has_host = url.host_str().is_some_and(|host| !host.is_empty());
    let mut text = String::from(url);
    if bare && has_host && text.ends_with('/') {
        text.pop();
    }
    text
}
