//! Hosts and repositories: targets of URLs and git remotes, and the patterns that cover them.
//!
//! - A target is `host` or `host/owner/repository`. Hosts are lower case without a trailing dot.
//! - `*` covers every public host name, `*.d` covers `d` and all its subdomains, a host covers every repository on
//!   it, and a pattern with `/` covers exactly that repository.
//! - In a server's allowed hosts, a pattern with a port covers only that port. A pattern without one covers every
//!   port.
//! - No pattern covers a local folder or a value without a target (an unsupported scheme, no host, not a URL).

mod host;
mod pattern;
mod patterns;

pub use host::is_ip_address;
pub use pattern::{HostPattern, PatternError};
pub use patterns::HostPatterns;

use crate::Role;
use host::{CanonicalHost, HostKind};
use std::collections::BTreeMap;
use url::Url;

/// Network target of a value with a URL role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    text: String,
    /// The address as the client wrote it, if it differs from `text` and can be sent unchanged.
    written: Option<String>,
    target: Option<HostTarget>,
    port: Option<u16>,
}

/// Default SSH port.
const SSH: u16 = 22;

/// A host, or a repository on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostTarget {
    domain: String,
    /// Length of the host part of `domain`.
    host: usize,
    kind: HostKind,
}

/// Hosts that each server may reach without approval. A server that is not listed may reach any host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AllowedHosts {
    servers: BTreeMap<String, ServerHosts>,
}

/// Hosts that one server may reach without approval, on every port or on specific ports.
#[derive(Debug, Clone, PartialEq, Default)]
struct ServerHosts {
    hosts: HostPatterns,
    ports: Vec<(HostPattern, u16)>,
}

impl Destination {
    /// Parses a value with the given URL role.
    #[must_use]
    pub fn parse(role: Role, raw: &str) -> Self {
        if role == Role::GitRemoteUrl { Self::parse_remote(raw) } else { Self::parse_web(raw) }
    }

    /// Returns the address to send: the address as written if every parser finds the judged host and port in it,
    /// otherwise the canonical address.
    #[must_use]
    pub fn address_to_send(&self) -> &str {
        self.written.as_deref().unwrap_or(&self.text)
    }

    /// Returns the canonical address.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns `host` for a web URL, `host/path` for a git remote, or `None` if the target is not on a host.
    #[must_use]
    pub fn domain(&self) -> Option<&str> {
        self.target.as_ref().map(|target| target.domain.as_str()).filter(|domain| !domain.is_empty())
    }

    /// Returns the host and port to connect to, or `None` if either is unknown.
    #[must_use]
    pub fn host_and_port(&self) -> Option<(&str, u16)> {
        Some((self.target.as_ref()?.host(), self.port?))
    }

    fn parse_web(raw: &str) -> Self {
        let Ok(url) = Url::parse(raw) else { return Self::without_target(raw) };
        let target = match url.scheme() {
            "http" | "https" => CanonicalHost::from_url(&url).map(|host| HostTarget::on_host(host, "")),
            "file" if url.host().is_none() => Some(HostTarget::local()),
            _ => None,
        };
        let port = url.port_or_known_default();
        let parses_unambiguously = parses_unambiguously(raw, &url);
        let text = url_text(url);
        let written = (parses_unambiguously && raw != text).then(|| raw.to_owned());
        Self { target, port, text, written }
    }

