//! Address and HTTP headers of a remote server.
//!
//! - Unencrypted connections are limited to this computer and its network.
//! - The address is displayed without its query, because some providers put API keys in the query.

use super::entry_error::RemoteEntryError;
use hyper::header::{self, HeaderName, HeaderValue};
use ironcurtain_egress::{Host, HostPort, HostRules, address};
use ironcurtain_secrets as secrets;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use url::Url;

/// HTTP headers that the transport sets and that an entry must not set.
const RESERVED_HEADERS: [HeaderName; 7] = [
    header::ACCEPT,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
    header::TRANSFER_ENCODING,
    HeaderName::from_static("last-event-id"),
];

/// Prefix of the headers that the MCP specification defines.
const PROTOCOL_PREFIX: &str = "mcp-";

/// A server that is reached over streamable HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteServer {
    url: Url,
    target: HostPort,
    headers: BTreeMap<String, String>,
    allowed_addresses: Vec<String>,
    uses_login: bool,
}

impl RemoteServer {
    /// Validates the values of an entry and creates the server.
    pub(super) fn new(
        url: &str,
        headers: BTreeMap<String, String>,
        allowed_addresses: Vec<String>,
    ) -> Result<Self, RemoteEntryError> {
        let parsed = Url::parse(url).map_err(|_| RemoteEntryError::NoUrl(without_query(url)))?;
        if !parsed.username().is_empty() || parsed.password().is_some() {
            let host = parsed.host_str().unwrap_or_default().to_owned();
            return Err(RemoteEntryError::Login(host));
        }
        let (host, port) = parsed
            .host_str()
            .and_then(|host| Some((host, parsed.port_or_known_default()?)))
            .ok_or_else(|| RemoteEntryError::NoUrl(without_query(url)))?;
        let host = Host::parse(host).map_err(|_| RemoteEntryError::NoUrl(without_query(url)))?;
        match parsed.scheme() {
            "https" => {}
            "http" if is_local(&host) => {}
            "http" => return Err(RemoteEntryError::Unencrypted(host.to_string())),
            _ => return Err(RemoteEntryError::NoUrl(without_query(url))),
        }
        for (name, value) in &headers {
            checked_header(name, value)?;
        }
        let uses_login = !headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let target = HostPort { host, port };
        let server = Self { url: parsed, target, headers, allowed_addresses, uses_login };
        server.rules()?;
        Ok(server)
    }

    /// Returns the address with its query.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the host and port of the address.
    #[must_use]
    pub fn target(&self) -> &HostPort {
        &self.target
    }

    /// Returns the headers to send with every request, as configured. A value may refer to a secret.
    #[must_use]
    pub fn headers(&self) -> &BTreeMap<String, String> {
        &self.headers
    }

    /// Returns the non-public addresses that the server's host or its authorization server may have.
    #[must_use]
    pub fn allowed_addresses(&self) -> Vec<IpAddr> {
        let parsed = self.allowed_addresses.iter().filter_map(|text| HostPort::parse(text, Some(0)).ok());
        let addresses = parsed.filter_map(|listed| match listed.host {
            Host::Address(address) => Some(address),
            Host::Name(_) => None,
        });
        addresses.collect()
    }

    /// Returns `true` if the user's login is sent with requests, because the entry sets no `Authorization` header.
    #[must_use]
    pub fn uses_login(&self) -> bool {
        self.uses_login
    }

    /// Returns the server without headers that refer to a secret, and without the user's login.
    pub(super) fn without_secrets(mut self) -> Self {
        self.uses_login = false;
        self.headers.retain(|_, value| secrets::secret_reference_in_header(value) == Ok(None));
        self
    }

    /// Returns proxy rules that allow only this host and the private addresses that the entry permits.
    ///
    /// # Errors
    /// Returns an error if the host or an address is invalid.
    pub fn rules(&self) -> Result<HostRules, RemoteEntryError> {
        let port = self.target.port;
        let addresses = self.allowed_addresses.iter();
        let addresses = addresses.map(|address| match HostPort::parse(address, Some(port)) {
            Ok(HostPort { host: host @ Host::Address(_), .. }) => Ok(HostPort { host, port }.to_string()),
            Ok(_) | Err(_) => Err(RemoteEntryError::Address(address.clone())),
        });
        let hosts = addresses.collect::<Result<Vec<_>, _>>()?;
        let hosts = std::iter::once(self.target.to_string()).chain(hosts);
        Ok(HostRules::new(hosts, None::<&str>, false)?)
    }
}

/// Writes the address without its query.
impl fmt::Display for RemoteServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_query(self.url.as_str()))
    }
}

/// Omits the header values, because they can be credentials.
impl fmt::Debug for RemoteServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("RemoteServer").field("url", &self.to_string()).field("headers", &names).finish()
    }
}

