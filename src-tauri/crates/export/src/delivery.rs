//! Sends OTLP requests to a collector with HTTP/1.1 POST.
//!
//! - The collector is the user's choice, so its host may be on this machine or network. Redirects are not followed.
//! - The collector is not trusted: the size and time of its responses are limited, and their text is never shown.
//! - Only the response that OTLP/HTTP requires counts as success: status 200, the protobuf content type and a protobuf
//!   message. A captive portal's login page, for example, does not count.

use crate::endpoint::Endpoint;
use crate::otlp;
use futures_util::TryFutureExt;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use ironcurtain_tls::{DialError, StreamDialer};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use prost::Message;
use std::io;
use std::time::Duration;

/// Timeout for connecting, including the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for a request and its complete response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a response, in bytes.
const MAX_RESPONSE_LEN: usize = 64 * 1024;

/// Maximum size of a response head, in bytes.
const MAX_HEAD_LEN: usize = 16 * 1024;

/// Content type of OTLP requests and responses.
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// Error returned when a collector does not accept a request.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The connection could not be opened.
    #[error("failed to connect to the collector: {0}")]
    Connect(#[from] DialError),
    /// The collector did not respond in time.
    #[error("the collector did not answer within {n} s", n = RESPONSE_TIMEOUT.as_secs())]
    Timeout,
    /// The connection failed, or the response is not HTTP.
    #[error("the connection to the collector failed: {0}")]
    Http(#[from] hyper::Error),
    /// The response is too long or is not OTLP.
    #[error("the response is not from an OTLP collector; check the address")]
    NotOtlp,
    /// The collector responded with a redirect.
    #[error(
        "the collector responded with a redirect ({0}), which is not followed; configure the new address"
    )]
    Redirect(u16),
    /// Credentials are missing or were refused.
    #[error(
        "the collector refused the credentials ({0}); store another token with `ironcurtain secrets set`"
    )]
    Unauthorized(u16),
    /// The collector permanently refuses this request.
    #[error("the collector refused the entries ({0})")]
    Refused(u16),
    /// The collector accepted the request but rejected all of its records.
    #[error("the collector rejected all {0} entries of a request")]
    Rejected(u64),
    /// The collector is overloaded, or responded with another error.
    #[error("the collector answered with the status {status}")]
    Status {
        /// HTTP status.
        status: u16,
        /// Time after which to retry.
        retry_after: Option<Duration>,
    },
    /// A header is invalid.
    #[error("the header `{0}` is not allowed in a request")]
    Header(String),
}

impl DeliveryError {
    /// Returns the pause that the collector requested.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        if let Self::Status { retry_after, .. } = self { *retry_after } else { None }
    }

    /// Returns `true` if the collector refused these entries permanently.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// Returns `true` if the collector refused the credentials.
    pub(crate) fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Unauthorized(_))
    }
}

type Sender = SendRequest<Full<Bytes>>;

/// Client for one collector.
pub(crate) struct Collector {
    endpoint: Endpoint,
    pub(crate) dialer: StreamDialer,
    headers: HeaderMap,
    idle: Option<Sender>,
}

