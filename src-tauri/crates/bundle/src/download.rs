//! Downloads bundles over HTTP using OPA's bundle protocol.
//!
//! - Sends `If-None-Match` to avoid downloading an unchanged bundle, and `Prefer: modes=snapshot;wait=N` to let the
//!   server delay its response until a new bundle is available (long polling).
//! - Does not follow redirects, because the token is only meant for the configured server.
//! - Does not trust the server: sizes and times are limited, and no text from the server is displayed.
//! - Allows plain HTTP only for loopback addresses.

use crate::archive::MAX_BUNDLE_LEN;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderValue};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use ironcurtain_tls::{DialError, StreamDialer};
use std::fmt;
use std::time::Duration;
use tokio::task::JoinSet;
use url::{Host, Position, Url};
use zeroize::Zeroizing;

/// Timeout for connecting, including the TLS handshake.
const CONNECT: Duration = Duration::from_secs(10);

/// Timeout for the response head, in addition to the long-polling time, and separately for the body.
const ANSWER: Duration = Duration::from_secs(60);

/// Maximum size of the response head, in bytes.
const MAX_HEAD_LEN: usize = 16 * 1024;

/// URL of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleLocation(Url);

/// Error returned for an invalid or insecure bundle URL.
#[derive(Debug, thiserror::Error)]
#[error("expected an `https` address of a bundle; plain `http` is allowed only for this computer")]
pub struct LocationError;

/// Error returned when a download fails.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// Connecting to the server failed.
    #[error("failed to connect to the bundle server: {0}")]
    Connect(#[from] DialError),
    /// A step of the download timed out.
    #[error("the bundle server did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The connection failed, or the response is not valid HTTP.
    #[error("the connection to the bundle server failed: {0}")]
    Http(#[from] hyper::Error),
    /// The bundle is too large, or the connection failed during the download.
    #[error("the bundle is larger than {} MiB, or the connection failed", MAX_BUNDLE_LEN / 1024 / 1024)]
    Body,
    /// The server responded with a redirect.
    #[error("the bundle server answered with a redirect ({0}), which is not followed")]
    Redirect(u16),
    /// The server requires credentials, or refused the token.
    #[error("the bundle server refused the token ({0})")]
    Unauthorized(u16),
    /// The server responded with an unexpected status code.
    #[error("the bundle server answered with the status {0}")]
    Status(u16),
    /// The token contains characters that are not allowed in a header.
    #[error("the token for the bundle server contains invalid characters")]
    Token,
}

impl BundleLocation {
    /// Parses a URL.
    ///
    /// # Errors
    /// Returns [`LocationError`] unless the URL uses `https`, or `http` with a loopback host.
    pub fn parse(url: &str) -> Result<Self, LocationError> {
        let url = Url::parse(url).map_err(|_| LocationError)?;
        let is_local = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => return Err(LocationError),
        };
        match url.scheme() {
            "https" => Ok(Self(url)),
            "http" if is_local => Ok(Self(url)),
            _ => Err(LocationError),
        }
    }

    fn target(&self) -> (&str, u16) {
        let host = self.0.host_str().unwrap_or_default().trim_matches(['[', ']']);
        (host, self.0.port_or_known_default().unwrap_or(443))
    }
}

/// Omits the query, which may contain an API key.
impl fmt::Display for BundleLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0[..Position::AfterPath])
    }
}

/// Result of a download.
#[derive(Debug, PartialEq, Eq)]
pub enum Downloaded {
    /// The bundle has not changed.
    Unchanged,
    /// The server sent a bundle.
    New {
        /// The bundle, not yet verified.
        bytes: Bytes,
        /// `ETag` header of the response.
        etag: Option<String>,
        /// `true` if the server supports long polling.
        supports_long_polling: bool,
    },
}

/// Client for one bundle.
pub struct BundleClient {
    location: BundleLocation,
    token: Option<Zeroizing<String>>,
    dialer: StreamDialer,
}

impl BundleClient {
    /// Creates a client that sends `token`, if any, as a bearer token.
    #[must_use]
    pub fn new(location: BundleLocation, token: Option<Zeroizing<String>>) -> Self {
        Self { location, token, dialer: StreamDialer::default() }
    }

    /// Returns this client with another dialer.
    #[must_use]
    pub fn with_dialer(self, dialer: StreamDialer) -> Self {
        Self { dialer, ..self }
    }

