//! Forwards a plain HTTP request to its allowed target.

use crate::host::HostPort;
use crate::refusal::ConnectionRefusal;
use crate::tunnel::HTTPS;
use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::{Request, Response, Uri, Version};
use hyper_util::rt::TokioIo;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// Body of a response to the client.
pub(super) type Body = BoxBody<Bytes, hyper::Error>;

/// Returns the target of the request's URL. Refuses a request whose `Host` header differs from the target.
pub(super) fn target(request: &Request<Incoming>) -> Result<HostPort, ConnectionRefusal> {
    let uri = request.uri();
    if uri.scheme() != Some(&Scheme::HTTP) {
        return Err(ConnectionRefusal::InvalidRequest(
            "this is a proxy; request an absolute `http://` URL or use CONNECT",
        ));
    }
    let authority = uri.authority().map(|a| a.as_str()).unwrap_or_default();
    let target = HostPort::parse(authority, Some(80))?;
    if target.port == HTTPS {
        return Err(ConnectionRefusal::InvalidRequest("port 443 requires TLS; use CONNECT"));
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let named = match (hosts.next(), hosts.next()) {
        (None, _) if request.version() == Version::HTTP_10 => return Ok(target),
        (Some(host), None) => host.to_str().ok().and_then(|host| HostPort::parse(host, Some(80)).ok()),
        (None, _) | (Some(_), Some(_)) => None,
    };
    if named.as_ref() == Some(&target) {
        Ok(target)
    } else {
        Err(ConnectionRefusal::InvalidRequest(
            "the request must have exactly one `Host` header, matching the host in its URL",
        ))
    }
}

/// Forwards the request to the target and returns the response.
pub(super) async fn send(
    request: Request<Incoming>,
    target: &HostPort,
    stream: TcpStream,
) -> Result<Response<Body>, ConnectionRefusal> {
    let unreachable =
        |e: hyper::Error| ConnectionRefusal::Unreachable { target: target.to_string(), why: e.to_string() };
    let (mut sender, connection) = http1::Builder::new()
        .preserve_header_case(true)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(unreachable)?;
    let abort = AbortOnDrop(tokio::spawn(connection).abort_handle());
    let response = sender.send_request(rewrite(request, target)).await.map_err(unreachable)?;
    let (mut head, body) = response.into_parts();
    remove_hop_by_hop(&mut head.headers);
    head.version = Version::HTTP_11;
    Ok(Response::from_parts(head, ForwardedBody { body, _abort: abort }.boxed()))
}

/// Rewrites the request for the target: keeps only the URL's path and query, and removes headers meant for the proxy.
fn rewrite(request: Request<Incoming>, target: &HostPort) -> Request<Incoming> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    head.uri = Uri::from(path);
    head.version = Version::HTTP_11;
    remove_hop_by_hop(&mut head.headers);
    let host = if target.port == 80 { host_without_port(target) } else { target.to_string() };
    if let Ok(host) = HeaderValue::from_str(&host) {
        head.headers.insert(header::HOST, host);
    }
    head.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Request::from_parts(head, body)
}

fn host_without_port(target: &HostPort) -> String {
    target.to_string().trim_end_matches(":80").to_owned()
}

/// Removes hop-by-hop headers, including those listed in `Connection`.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    const HOP_BY_HOP: [HeaderName; 8] = [
        header::CONNECTION,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::TE,
        header::TRAILER,
        header::UPGRADE,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
    ];
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // Keeps `Host` and the headers that describe the body's framing, which hyper manages.
        .filter(|name| ![header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::HOST].contains(name))
        .collect();
    for name in HOP_BY_HOP.into_iter().chain(named) {
        headers.remove(name);
    }
}

/// Guard that closes the connection to the target when the client stops reading the response.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Response body, and the task that reads it from the target.
struct ForwardedBody {
    body: Incoming,
    _abort: AbortOnDrop,
}

impl hyper::body::Body for ForwardedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}