    fn parse_remote(raw: &str) -> Self {
        if raw.contains("://") {
            return Self::parse_remote_url(raw);
        }
        if ["/", "./", "../"].iter().any(|start| raw.starts_with(start)) {
            return Self {
                text: raw.to_owned(),
                target: Some(HostTarget::local()),
                port: None,
                written: None,
            };
        }
        // Neither addresses nor remote names contain whitespace.
        if raw.contains(char::is_whitespace) {
            return Self::unknown(raw);
        }
        // Git runs a helper program for `transport::address`, and ssh would parse a leading dash as
        // an option.
        let Some((login, path)) = raw.split_once(':').filter(|(login, path)| {
            !login.is_empty()
                && !login.contains(['/', '['])
                && !login.starts_with('-')
                && !path.starts_with(':')
        }) else {
            return Self::without_target(raw);
        };
        let host = login.rsplit_once('@').map_or(login, |(_, host)| host);
        let target = CanonicalHost::parse(host).map(|host| HostTarget::on_host(host, path));
        Self { text: raw.to_owned(), target, port: Some(SSH), written: None }
    }

    /// Parses a git remote's address. The target is known only if the address is plain both as written and after the
    /// URL parser has escaped it. Any other address is left unchanged, because git could parse it differently.
    fn parse_remote_url(raw: &str) -> Self {
        let Ok(url) = Url::parse(raw) else { return Self::without_target(raw) };
        let is_web = matches!(url.scheme(), "http" | "https");
        let known = is_web || matches!(url.scheme(), "ssh" | "git");
        let target = CanonicalHost::from_url(&url).map(|host| HostTarget::on_host(host, url.path()));
        let port = url.port_or_known_default().or_else(|| default_port(url.scheme()));
        let text = url_text(url);
        match target
            .filter(|_| known && is_unambiguous_remote(raw, is_web) && is_unambiguous_remote(&text, is_web))
        {
            Some(target) => Self { text, target: Some(target), port, written: None },
            None => Self::without_target(raw),
        }
    }

    /// Creates an address with an unknown target. `text_to_show` is its text for display.
    pub(crate) fn unknown(text_to_show: &str) -> Self {
        let target = HostTarget { domain: String::new(), host: 0, kind: HostKind::Invalid };
        Self { text: text_to_show.to_owned(), target: Some(target), port: None, written: None }
    }

    fn without_target(raw: &str) -> Self {
        Self { text: raw.to_owned(), target: None, port: None, written: None }
    }
}

impl HostTarget {
    /// Returns the target for a local file or folder, which has no host.
    fn local() -> Self {
        Self { domain: String::new(), host: 0, kind: HostKind::Local }
    }

    /// Creates a target from text of the form `host` or `host/path`.
    fn parse(domain: &str) -> Self {
        let (host, path) = domain.split_once('/').unwrap_or((domain, ""));
        Self::on_host(CanonicalHost::parse_lenient(host), path)
    }

    /// Creates the target `host/owner/repository` without `.git` and redundant slashes, or `host`
    /// if the path is empty.
    fn on_host(host: CanonicalHost, path: &str) -> Self {
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
        let CanonicalHost { name: mut domain, kind } = host;
        let host = domain.len();
        if !path.is_empty() {
            domain.push('/');
            domain.push_str(path);
        }
        Self { domain, host, kind }
    }

    /// Returns `true` if the host is a name rather than an IP address. Only names can have subdomains.
    fn has_name(&self) -> bool {
        matches!(self.kind, HostKind::Public | HostKind::Local)
    }

    fn host(&self) -> &str {
        self.domain.get(..self.host).unwrap_or_default()
    }
}

impl AllowedHosts {
    /// Creates the allowed hosts from the patterns of each server.
    #[must_use]
    pub fn new(servers: &BTreeMap<String, Vec<String>>) -> Self {
        let servers = servers.iter().map(|(server, texts)| (server.clone(), ServerHosts::new(texts)));
        Self { servers: servers.collect() }
    }

    /// Returns `true` if a server may reach a target without approval.
    #[must_use]
    pub fn allows(&self, server: &str, destination: &Destination) -> bool {
        self.servers.get(server).is_none_or(|server_hosts| server_hosts.allows(destination))
    }

