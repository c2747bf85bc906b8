//! Sends single GET requests to untrusted servers.
//!
//! - Limits the time to connect, and the size and time of the response head and of the body.
//! - Does not follow redirects. Each request uses its own connection.

use crate::download_error::{BundleHost, DownloadError};
use crate::location::host;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, StatusCode, http};
use hyper_util::rt::TokioIo;
use ironcurtain_tls::{DialError, Stream, StreamDialer};
use std::time::Duration;
use tokio::task::JoinSet;
use url::{Position, Url};
use zeroize::Zeroizing;

/// Timeout for connecting, including the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for the response head (in addition to the long-polling time) and, separately, for the body.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum size of the response head, in bytes.
const MAX_HEAD_LEN: usize = 16 * 1024;

/// Response whose body has not been read.
pub(crate) struct BundleResponse {
    head: http::response::Parts,
    body: Incoming,
    host: BundleHost,
    /// Task that drives the connection. Dropping the response closes the connection, even if the server keeps it open.
    /// Connection errors are also returned by the request in flight.
    _connection: JoinSet<Result<(), hyper::Error>>,
}

/// Sends a request. The server may delay its response for up to `wait`.
pub(crate) async fn get(
    dialer: &StreamDialer,
    url: &Url,
    host: BundleHost,
    headers: HeaderMap,
    wait: Duration,
) -> Result<BundleResponse, DownloadError> {
    let request = request(url, headers).map_err(|_| DownloadError::Address(host.clone()))?;
    let result = tokio::time::timeout(CONNECT_TIMEOUT, connect(dialer, url)).await;
    let stream = result
        .map_err(|_| DownloadError::Timeout(host.clone(), CONNECT_TIMEOUT))?
        .map_err(|problem| DownloadError::Connect(host.clone(), problem))?;
    let http = |problem| DownloadError::Http(host.clone(), problem);
    let builder = http1::Builder::new().max_buf_size(MAX_HEAD_LEN).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = builder.map_err(http)?;
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let timeout = RESPONSE_TIMEOUT + wait;
    let result = tokio::time::timeout(timeout, sender.send_request(request)).await;
    let response = result.map_err(|_| DownloadError::Timeout(host.clone(), timeout))?.map_err(http)?;
    let (head, body) = response.into_parts();
    Ok(BundleResponse { head, body, host, _connection: connections })
}

impl BundleResponse {
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    /// Returns the first header with this name, if it is text.
    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.header_values(name).next()
    }

    /// Returns all headers with this name that are text.
    pub(crate) fn header_values(&self, name: HeaderName) -> impl Iterator<Item = &str> {
        self.head.headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
    }

    /// Returns an error unless the status is `200 OK`.
    pub(crate) fn ok(self) -> Result<Self, DownloadError> {
        let (status, host) = (self.status(), self.host.clone());
        match status {
            StatusCode::OK => Ok(self),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(DownloadError::Unauthorized(host, status.as_u16()))
            }
            StatusCode::NOT_MODIFIED => Err(DownloadError::Status(host, status.as_u16())),
            _ if status.is_redirection() => Err(DownloadError::Redirect(host, status.as_u16())),
            _ => Err(DownloadError::Status(host, status.as_u16())),
        }
    }

    /// Reads the body. Returns `None` if it is longer than `limit`.
    pub(crate) async fn body(self, limit: usize) -> Result<Option<Bytes>, DownloadError> {
        let body = tokio::time::timeout(RESPONSE_TIMEOUT, Limited::new(self.body, limit).collect()).await;
        match body.map_err(|_| DownloadError::Timeout(self.host.clone(), RESPONSE_TIMEOUT))? {
            Ok(body) => Ok(Some(body.to_bytes())),
            // Any other error means that the limit was exceeded.
            Err(problem) => match problem.downcast::<hyper::Error>() {
                Ok(problem) => Err(DownloadError::Http(self.host, *problem)),
                Err(_) => Ok(None),
            },
        }
    }
}

/// Creates a request with these headers.
pub(crate) fn request(url: &Url, headers: HeaderMap) -> Result<Request<Empty<Bytes>>, http::Error> {
    let mut request = Request::get(&url[Position::BeforePath..Position::AfterQuery])
        .header(header::HOST, host(url))
        .header(header::USER_AGENT, "ironcurtain")
        .body(Empty::new())?;
    request.headers_mut().extend(headers);
    Ok(request)
}

/// Returns a value for the `Authorization` header.
pub(crate) fn authorization(scheme: &str, credentials: &str) -> Result<HeaderValue, DownloadError> {
    let value = Zeroizing::new(format!("{scheme} {}", credentials.trim()));
    let mut value = HeaderValue::from_str(&value).map_err(|_| DownloadError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

async fn connect(dialer: &StreamDialer, url: &Url) -> Result<Box<dyn Stream>, DialError> {
    let name = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    dialer.connect(name, url.port_or_known_default().unwrap_or(443), url.scheme() == "https").await
}
