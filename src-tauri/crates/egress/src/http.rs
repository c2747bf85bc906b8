//! HTTP proxy. CONNECT opens a tunnel, requests with an absolute URL are forwarded, and all others are refused.
//!
//! - hyper parses and writes every message, so the proxy and the target cannot interpret it differently.
//! - Each request is checked and connected separately, including the request after a redirect.

mod forward;

use crate::gate::{Gate, OpenConnection, Permit};
use crate::host::HostPort;
use crate::record::Protocol;
use crate::refusal::ConnectionRefusal;
use crate::tunnel;
use forward::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// Response header with the refusal code.
const REASON: &str = "x-ironcurtain-reason";

/// State of one client connection.
struct State<'a> {
    gate: &'a Gate,
    /// Tunnel to start after the response to CONNECT has been sent.
    tunnel: Mutex<Option<(OnUpgrade, OpenConnection)>>,
    /// Permit for the current request, or `None` between requests.
    permit: watch::Sender<Option<Permit>>,
}

pub(crate) async fn serve(client: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, gate: &Gate) {
    let state = State { gate, tunnel: Mutex::default(), permit: watch::Sender::new(None) };
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(gate.limits.handshake)
        .max_buf_size(gate.limits.head)
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(client), service_fn(|request| answer(request, &state)))
        .with_upgrades();
    let ended = tokio::select! {
        // Ignores the result: hyper has answered the malformed request, or the client has disconnected.
        _ = served => None,
        revoked = wait_for_revocation(&state.permit) => Some(revoked),
    };
    if let Some((permit, refusal)) = ended {
        return gate.record_closed(&permit, &refusal).await;
    }
    let State { tunnel, permit, .. } = state;
    // Releases the request's permit. The tunnel has its own permit.
    drop(permit);
    if let Some((upgrade, opened)) = tunnel.into_inner().unwrap_or_else(PoisonError::into_inner)
        && let Ok(upgraded) = upgrade.await
    {
        tunnel::run(TokioIo::new(upgraded), opened, gate).await;
    }
}

async fn answer(request: Request<Incoming>, state: &State<'_>) -> Result<Response<Body>, Infallible> {
    let response = match *request.method() {
        Method::CONNECT => connect(request, state).await,
        _ => forward_plain(request, state).await,
    };
    Ok(response.unwrap_or_else(|refusal| refusal_response(&refusal)))
}

async fn connect(
    mut request: Request<Incoming>,
    state: &State<'_>,
) -> Result<Response<Body>, ConnectionRefusal> {
    let requested = request.uri().to_string();
    let target = match HostPort::parse(&requested, None) {
        Ok(target) => target,
        Err(problem) => return refuse(state, Protocol::Connect, &requested, problem.into()).await,
    };
    let opened = state.gate.open(Protocol::Connect, target).await?;
    let upgrade = hyper::upgrade::on(&mut request);
    state.permit.send_replace(Some(opened.permit.clone()));
    *state.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, opened));
    Ok(Response::new(Full::default().map_err(|never| match never {}).boxed()))
}

async fn forward_plain(
    request: Request<Incoming>,
    state: &State<'_>,
) -> Result<Response<Body>, ConnectionRefusal> {
    let requested = request.uri().to_string();
    let target = match forward::target(&request) {
        Ok(target) => target,
        Err(refusal) => return refuse(state, Protocol::Http, &requested, refusal).await,
    };
    let OpenConnection { stream, permit } = state.gate.open(Protocol::Http, target.clone()).await?;
    state.permit.send_replace(Some(permit));
    forward::send(request, &target, stream).await
}

async fn refuse(
    state: &State<'_>,
    protocol: Protocol,
    requested: &str,
    refusal: ConnectionRefusal,
) -> Result<Response<Body>, ConnectionRefusal> {
    state.gate.refuse_unparsed(protocol, requested, &refusal).await;
    Err(refusal)
}

/// Waits until the rules no longer allow the current request, and returns its permit and the reason.
async fn wait_for_revocation(permit: &watch::Sender<Option<Permit>>) -> (Permit, ConnectionRefusal) {
    let mut changes = permit.subscribe();
    loop {
        let current = changes.borrow_and_update().clone();
        let revoked = async {
            match current {
                Some(mut permit) => (permit.clone(), permit.revoked().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            revoked = revoked => return revoked,
            // `permit` holds the sender, so the channel cannot close.
            _ = changes.changed() => {}
        }
    }
}

fn refusal_response(refusal: &ConnectionRefusal) -> Response<Body> {
    let status =
        if matches!(refusal, ConnectionRefusal::InvalidRequest(_) | ConnectionRefusal::InvalidHost(_)) {
            StatusCode::BAD_REQUEST
        } else if refusal.is_failure() {
            StatusCode::BAD_GATEWAY
        } else {
            StatusCode::FORBIDDEN
        };
    let text = format!("IronCurtain: {refusal}.\n");
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(REASON, HeaderValue::from_static(refusal.code()));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
