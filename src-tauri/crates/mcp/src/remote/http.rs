//! HTTP/1.1 connections to a remote server: opened on demand, kept alive briefly, with TLS for `https`.
//!
//! - A request is written at most once. If a kept connection closes before any byte was written, the request uses a new
//!   connection. A request that the server answered with 401 is written again with a different token.

use super::fault::Fault;
use super::login::ServerLogin;
use super::{RefusedLogin, RemoteEndpoint, RemoteError};
use futures_util::TryStreamExt;
use http_body_util::{BodyDataStream, BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use ironcurtain_egress::{Dialed, Dialer, HostPort};
use ironcurtain_tls::{TlsClient, secure};
use rustix::net::sockopt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::io::StreamReader;
use url::Position;

/// Content types that the server may send.
const ACCEPTED_TYPES: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Lifetime of an idle connection. Servers close theirs after five seconds or more.
const IDLE_LIFETIME: Duration = Duration::from_secs(4);

/// Maximum number of idle connections.
const MAX_IDLE: usize = 8;

/// Maximum time that a connection may take to become reusable after its response was read.
const IDLE_TIMEOUT: Duration = Duration::from_millis(200);

/// Maximum number of bytes read from an error body, and the timeout for reading them.
const ERROR_BODY_LIMITS: (usize, Duration) = (16 * 1024, Duration::from_secs(5));

type Sender = SendRequest<Full<Bytes>>;

/// HTTP client for one remote server.
pub(super) struct Http {
    dialer: Dialer,
    target: HostPort,
    /// Path and query of the URL.
    path: String,
    tls: Option<TlsClient>,
    headers: HeaderMap,
    refused: RefusedLogin,
    login: Option<ServerLogin>,
    idle: Mutex<Vec<(Sender, Instant)>>,
}

/// Response without its body, and the connection that the body arrives on.
pub(super) struct Reply {
    pub(super) response: Response<Incoming>,
    connection: Sender,
}

impl Http {
    /// Creates a client with the configured headers.
    pub(super) async fn new(
        endpoint: RemoteEndpoint<'_>,
        dialer: Dialer,
        (refused, login): (RefusedLogin, Option<ServerLogin>),
    ) -> Result<Self, RemoteError> {
        let RemoteEndpoint { url, target, headers: configured } = endpoint;
        let host = url.host_str().unwrap_or_default();
        let tls = match url.scheme() {
            "http" => None,
            _ => Some(TlsClient::new(host).await?),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in configured {
            let value = HeaderValue::from_str(value);
            // The errors from these conversions do not name the header.
            let (Ok(header), Ok(mut value)) = (HeaderName::try_from(*name), value) else {
                return Err(RemoteError::Header((*name).to_owned()));
            };
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let authority = &url[Position::BeforeHost..Position::AfterPort];
        headers.insert(header::HOST, HeaderValue::from_str(authority).map_err(io::Error::other)?);
        headers.insert(header::ACCEPT, ACCEPTED_TYPES);
        Ok(Self {
            dialer,
            target: target.clone(),
            path: url[Position::BeforePath..Position::AfterQuery].to_owned(),
            tls,
            headers,
            refused,
            login,
            idle: Mutex::default(),
        })
    }

    /// Returns the callback that explains a refused login.
    pub(super) fn refused(&self) -> &RefusedLogin {
        &self.refused
    }

    /// Sends a request and returns the response head. If the server refuses the token with 401, it has not carried out
    /// the request, so the request is sent again with a new token.
    pub(super) async fn send(
        &self,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Reply, Fault> {
        let Some(login) = &self.login else { return self.send_once(method, headers, body).await };
        let token = login.header().await?;
        headers.extend(token.clone().map(|token| (header::AUTHORIZATION, token)));
        let reply = self.send_once(method.clone(), headers.clone(), body.clone()).await?;
        if reply.response.status() != StatusCode::UNAUTHORIZED {
            return Ok(reply);
        }
        let Some(token) = login.header_after_refusal(token.as_ref()).await? else { return Ok(reply) };
        headers.insert(header::AUTHORIZATION, token);
        self.send_once(method, headers, body).await
    }

    /// Returns the id of the user's login to the server, or `None` without a login.
    pub(super) async fn login_id(&self) -> Option<String> {
        self.login.as_ref()?.id().await
    }

    /// Sends the last request of a connection without renewing the token, because a renewal could no longer complete.
    pub(super) async fn send_last(&self, method: Method, mut headers: HeaderMap) -> Result<Reply, Fault> {
        let token = if let Some(login) = &self.login { login.last_header().await } else { None };
        headers.extend(token.map(|token| (header::AUTHORIZATION, token)));
        self.send_once(method, headers, Bytes::new()).await
    }

    async fn send_once(&self, method: Method, headers: HeaderMap, body: Bytes) -> Result<Reply, Fault> {
        let mut request = Request::new(Full::new(body));
        *request.uri_mut() = self.path.parse().map_err(|_| Fault::NotFound)?;
        let all = request.headers_mut();
        all.extend(self.headers.clone());
        all.extend(headers);
        if method == Method::POST {
            all.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        *request.method_mut() = method;
        loop {
            let idle = self.take_idle();
            let was_idle = idle.is_some();
            let mut connection = match idle {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            match connection.try_send_request(request).await {
                Ok(response) => return Ok(Reply { response, connection }),
                Err(mut problem) => match problem.take_message() {
                    // INVARIANT: a connection returns a request only if no byte of it was written.
                    Some(unwritten) if was_idle => request = unwritten,
                    Some(_) | None => return Err(self.interrupted(problem.error())),
                },
            }
        }
    }

    /// Returns a connection to the pool after its response was read.
    pub(super) async fn recycle(&self, mut connection: Sender) {
        let is_free = tokio::time::timeout(IDLE_TIMEOUT, connection.ready()).await;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(connection, since)| since.elapsed() < IDLE_LIFETIME && !connection.is_closed());
        if let (Ok(Ok(())), true) = (is_free, idle.len() < MAX_IDLE) {
            idle.push((connection, Instant::now()));
        }
    }

    fn take_idle(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((connection, since)) = idle.pop() {
            if since.elapsed() < IDLE_LIFETIME && connection.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    async fn connect(&self) -> Result<Sender, Fault> {
        let Dialed { stream, mut permit } = self.dialer.open(&self.target).await?;
        enable_keepalive(&stream);
        let stream = secure(Box::new(stream), self.tls.as_ref()).await.map_err(|problem| {
            Fault::InvalidCertificate { host: self.target.to_string(), problem: problem.to_string() }
        })?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|problem| self.interrupted(&problem))?;
        // The task ends when the last sender is dropped, or when the network rules no longer allow the connection.
        tokio::spawn(async move {
            tokio::select! {
                _ = connection => {}
                _ = permit.revoked() => {}
            }
        });
        Ok(sender)
    }

    fn interrupted(&self, problem: &hyper::Error) -> Fault {
        Fault::Interrupted { host: self.target.to_string(), problem: problem.to_string() }
    }
}

impl Reply {
    /// Returns the body and the connection.
    pub(super) fn body(self) -> (impl AsyncRead + Send + Unpin, Sender) {
        let Self { response, connection } = self;
        let body = BodyDataStream::new(response.into_body()).map_err(io::Error::other);
        (StreamReader::new(body), connection)
    }

    /// Like [`body`](Self::body), but replaces line breaks with spaces. In JSON, line breaks occur only between tokens.
    pub(super) fn body_as_line(self) -> (impl AsyncRead + Send + Unpin, Sender) {
        let Self { response, connection } = self;
        let body = BodyDataStream::new(response.into_body()).map_err(io::Error::other);
        let body = body.map_ok(|bytes| Bytes::from(in_one_line(bytes.into())));
        let end = futures_util::stream::iter([Ok(Bytes::from_static(b"\n"))]);
        (StreamReader::new(futures_util::StreamExt::chain(body, end)), connection)
    }

    /// Reads the beginning of an error body.
    pub(super) async fn error_body(self) -> Vec<u8> {
        let (max_len, timeout) = ERROR_BODY_LIMITS;
        let body = Limited::new(self.response.into_body(), max_len).collect();
        let read = tokio::time::timeout(timeout, body).await;
        read.ok().and_then(Result::ok).map(|read| read.to_bytes().to_vec()).unwrap_or_default()
    }
}

/// Enables TCP keepalive so that the kernel notices an unreachable host.
fn enable_keepalive(stream: &TcpStream) {
    // Errors are ignored, because they only delay the detection of an unreachable host.
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, Duration::from_secs(30));
    let _ = sockopt::set_tcp_keepintvl(stream, Duration::from_secs(10));
    let _ = sockopt::set_tcp_keepcnt(stream, 3);
}

/// Joins a message into one line. In JSON, line breaks occur only between tokens.
pub(super) fn in_one_line(mut text: Vec<u8>) -> Vec<u8> {
    for byte in &mut text {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    text
}
