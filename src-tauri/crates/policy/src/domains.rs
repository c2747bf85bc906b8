//! Hosts and repositories: where a URL or a git remote leads, and the patterns that cover such places.
//!
//! - A place is `host` or `host/owner/repository`; hosts are lower case without a trailing dot.
//! - `*` covers any named public host; `*.d` covers `d` and what is below it; a host covers any repository on it; a
//!   pattern with `/` is exact.
//! - A pattern of a gate that ends in a port covers that port alone; without one it covers every port.
//! - What has no place (a foreign scheme, no host, not a URL) is covered by nothing, and neither is a folder of this
//!   machine, of which it is known that no host is asked for it.

mod host;
mod pattern;
mod patterns;

pub use host::is_ip_address;
pub use pattern::{HostPattern, PatternError};
pub use patterns::HostPatterns;

use crate::Role;
use host::{CleanHost, HostKind};
use std::collections::BTreeMap;
use url::Url;

/// The place that a value of a URL role leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    text: String,
    /// As it was written, where that is another spelling and may be sent.
    written: Option<String>,
    site: Option<Site>,
    port: Option<u16>,
}

/// The port of ssh.
const SSH: u16 = 22;

/// A host, or a repository on one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Site {
    domain: String,
    /// The part of `domain` that is the host.
    host: usize,
    kind: HostKind,
}

/// The hosts each server may reach without a question. A server that is not listed has no gate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AllowedHosts {
    servers: BTreeMap<String, Gate>,
}

/// The hosts and the single ports that one server may reach.
#[derive(Debug, Clone, PartialEq, Default)]
struct Gate {
    hosts: HostPatterns,
    ports: Vec<(HostPattern, u16)>,
}

impl Destination {
    /// Understands the value of a URL role.
    #[must_use]
    pub fn parse(role: Role, raw: &str) -> Self {
        if role == Role::GitRemoteUrl { Self::remote(raw) } else { Self::web(raw) }
    }

    /// The spelling that is sent: as it was written where every reader finds the judged host and port in that, else the
    /// canonical one.
    #[must_use]
    pub fn sent(&self) -> &str {
        self.written.as_deref().unwrap_or(&self.text)
    }

    /// The canonical spelling.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place, where there is one on a host: `host` for the web, `host/path` for a git remote.
    #[must_use]
    pub fn domain(&self) -> Option<&str> {
        self.site.as_ref().map(|site| site.domain.as_str()).filter(|domain| !domain.is_empty())
    }

    /// The host and the port that a connection there goes to, where both are known.
    #[must_use]
    pub fn host_and_port(&self) -> Option<(&str, u16)> {
        Some((self.site.as_ref()?.host(), self.port?))
    }

    fn web(raw: &str) -> Self {
        let Ok(url) = Url::parse(raw) else { return Self::nowhere(raw) };
        let site = match url.scheme() {
            "http" | "https" => CleanHost::of(&url).map(|host| Site::below(host, "")),
            "file" if url.host().is_none() => Some(Site::here()),
            _ => None,
        };
        let port = url.port_or_known_default();
        let reads_the_same = reads_the_same(raw, &url);
        let text = spell(url);
        let written = (reads_the_same && raw != text).then(|| raw.to_owned());
        Self { site, port, text, written }
    }

    fn remote(raw: &str) -> Self {
        if raw.contains("://") {
            return Self::remote_url(raw);
        }
        if ["/", "./", "../"].iter().any(|start| raw.starts_with(start)) {
            return Self { text: raw.to_owned(), site: Some(Site::here()), port: None, written: None };
        }
        // No name that git knows and no address has a blank in it.
        if raw.contains(char::is_whitespace) {
            return Self::unknown(raw);
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
        let site = CleanHost::parse(host).map(|host| Site::below(host, path));
        Self { text: raw.to_owned(), site, port: Some(SSH), written: None }
    }

    /// Only what leads somewhere is normalized: anything else git could take for something else then. A place is known only
    /// if it is plain as it is written and as it is sent, where the parser of URLs adds escapes.
    fn remote_url(raw: &str) -> Self {
        let Ok(url) = Url::parse(raw) else { return Self::nowhere(raw) };
        let is_web = matches!(url.scheme(), "http" | "https");
        let known = is_web || matches!(url.scheme(), "ssh" | "git");
        let site = CleanHost::of(&url).map(|host| Site::below(host, url.path()));
        let port = url.port_or_known_default().or_else(|| usual_port(url.scheme()));
        let text = spell(url);
        match site.filter(|_| known && is_plain(raw, is_web) && is_plain(&text, is_web)) {
            Some(site) => Self { text, site: Some(site), port, written: None },
            None => Self::nowhere(raw),
        }
    }

    /// An address that nobody knows, and what is said instead.
    pub(crate) fn unknown(said: &str) -> Self {
        let site = Site { domain: String::new(), host: 0, kind: HostKind::Odd };
        Self { text: said.to_owned(), site: Some(site), port: None, written: None }
    }

    fn nowhere(raw: &str) -> Self {
        Self { text: raw.to_owned(), site: None, port: None, written: None }
    }
}

impl Site {
    /// A file or folder of this machine, which no host is asked for.
    fn here() -> Self {
        Self { domain: String::new(), host: 0, kind: HostKind::Local }
    }