    /// Downloads the bundle unless its `ETag` equals `etag`. If `wait` is set, the server may delay its response for
    /// that long until the bundle changes.
    ///
    /// # Errors
    /// Returns [`DownloadError`] if the connection fails or the server does not send a bundle.
    pub async fn download(
        &self,
        etag: Option<&str>,
        wait: Option<Duration>,
    ) -> Result<Downloaded, DownloadError> {
        let request = self.request(etag, wait)?;
        let (host, port) = self.location.target();
        let connect = self.dialer.connect(host, port, self.location.0.scheme() == "https");
        let stream =
            tokio::time::timeout(CONNECT, connect).await.map_err(|_| DownloadError::Timeout(CONNECT))??;
        let (mut sender, connection) =
            http1::Builder::new().max_buf_size(MAX_HEAD_LEN).handshake(TokioIo::new(stream)).await?;
        // Errors of the connection are also returned by the request in flight. The connection closes with this future,
        // even if the server keeps it open.
        let mut connections = JoinSet::new();
        connections.spawn(connection);
        let until = ANSWER + wait.unwrap_or_default();
        let answered = tokio::time::timeout(until, sender.send_request(request)).await;
        let response = answered.map_err(|_| DownloadError::Timeout(until))??;
        let status = response.status();
        match status {
            StatusCode::OK => {}
            // Without an `ETag`, there is no bundle that could be unchanged.
            StatusCode::NOT_MODIFIED if etag.is_some() => return Ok(Downloaded::Unchanged),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(DownloadError::Unauthorized(status.as_u16()));
            }
            StatusCode::NOT_MODIFIED => return Err(DownloadError::Status(status.as_u16())),
            _ if status.is_redirection() => return Err(DownloadError::Redirect(status.as_u16())),
            _ => return Err(DownloadError::Status(status.as_u16())),
        }
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let etag = text(header::ETAG).map(str::to_owned);
        let kind = text(header::CONTENT_TYPE).unwrap_or_default();
        let supports_long_polling = kind == "application/vnd.openpolicyagent.bundles";
        let body = Limited::new(response.into_body(), MAX_BUNDLE_LEN).collect();
        let body = tokio::time::timeout(ANSWER, body).await.map_err(|_| DownloadError::Timeout(ANSWER))?;
        let bytes = body.map_err(|_| DownloadError::Body)?.to_bytes();
        Ok(Downloaded::New { bytes, etag, supports_long_polling })
    }

    fn request(
        &self,
        etag: Option<&str>,
        wait: Option<Duration>,
    ) -> Result<Request<Empty<Bytes>>, DownloadError> {
        let url = &self.location.0;
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = url[Position::BeforePath..Position::AfterQuery]
            .parse()
            .map_err(|_| DownloadError::Status(StatusCode::BAD_REQUEST.as_u16()))?;
        let headers = request.headers_mut();
        let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]);
        headers.insert(header::HOST, host.map_err(|_| DownloadError::Token)?);
        headers.insert(header::USER_AGENT, HeaderValue::from_static("ironcurtain"));
        if let Some(token) = &self.token {
            let value = Zeroizing::new(format!("Bearer {}", token.trim()));
            let mut value = HeaderValue::from_str(&value).map_err(|_| DownloadError::Token)?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        if let Some(etag) = etag.and_then(|etag| HeaderValue::from_str(etag).ok()) {
            headers.insert(header::IF_NONE_MATCH, etag);
        }
        let prefer = match wait {
            Some(wait) => format!("modes=snapshot;wait={}", wait.as_secs()),
            None => "modes=snapshot".to_owned(),
        };
        headers.extend(HeaderValue::from_str(&prefer).ok().map(|value| (PREFER, value)));
        Ok(request)
    }
}

/// Omits the token.
impl fmt::Debug for BundleClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BundleClient").field("location", &self.location).finish_non_exhaustive()
    }
}

const PREFER: header::HeaderName = header::HeaderName::from_static("prefer");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_only_for_this_computer() {
        for good in [
            "https://bundles.example.com/b.tar.gz",
            "http://127.0.0.1:80/b",
            "http://[::1]/b",
            "http://localhost/b",
        ] {
            assert!(BundleLocation::parse(good).is_ok(), "{good}");
        }
        for bad in ["http://bundles.example.com/b", "http://localhost.example.com/b", "file:///b", "b"] {
            assert!(BundleLocation::parse(bad).is_err(), "{bad}");
        }
        let location = BundleLocation::parse("https://a.example/b?key=secret").unwrap();
        assert_eq!(location.to_string(), "https://a.example/b");
    }

    #[test]
    fn requests_have_the_headers_of_the_protocol() {
        let location = BundleLocation::parse("https://a.example:8443/b?x=1").unwrap();
        let client = BundleClient::new(location, Some(Zeroizing::new("t0ken\n".to_owned())));
        let request = client.request(Some("\"e\""), Some(Duration::from_secs(30))).unwrap();
        let text = |name: &str| request.headers()[name].to_str().unwrap();
        assert_eq!(request.uri(), "/b?x=1");
        assert_eq!([text("host"), text("authorization")], ["a.example:8443", "Bearer t0ken"]);
        assert_eq!([text("if-none-match"), text("prefer")], ["\"e\"", "modes=snapshot;wait=30"]);
        assert!(!format!("{client:?} {request:?}").contains("t0ken"));
    }
}
