//! One HTTP request to a remote server and its response, which is a single message or an event stream.
//!
//! - An interrupted stream with event ids is resumed after the last event. The request is not sent again.
//! - Every message is forwarded as one line, with the server's secrets redacted.

mod event_streams;

use super::Redact;
use super::fault::Fault;
use super::headers::HttpSession;
use super::http::{Http, Reply, in_one_line};
use super::required_login::RequiredLogin;
use super::response_head::{
    BodyFormat, Head, MAX_MESSAGE_LEN, body_format, error_explanation, is_response_to,
};
use super::session::SessionState;
use crate::wire::{
    Allowance, Id, Incoming, Line, Lines, MAX_LINE_BYTES, Output, Response, Share, batch_members, error_line,
};
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::HeaderMap;
use ironcurtain_visible as visible;
use rmcp::model::ErrorCode;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;

/// Maximum time for the server to accept a message that expects no response.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum time for closing the session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// HTTP exchanges of one remote connection.
pub(super) struct Exchange {
    pub(super) http: Http,
    pub(super) session: SessionState,
    output: AsyncMutex<Output>,
    stderr: AsyncMutex<Output>,
    redact: Redact,
    pub(super) memory: Allowance,
    status: ConnectionStatus,
    /// Cancelled when the server has forgotten the session, which closes the connection.
    pub(super) closed: CancellationToken,
}

/// Streams and callbacks for the server's output.
pub(super) struct Streams {
    /// Standard output of the connection, for messages.
    pub(super) output: Output,
    /// Standard error of the connection, for log lines.
    pub(super) log: Output,
    /// Redacts the secrets sent to the server.
    pub(super) redact: Redact,
}

/// Reasons for failures, shared with the owner of the connection.
pub(super) struct ConnectionStatus {
    /// Reason the connection closed.
    pub(super) reason: Arc<OnceLock<String>>,
    /// Message of the last request that failed.
    pub(super) fault: Arc<Mutex<String>>,
    /// State of the requirement that the user must log in.
    pub(super) login: RequiredLogin,
}

/// Request that awaits its response.
struct Awaited<'a> {
    id: &'a Id,
    is_initialize: bool,
    is_answered: bool,
}

impl Exchange {
    pub(super) fn new(
        http: Http,
        Streams { output, log, redact }: Streams,
        memory: Allowance,
        status: ConnectionStatus,
    ) -> Self {
        let (output, stderr, closed) =
            (AsyncMutex::new(output), AsyncMutex::new(log), CancellationToken::new());
        Self { http, session: SessionState::default(), output, stderr, redact, memory, status, closed }
    }

    /// Sends a request and forwards everything that the server returns.
    pub(super) async fn request(
        &self,
        id: &Id,
        message: Incoming,
        line: Vec<u8>,
        share: Option<Share>,
    ) -> Result<(), Fault> {
        let method = if let Incoming::Request { method, .. } = &message { method.as_str() } else { "" };
        let (is_initialize, line) = (method == "initialize", Bytes::from(line));
        self.session.record(id, method, &line);
        let headers = self.session().headers_for(&message);
        drop(message);
        let mut awaited = Awaited { id, is_initialize, is_answered: false };
        let reply = self.send_until_accepted(headers, line, &mut awaited).await?;
        drop(share);
        let Some(reply) = reply else { return Ok(()) };
        if is_initialize {
            self.session().set_session(reply.response.headers());
        }
        match body_format(reply.response.headers()) {
            BodyFormat::Message => self.read_message(reply, &mut awaited).await?,
            BodyFormat::Events => self.read_stream(reply, &mut awaited).await?,
            BodyFormat::WebPage => return Err(Fault::WebPage),
            BodyFormat::Other(body_format) => return Err(Fault::BodyFormat(body_format)),
        }
        if awaited.is_answered { Ok(()) } else { Err(Fault::Truncated) }
    }

    /// Sends a request until the server accepts it. If the server is busy, retries after a delay. If the server has
    /// forgotten the session, retries in a new session. Returns `None` if the response was already handled.
    async fn send_until_accepted(
        &self,
        mut headers: HeaderMap,
        line: Bytes,
        awaited: &mut Awaited<'_>,
    ) -> Result<Option<Reply>, Fault> {
        let (mut attempt, mut is_renewed) = (0, false);
        loop {
            let session = self.session().clone();
            let reply = self.http.send(Method::POST, headers.clone(), line.clone()).await?;
            match self.check_reply(reply, Some(awaited)).await {
                Err(Fault::SessionLost) if !std::mem::replace(&mut is_renewed, true) => {
                    self.renew(&session).await?;
                    headers.extend(self.session().headers());
                }
                Err(fault) => match fault.retry_delay(attempt) {
                    Some(delay) => {
                        attempt += 1;
                        tokio::time::sleep(delay).await;
                    }
                    None => return Err(fault),
                },
                reply => return reply,
            }
        }
    }

    /// Closes the connection because the server has forgotten its session.
    pub(super) fn close_lost_session(&self) {
        // Keeps the first reason if there is one.
        let _ = self.status.reason.set(Fault::SessionLost.to_string());
        self.closed.cancel();
    }