impl Collector {
    pub(crate) fn new(endpoint: Endpoint, dialer: StreamDialer) -> Result<Self, DeliveryError> {
        let mut headers = HeaderMap::new();
        for (name, value) in endpoint.headers() {
            let (Ok(header), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::from_str(value))
            else {
                return Err(DeliveryError::Header(name.to_owned()));
            };
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let host = HeaderValue::from_str(endpoint.authority());
        headers.insert(header::HOST, host.map_err(|_| DeliveryError::Header("host".to_owned()))?);
        headers.insert(header::CONTENT_TYPE, PROTOBUF);
        headers.insert(header::ACCEPT, PROTOBUF);
        Ok(Self { endpoint, dialer, headers, idle: None })
    }

    /// Sends log records. Returns the number of records that the collector rejected permanently.
    pub(crate) async fn send_logs(&mut self, body: Vec<u8>) -> Result<u64, DeliveryError> {
        let body = self.post("logs", body).await?;
        let body = ExportLogsServiceResponse::decode(body).map_err(|_| DeliveryError::NotOtlp)?;
        let rejected = body.partial_success.map_or(0, |partial| partial.rejected_log_records);
        Ok(u64::try_from(rejected).unwrap_or(0))
    }

    /// Sends metrics.
    pub(crate) async fn send_metrics(&mut self, body: Vec<u8>) -> Result<(), DeliveryError> {
        self.post("metrics", body).await.map(drop)
    }

    async fn post(&mut self, signal: &str, body: Vec<u8>) -> Result<Bytes, DeliveryError> {
        let exchange = self.exchange(signal, body.into());
        let result = tokio::time::timeout(CONNECT_TIMEOUT + RESPONSE_TIMEOUT, exchange).await;
        let (body, sender) = result.unwrap_or(Err(DeliveryError::Timeout))?;
        self.idle = Some(sender);
        Ok(body)
    }

    async fn exchange(&mut self, signal: &str, body: Bytes) -> Result<(Bytes, Sender), DeliveryError> {
        let idle = self.idle.take().filter(|idle| !idle.is_closed());
        let mut sender = match idle {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        let path = self.endpoint.path(signal);
        *request.uri_mut() = path.parse().map_err(|_| DeliveryError::Refused(0))?;
        *request.headers_mut() = self.headers.clone();
        // Sending the same entries twice is harmless, because their ids do not change.
        let sent = async {
            sender.ready().await?;
            sender.send_request(request).await
        };
        let response = tokio::time::timeout(RESPONSE_TIMEOUT, sent.map_err(DeliveryError::Http))
            .await
            .unwrap_or(Err(DeliveryError::Timeout))?;
        check_status(&response)?;
        let is_otlp = response.headers().get(header::CONTENT_TYPE).is_some_and(is_protobuf);
        let body = Limited::new(response.into_body(), MAX_RESPONSE_LEN).collect();
        let body = body.await.map_err(|_| DeliveryError::NotOtlp)?.to_bytes();
        if is_otlp { Ok((body, sender)) } else { Err(DeliveryError::NotOtlp) }
    }

    async fn connect(&self) -> Result<Sender, DeliveryError> {
        let (host, port) = self.endpoint.target();
        let connected = self.dialer.connect(host, port, self.endpoint.is_encrypted());
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connected).await;
        let stream = connected.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))?;
        let (sender, connection) =
            http1::Builder::new().max_buf_size(MAX_HEAD_LEN).handshake(TokioIo::new(stream)).await?;
        // The task ends when the sender is dropped. The request in flight returns any error.
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// Sends an empty request to check whether a collector responds.
///
/// # Errors
/// Returns [`DeliveryError`] if the collector does not respond as OTLP requires.
pub async fn probe(endpoint: &Endpoint) -> Result<(), DeliveryError> {
    let request = otlp::logs(&[], "").encode_to_vec();
    Collector::new(endpoint.clone(), StreamDialer::default())?.send_logs(request).await.map(drop)
}

/// Checks a response's status.
fn check_status(response: &Response<Incoming>) -> Result<(), DeliveryError> {
    let status = response.status();
    Err(match status {
        StatusCode::OK => return Ok(()),
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE => DeliveryError::Refused(status.as_u16()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => DeliveryError::Unauthorized(status.as_u16()),
        _ if status.is_redirection() => DeliveryError::Redirect(status.as_u16()),
        _ => DeliveryError::Status { status: status.as_u16(), retry_after: retry_after(response.headers()) },
    })
}

/// Parses `Retry-After` in seconds. The date format is ignored.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn is_protobuf(kind: &HeaderValue) -> bool {
    let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/x-protobuf")
}