/// Returns `true` if the configured host is this computer or on its network.
pub(super) fn is_local(host: &Host) -> bool {
    match host {
        Host::Address(address) => address::scope(*address).is_some(),
        Host::Name(name) => name == "localhost",
    }
}

fn without_query(url: &str) -> String {
    match url.split_once(['?', '#']) {
        Some((before, _)) => format!("{before}?..."),
        None => url.to_owned(),
    }
}

pub(super) fn checked_header(name: &str, value: &str) -> Result<(), RemoteEntryError> {
    let parsed = HeaderName::try_from(name).map_err(|_| RemoteEntryError::HeaderName(name.to_owned()))?;
    if RESERVED_HEADERS.contains(&parsed) || parsed.as_str().starts_with(PROTOCOL_PREFIX) {
        return Err(RemoteEntryError::OurHeader(name.to_owned()));
    }
    HeaderValue::from_str(value).map_err(|_| RemoteEntryError::HeaderValue(name.to_owned()))?;
    secrets::secret_reference_in_header(value)
        .map_err(|source| RemoteEntryError::Secret { header: name.to_owned(), source })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(url: &str) -> Result<RemoteServer, String> {
        RemoteServer::new(url, BTreeMap::new(), Vec::new()).map_err(|e| e.to_string())
    }

    #[test]
    fn unencrypted_addresses_must_be_local() {
        for taken in [
            "https://mcp.example.com/mcp",
            "http://localhost:3001/mcp",
            "http://127.0.0.1:1/",
            "http://[::1]:9/mcp",
        ] {
            assert_eq!(remote(taken).unwrap().to_string(), taken);
        }
        for (refused, why) in [
            ("http://mcp.example.com/mcp", "use `https://`"),
            ("http://1.1.1.1/mcp", "use `https://`"),
            ("ftp://mcp.example.com/", "is not a server address"),
            ("mcp.example.com", "is not a server address"),
            ("https://me:pw@mcp.example.com/", "that leads to `mcp.example.com`"),
            ("https://good.example@evil.example/mcp", "that leads to `evil.example`"),
            ("https://intranet/mcp", "has no dot"),
        ] {
            assert!(remote(refused).unwrap_err().contains(why), "{refused}: {:?}", remote(refused));
        }
    }

    #[test]
    fn a_key_in_the_address_is_not_displayed() {
        let server = remote("https://mcp.example.com/mcp?key=s3cret").unwrap();
        assert_eq!(server.to_string(), "https://mcp.example.com/mcp?...");
        assert!(!format!("{server:?}").contains("s3cret"));
        assert_eq!(server.url().query(), Some("key=s3cret"));
        assert!(!remote("nothing?key=s3cret").unwrap_err().contains("s3cret"));
    }

    #[test]
    fn transport_headers_cannot_be_set() {
        let with = |name: &str, value: &str| {
            let headers = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            RemoteServer::new("https://a.example/", headers, Vec::new()).map_err(|e| e.to_string())
        };
        assert!(with("Authorization", "Bearer keyring:github").is_ok());
        assert!(!format!("{:?}", with("X-Key", "s3cret").unwrap()).contains("s3cret"));
        for name in ["Host", "Mcp-Session-Id", "content-type", "MCP-Anything"] {
            assert!(with(name, "x").unwrap_err().contains("is set by IronCurtain"), "{name}");
        }
        assert!(with("a b", "x").unwrap_err().contains("is not a valid header name"));
        let broken = with("X-Key", "s3\ncret").unwrap_err();
        assert!(
            broken.contains("has a character that is not allowed in a header") && !broken.contains("cret"),
            "{broken}"
        );
        assert!(with("X", "keyring:a b").unwrap_err().contains("`headers.X`: "));
    }

    #[test]
    fn non_public_addresses_must_be_listed() {
        let with = |addresses: &[&str]| {
            let addresses = addresses.iter().map(|a| (*a).to_owned()).collect();
            RemoteServer::new("https://mcp.corp.example/", BTreeMap::new(), addresses)
        };
        let target = HostPort::parse("mcp.corp.example:443", None).unwrap();
        let opens = |addresses: &[&str], address: &str| {
            with(addresses).unwrap().rules().unwrap().lists_address(&target, address.parse().unwrap())
        };
        assert!(!opens(&[], "10.1.2.3"));
        assert!(opens(&["10.1.2.3"], "10.1.2.3") && !opens(&["10.1.2.3"], "10.1.2.4"));
        assert!(opens(&["[fd00::1]"], "fd00::1"));
        assert!(with(&["corp.example"]).unwrap_err().to_string().contains("is not an IP address"));
    }
}
