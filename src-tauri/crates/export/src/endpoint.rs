//! Address of a collector, and the headers to send to it.

use ironcurtain_secrets::{FillError, SecretStore, fill_headers};
use std::collections::BTreeMap;
use std::fmt;
use url::{Position, Url};
use zeroize::Zeroizing;

/// A collector's address, and the headers to send to it.
#[derive(Clone)]
pub struct Endpoint {
    url: Url,
    headers: Vec<(String, Zeroizing<String>)>,
}

/// Error returned when an endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address is not an HTTP URL.
    #[error("expected the `http` or `https` address of a collector, such as `https://otel.example.com:4318`")]
    Address,
    /// A secret in a header is not available.
    #[error("the export's {0}")]
    Secret(#[from] FillError),
}

impl Endpoint {
    /// Parses a base address. Requests go to `/v1/logs` and `/v1/metrics` below it. The header values are treated as
    /// secrets.
    ///
    /// # Errors
    /// Returns [`EndpointError::Address`] if `url` is not an HTTP URL.
    pub fn new(
        url: &str,
        headers: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, EndpointError> {
        let url = Url::parse(url).map_err(|_| EndpointError::Address)?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(EndpointError::Address);
        }
        let headers = headers.into_iter().map(|(name, value)| (name, Zeroizing::new(value))).collect();
        Ok(Self { url, headers })
    }

    /// Parses a base address like [`Self::new`] and inserts the secrets that the headers refer to.
    ///
    /// # Errors
    /// Returns [`EndpointError`] if the address is invalid or a secret is not available.
    pub async fn filled(
        url: &str,
        headers: &BTreeMap<String, String>,
        secrets: &SecretStore,
    ) -> Result<Self, EndpointError> {
        let headers = fill_headers(secrets, headers).await?.values;
        Self::new(url, headers.into_iter().map(|(name, value)| (name, value.reveal().to_owned())))
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns the host without the brackets of an IPv6 address, and the port.
    pub(crate) fn target(&self) -> (&str, u16) {
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        (host, self.url.port_or_known_default().unwrap_or(443))
    }

    /// Returns the host and port for the `Host` header.
    pub(crate) fn authority(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
    }

    /// Returns the path and query for a signal, such as `logs`.
    pub(crate) fn path(&self, signal: &str) -> String {
        let query = self.url.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}/v1/{signal}{query}", self.url.path().trim_end_matches('/'))
    }

    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Omits the query, which may contain an API key.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url[..Position::AfterPath])
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.to_string()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_below_the_base_address() {
        let path = |url: &str| Endpoint::new(url, []).unwrap().path("logs");
        assert_eq!(path("https://a.example"), "/v1/logs");
        assert_eq!(path("https://a.example/otlp/?key=k"), "/otlp/v1/logs?key=k");
        let endpoint =
            Endpoint::new("http://[::1]:4318/?key=s3cret", [("X".into(), "t0ken".into())]).unwrap();
        assert_eq!((endpoint.target(), endpoint.authority()), (("::1", 4318), "[::1]:4318"));
        let shown = format!("{endpoint} {endpoint:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("t0ken"), "{shown}");
        assert!(Endpoint::new("ftp://a.example", []).is_err());
    }
}