    /// A place that is given as `host` or `host/path`.
    fn new(domain: &str) -> Self {
        let (host, path) = domain.split_once('/').unwrap_or((domain, ""));
        Self::below(CleanHost::spelled(host), path)
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

    /// Returns `true` if the host is a name, so that others may be below it.
    fn has_name(&self) -> bool {
        matches!(self.kind, HostKind::Public | HostKind::Local)
    }

    fn host(&self) -> &str {
        self.domain.get(..self.host).unwrap_or_default()
    }
}

impl AllowedHosts {
    /// Gates from the patterns of each server.
    #[must_use]
    pub fn new(servers: &BTreeMap<String, Vec<String>>) -> Self {
        let servers = servers.iter().map(|(server, texts)| (server.clone(), Gate::new(texts)));
        Self { servers: servers.collect() }
    }

    /// Returns `true` if a server may reach a place without a question.
    #[must_use]
    pub fn admits(&self, server: &str, destination: &Destination) -> bool {
        self.servers.get(server).is_none_or(|gate| gate.admits(destination))
    }

    /// Returns `true` if it is certain that an address is not meant to be open to a server. It is not certain of one that
    /// nobody knows, of a name of this machine where every host is open, nor of a foreign address that names an open host.
    pub(crate) fn understand(&self, server: &str, destination: &Destination) -> bool {
        let Some(gate) = self.servers.get(server) else { return true };
        let opens_all = || gate.hosts.all().contains(&HostPattern::Any);
        match destination.site.as_ref().map(|site| site.kind) {
            Some(HostKind::Public | HostKind::Address) => true,
            Some(HostKind::Local) => !opens_all(),
            Some(HostKind::Odd) => false,
            None => {
                let url = Url::parse(&destination.text).ok();
                let names =
                    url.as_ref().and_then(Url::host_str).is_some_and(|host| gate.hosts.cover_host(host));
                !opens_all() && !names
            }
        }
    }
}

impl Gate {
    fn new(texts: &[String]) -> Self {
        let with_port = |text: &String| {
            let (host, port) = text.rsplit_once(':')?;
            // What stands behind the last colon of an address without brackets is a part of it.
            let is_host = !host.contains(':') || host.ends_with(']');
            Some((HostPattern::parse(host), port.parse().ok().filter(|_| is_host)?))
        };
        Self {
            hosts: texts.iter().map(|text| HostPattern::parse(text)).collect(),
            ports: texts.iter().filter_map(with_port).collect(),
        }
    }

    fn admits(&self, destination: &Destination) -> bool {
        let on_port = |(pattern, port): &(HostPattern, u16)| {
            destination.port == Some(*port)
                && destination.site.as_ref().is_some_and(|site| pattern.covers_site(site))
        };
        self.hosts.cover(destination) || self.ports.iter().any(on_port)
    }
}

/// Returns `true` if git, the programs it starts and the parser of URLs agree where the host of a remote begins and ends. For
/// `ssh` and `git` git takes the escapes apart before it looks for the host, and only a slash ends it; to `curl` a backslash
/// is no slash.
fn is_plain(remote: &str, is_web: bool) -> bool {
    let rest = remote.split_once("://").map_or("", |(_, rest)| rest);
    let ends: &[char] = if is_web { &['/', '?', '#'] } else { &['/'] };
    let authority = rest.split(ends).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#' | '\\');
    let escaped = if is_web { host } else { authority };
    !authority.contains(is_odd) && !escaped.contains('%')
}

/// Returns `true` if every reader of an address finds what was parsed: the text is plain, and its host and port are written as
/// they are. All behind them, and an address that is not of the web, is judged by nobody.
fn reads_the_same(raw: &str, url: &Url) -> bool {
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
    let as_read = [url.port(), default].into_iter().flatten().map(|port| format!("{host}:{port}"));
    let mut spellings = as_read.chain(default.map(|_| host.to_owned()));
    !host.is_empty() && spellings.any(|spelling| spelling.eq_ignore_ascii_case(authority))
}

/// The port of a scheme that the parser of URLs knows nothing of.
fn usual_port(scheme: &str) -> Option<u16> {
    match scheme {
        "ssh" => Some(SSH),
        "git" => Some(9418),
        _ => None,
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