    /// Sends a message that expects no response.
    pub(super) async fn send_other(&self, message: &Incoming, line: Vec<u8>) -> Result<(), Fault> {
        let headers = self.session().headers_for(message);
        let sent = async {
            let reply = self.http.send(Method::POST, headers, line.into()).await?;
            let Some(reply) = self.check_reply(reply, None).await? else { return Ok(()) };
            let (mut body, connection) = reply.body();
            // Some servers send a body, which is discarded.
            if tokio::io::copy(&mut body, &mut tokio::io::sink()).await.is_ok() {
                self.http.recycle(connection).await;
            }
            Ok(())
        };
        let late = |_| Err(Fault::Truncated);
        tokio::time::timeout(ACCEPT_TIMEOUT, sent).await.unwrap_or_else(late)
    }

    /// Closes the session at the server.
    pub(super) async fn close_session(&self) {
        let headers = self.session().headers();
        if !self.session().has_session() || self.closed.is_cancelled() {
            return;
        }
        // On failure, the server's own timeout closes the session.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.http.send_last(Method::DELETE, headers)).await;
    }

    /// Writes a line to the connection's standard output.
    pub(super) async fn write_line(&self, line: &[u8]) -> Result<(), Fault> {
        self.output.lock().await.write_all(line).await.map_err(|_| Fault::Closed)
    }

    /// Answers a request with an error of our own, and records the message.
    pub(super) async fn refuse(&self, id: &Id, fault: &Fault) -> Result<(), Fault> {
        if fault.needs_login() {
            self.status.login.refuse(self.http.login_id().await);
        }
        let message = fault.to_string();
        // An authorization server may echo the tokens that were sent to it.
        let message = String::from_utf8_lossy(&(self.redact)(message.as_bytes())).into_owned();
        let line = error_line(Some(id), ErrorCode::INTERNAL_ERROR.0, &message);
        *self.status.fault.lock().unwrap_or_else(PoisonError::into_inner) = message;
        self.write_line(&line).await
    }

    /// Writes a line to the connection's standard error.
    pub(super) async fn log(&self, text: &str) {
        // Writing fails if the reader was dropped.
        let _ = self.stderr.lock().await.write_all(format!("{text}\n").as_bytes()).await;
    }

    fn session(&self) -> MutexGuard<'_, HttpSession> {
        self.session.current()
    }

    /// Checks a response. Returns `None` if its body was the awaited response and has already been forwarded.
    async fn check_reply(
        &self,
        reply: Reply,
        awaited: Option<&mut Awaited<'_>>,
    ) -> Result<Option<Reply>, Fault> {
        let has_session = self.session().has_session();
        let sanitize = |text: &[u8]| self.sanitize(text);
        match Head::check(&reply.response, awaited.is_some(), has_session, self.http.refused(), sanitize) {
            Head::Accepted => {
                self.status.login.accept();
                Ok(Some(reply))
            }
            Head::Failed(fault) => Err(fault),
            Head::FailedWithBody(fault) => {
                let is_page = body_format(reply.response.headers()) == BodyFormat::WebPage;
                let reason = reply.error_body().await;
                if has_session && fault.is_about_session(&error_explanation(&reason)) {
                    return Err(Fault::SessionLost);
                }
                match awaited {
                    Some(awaited) if is_response_to(&reason, awaited.id) => {
                        self.deliver(reason, Some(awaited)).await?;
                        Ok(None)
                    }
                    Some(_) | None if is_page => Err(fault),
                    Some(_) | None => {
                        Err(fault.with_explanation(&self.sanitize(&error_explanation(&reason))))
                    }
                }
            }
        }
    }

    /// Redacts, sanitizes and shortens server text, for use in a message.
    fn sanitize(&self, text: &[u8]) -> String {
        let text = (self.redact)(text);
        visible::head(&visible::line(&String::from_utf8_lossy(&text)), MAX_MESSAGE_LEN)
    }

    async fn read_message(&self, reply: Reply, awaited: &mut Awaited<'_>) -> Result<(), Fault> {
        let (body, connection) = reply.body_as_line();
        let mut lines = Lines::with_allowance(self.memory.clone(), body, MAX_LINE_BYTES);
        match lines.next().await {
            Ok(Some(Line::Whole(text, share))) => {
                match batch_members(&text) {
                    None => self.deliver(text, Some(awaited)).await?,
                    Some(all) => {
                        for one in all {
                            self.deliver(one.get().into(), Some(awaited)).await?;
                        }
                    }
                }
                drop(share);
                self.http.recycle(connection).await;
                Ok(())
            }
            Ok(Some(Line::TooLong { length, .. })) => Err(Fault::TooLong(length)),
            Ok(Some(Line::NoMemory { .. })) => Err(Fault::NoMemory),
            Ok(None) | Err(_) => Err(Fault::Truncated),
        }
    }

    /// Forwards one message, and records whether it is the awaited response.
    async fn deliver(&self, text: Vec<u8>, awaited: Option<&mut Awaited<'_>>) -> Result<(), Fault> {
        if let Some(awaited) = awaited
            && let Ok(Incoming::Response { id, response }) = Incoming::parse(&text)
            && id == *awaited.id
        {
            awaited.is_answered = true;
            if let (true, Response::Result(result)) = (awaited.is_initialize, &response) {
                self.session().set_version(result);
            }
        }
        let text = match (self.redact)(&text) {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => text,
        };
        let mut line = in_one_line(text);
        line.push(b'\n');
        self.write_line(&line).await
    }
}