    /// Returns `true` if it is certain whether a server's allowed hosts include an address. This is uncertain for an
    /// unknown address, for a local host name if the server may reach every host, and for an address with an
    /// unsupported scheme if its host is allowed or the server may reach every host.
    pub(crate) fn is_certain(&self, server: &str, destination: &Destination) -> bool {
        let Some(server_hosts) = self.servers.get(server) else { return true };
        let allows_all = || server_hosts.hosts.all().contains(&HostPattern::Any);
        match destination.target.as_ref().map(|target| target.kind) {
            Some(HostKind::Public | HostKind::Address) => true,
            Some(HostKind::Local) => !allows_all(),
            Some(HostKind::Invalid) => false,
            None => {
                let url = Url::parse(&destination.text).ok();
                let names_allowed_host = url
                    .as_ref()
                    .and_then(Url::host_str)
                    .is_some_and(|host| server_hosts.hosts.covers_host(host));
                !allows_all() && !names_allowed_host
            }
        }
    }
}

impl ServerHosts {
    fn new(texts: &[String]) -> Self {
        let with_port = |text: &String| {
            let (host, port) = text.rsplit_once(':')?;
            // In an IPv6 address without brackets, the last colon does not introduce a port.
            let is_host = !host.contains(':') || host.ends_with(']');
            Some((HostPattern::parse(host), port.parse().ok().filter(|_| is_host)?))
        };
        Self {
            hosts: texts.iter().map(|text| HostPattern::parse(text)).collect(),
            ports: texts.iter().filter_map(with_port).collect(),
        }
    }

    fn allows(&self, destination: &Destination) -> bool {
        let on_port = |(pattern, port): &(HostPattern, u16)| {
            destination.port == Some(*port)
                && destination.target.as_ref().is_some_and(|target| pattern.covers_target(target))
        };
        self.hosts.covers(destination) || self.ports.iter().any(on_port)
    }
}

/// Returns `true` if git, the programs that it starts and the URL parser all find the same host in a remote. For
/// `ssh` and `git` URLs, git first decodes escapes, then takes everything up to the next slash as the host. `curl`
/// does not treat a backslash as a slash.
fn is_unambiguous_remote(remote: &str, is_web: bool) -> bool {
    let rest = remote.split_once("://").map_or("", |(_, rest)| rest);
    let authority_ends: &[char] = if is_web { &['/', '?', '#'] } else { &['/'] };
    let authority = rest.split(authority_ends).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#' | '\\');
    let escaped = if is_web { host } else { authority };
    !authority.contains(is_odd) && !escaped.contains('%')
}

/// Returns `true` if every parser finds the same host and port in an address: the address is printable ASCII, and its
/// host and port are in canonical form. The rest of the address is not checked. For non-web schemes, the host and port
/// are not checked either.
fn parses_unambiguously(raw: &str, url: &Url) -> bool {
    let Some((scheme, rest)) = raw.split_once(':') else { return false };
    if !raw.bytes().all(|byte| byte.is_ascii_graphic()) || !scheme.eq_ignore_ascii_case(url.scheme()) {
        return false;
    }
    if !url.is_special() {
        return true;
    }
    let Some(rest) = rest.strip_prefix("//") else { return false };
    let (authority, _) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let default = url.port().is_none().then(|| url.port_or_known_default()).flatten();
    let host = url.host_str().unwrap_or_default();
    let with_port = [url.port(), default].into_iter().flatten().map(|port| format!("{host}:{port}"));
    let mut spellings = with_port.chain(default.map(|_| host.to_owned()));
    !host.is_empty() && spellings.any(|spelling| spelling.eq_ignore_ascii_case(authority))
}

/// Returns the default port of a scheme that the URL parser does not know.
fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "ssh" => Some(SSH),
        "git" => Some(9418),
        _ => None,
    }
}

/// Converts a URL to text, without a trailing slash if the URL has no path.
fn url_text(url: Url) -> String {
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let has_host = url.host_str().is_some_and(|host| !host.is_empty());
    let mut text = String::from(url);
    if bare && has_host && text.ends_with('/') {
        text.pop();
    }
    text
}
