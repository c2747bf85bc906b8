//! Server addresses, and their comparison with an organization's patterns.

use crate::Server;
use percent_encoding::percent_decode_str;
use url::Url;

/// Returns the address of a remote server, or all addresses in the command line of a local one, which may be a bridge
/// to a remote server.
pub(super) fn addresses(server: &Server) -> Vec<Address> {
    match &server.remote {
        Some(remote) => vec![Address::from_url(remote.url())],
        None => {
            let words = server
                .args
                .iter()
                .flat_map(|word| word.split(|c: char| c.is_whitespace() || "'\"".contains(c)));
            let urls = words.flat_map(possible_urls).filter(|url| matches!(url.scheme(), "http" | "https"));
            urls.map(|url| Address::from_url(&url)).collect()
        }
    }
}

/// Returns the URLs that start anywhere in a word. Each URL is also returned without the part after the first
/// separator.
fn possible_urls(word: &str) -> Vec<Url> {
    let lower = word.to_ascii_lowercase();
    let starts = lower.match_indices("http").filter_map(|(at, _)| word.get(at..));
    let texts =
        starts.flat_map(|text| [Some(text), text.split([',', ';', '|', '&', ')', ']', '}', '>']).next()]);
    texts.flatten().filter_map(|text| Url::parse(text).ok()).collect()
}

/// Server address in a normalized form so that equivalent spellings are equal.
pub(super) struct Address {
    scheme: String,
    host: String,
    port: Option<u16>,
    path: String,
    /// Path as it is sent.
    raw_path: String,
    is_prefix: bool,
}

impl Address {
    pub(super) fn from_url(url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
        let path = normal_path(url.path());
        let (scheme, raw_path) = (url.scheme().to_owned(), url.path().to_owned());
        Self { scheme, host, port: url.port_or_known_default(), path, raw_path, is_prefix: false }
    }

    pub(super) fn from_pattern(pattern: &str) -> Option<Self> {
        let (start, is_prefix) = pattern.strip_suffix('*').map_or((pattern, false), |start| (start, true));
        let url = Url::parse(start).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let is_plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        let is_plain = is_plain && url.query().is_none() && url.has_host();
        is_plain.then(|| {
            let mut address = Self { is_prefix, ..Self::from_url(&url) };
            if is_prefix && url.path().ends_with('/') && !address.path.ends_with('/') {
                address.path.push('/');
            }
            address
        })
    }

    /// Returns `true` if requests to a URL are certainly sent to an address that this pattern matches. The server
    /// decides what an encoded path or a query means.
    pub(super) fn certainly_covers(&self, url: &Url) -> bool {
        let other = Self::from_url(url);
        let is_plain = other.path == other.raw_path || format!("{}/", other.path) == other.raw_path;
        let is_same_path = is_plain || (!self.is_prefix && self.raw_path == other.raw_path);
        let is_same_query = self.is_prefix || url.query().is_none();
        let is_same_origin = self.scheme == other.scheme && self.port == other.port;
        is_same_origin && is_same_path && is_same_query && self.covers(&other)
    }

    /// Returns `true` if this pattern matches an address in any spelling. Ignores the scheme.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let host_matches = match self.host.strip_prefix("*.") {
            Some(parent) => other.host.strip_suffix(parent).is_some_and(|child| child.ends_with('.')),
            None => self.host == other.host,
        };
        let explicit_port = |address: &Self| address.port.filter(|port| ![80, 443].contains(port));
        let path_matches = match self.is_prefix {
            true => format!("{}/", other.path).starts_with(&self.path),
            false => self.path == other.path,
        };
        host_matches && explicit_port(self) == explicit_port(other) && path_matches
    }
}

/// Returns a path without percent-encoding, empty segments, `.`, `..` and a trailing slash.
fn normal_path(path: &str) -> String {
    let text = percent_decode_str(path).decode_utf8_lossy();
    let mut segments: Vec<&str> = Vec::new();
    for segment in text.split(['/', '\\']) {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use crate::managed::server_pattern::tests::{address, server, words};
    use serde_json::json;

    #[test]
    fn addresses_are_compared_by_their_parts() {
        let remote = |url: &str| server(&json!({ "url": url }));
        let exact = address("https://MCP.example.com/sse");
        for url in [
            "https://mcp.example.com/sse",
            "https://MCP.example.com:443/sse/",
            "https://mcp.example.com./sse#y",
            "https://mcp.example.com/a/%2e%2e/sse",
        ] {
            assert!(exact.denies(&remote(url)) && exact.allows(&remote(url)), "{url}");
        }
        // The request contains the original path, port and query.
        for url in [
            "https://mcp.example.com/sse?x=1",
            "https://mcp.example.com//./%73se",
            "https://mcp.example.com//sse",
            "https://mcp.example.com:80/sse",
            "https://mcp.example.com/a/..%2fsse",
        ] {
            assert!(exact.denies(&remote(url)) && !exact.allows(&remote(url)), "{url}");
        }
        for url in ["https://mcp.example.com.evil.example/sse", "https://mcp.example.com/other"] {
            assert!(!exact.denies(&remote(url)) && !exact.allows(&remote(url)), "{url}");
        }
        let host = address("https://mcp.example.com*");
        assert!(host.allows(&remote("https://mcp.example.com/sse")));
        assert!(!host.allows(&remote("https://mcp.example.com.evil.example/sse")));
        let folder = address("https://mcp.example.com/a/*");
        assert!(folder.allows(&remote("https://mcp.example.com/a/b")));
        assert!(folder.allows(&remote("https://mcp.example.com/a/b?x=1")));
        for url in ["a/..%2fb", "b/..%2fa/x", "a/..%252fb", "b%2f..%2fa/x"] {
            assert!(!folder.allows(&remote(&format!("https://mcp.example.com/{url}"))), "{url}");
        }
        let encoded = address("https://mcp.example.com/a%20b");
        assert!(encoded.allows(&remote("https://mcp.example.com/a b")));
        let children = address("https://*.example.com/*");
        assert!(children.denies(&remote("https://mcp.example.com/sse")));
        assert!(!children.denies(&remote("https://evilexample.com/sse")));
        for arguments in [
            "https://mcp.example.com/sse",
            "--url=http://mcp.example.com/sse",
            "HTTPS://mcp.example.com/sse",
            "--http-url=https://mcp.example.com/sse",
            "https://a.example,hTTps://mcp.example.com/sse,https://b.example",
            "--urls=[https:mcp.example.com/sse]",
        ] {
            assert!(exact.denies(&words(&format!("npx mcp-remote {arguments}"))), "{arguments}");
        }
        for arguments in ["HTTPS://mcp.example.com/other", "--http-url=https://other.example/sse", "http"] {
            assert!(!exact.denies(&words(&format!("npx mcp-remote {arguments}"))), "{arguments}");
        }
        assert!(!exact.allows(&words("npx mcp-remote https://mcp.example.com/sse")));
    }
}
