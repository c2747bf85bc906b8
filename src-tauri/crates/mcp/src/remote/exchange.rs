//! One HTTP request to a remote server and its response, which is a single message or an event stream.
//!
//! - An interrupted stream with event ids is resumed after the last event. The request is not sent again.
//! - Every message is forwarded as one line, with the server's secrets redacted.

use super::Redact;
use super::answer::{Form, Head, MAX_MESSAGE_LEN, answers, explanation_of, form};
use super::events::{Event, Events, Position};
use super::fault::Fault;
use super::headers::HttpSession;
use super::http::{Http, Reply, in_one_line};
use super::required_login::{LoginId, RequiredLogin};
use super::session::SessionState;
use crate::wire::{
    Allowance, Id, Incoming, Line, Lines, MAX_LINE_BYTES, Output, Response, Share, error_line, members,
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
use tokio::sync::Mutex as Turn;
use tokio_util::sync::CancellationToken;

/// Maximum number of consecutive failures to resume a stream. After that, the request fails.
const MAX_FAILURES: u32 = 5;

/// Duration for which a stream is still read after the awaited response has arrived.
const AFTER_ANSWER: Duration = Duration::from_secs(1);

/// Maximum time for the server to accept a message that expects no response.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum time for closing the session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// HTTP exchanges of one remote connection.
pub(super) struct Exchange {
    pub(super) http: Http,
    pub(super) session: SessionState,
    to_us: Turn<Output>,
    log: Turn<Output>,
    redact: Redact,
    pub(super) memory: Allowance,
    notes: Notes,
    /// Cancelled when the server has forgotten the session, which closes the connection.
    pub(super) over: CancellationToken,
}

/// Streams and callbacks for the server's output.
pub(super) struct Ends {
    /// Standard output of the connection, for messages.
    pub(super) to_us: Output,
    /// Standard error of the connection, for log lines.
    pub(super) log: Output,
    /// Redacts the secrets sent to the server.
    pub(super) redact: Redact,
}

/// Reasons for failures, shared with the owner of the connection.
pub(super) struct Notes {
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

/// Login with which a stream of unsolicited messages was opened. The stream of a request has no such login, because a
/// login that ends while the server carries out a request does not affect the response.
struct StreamLogin(LoginId);

impl Exchange {
    pub(super) fn new(
        http: Http,
        Ends { to_us, log, redact }: Ends,
        memory: Allowance,
        notes: Notes,
    ) -> Self {
        let (to_us, log, over) = (Turn::new(to_us), Turn::new(log), CancellationToken::new());
        Self { http, session: SessionState::default(), to_us, log, redact, memory, notes, over }
    }

    /// Sends a request and forwards everything that the server returns.
    pub(super) async fn request(
        &self,
        id: &Id,
        message: Incoming,
        line: Vec<u8>,
        held: Option<Share>,
    ) -> Result<(), Fault> {
        let method = if let Incoming::Request { method, .. } = &message { method.as_str() } else { "" };
        let (is_initialize, line) = (method == "initialize", Bytes::from(line));
        self.session.note(id, method, &line);
        let headers = self.session().beside(&message);
        drop(message);
        let mut awaited = Awaited { id, is_initialize, is_answered: false };
        let reply = self.accepted(headers, line, &mut awaited).await?;
        drop(held);
        let Some(reply) = reply else { return Ok(()) };
        if is_initialize {
            self.session().session_of(reply.response.headers());
        }
        match form(reply.response.headers()) {
            Form::Message => self.read_message(reply, &mut awaited).await?,
            Form::Events => self.follow(reply, &mut awaited).await?,
            Form::WebPage => return Err(Fault::WebPage),
            Form::Other(form) => return Err(Fault::Form(form)),
        }
        if awaited.is_answered { Ok(()) } else { Err(Fault::Truncated) }
    }

    /// Sends a request until the server accepts it. If the server is busy, retries after a delay. If the server has
    /// forgotten the session, retries in a new session. Returns `None` if the response was already handled.
    async fn accepted(
        &self,
        mut headers: HeaderMap,
        line: Bytes,
        awaited: &mut Awaited<'_>,
    ) -> Result<Option<Reply>, Fault> {
        let (mut attempt, mut is_renewed) = (0, false);
        loop {
            let session = self.session().clone();
            let reply = self.http.send(Method::POST, headers.clone(), line.clone()).await?;
            match self.taken(reply, Some(awaited)).await {
                Err(Fault::Forgotten) if !std::mem::replace(&mut is_renewed, true) => {
                    self.renew(&session).await?;
                    headers.extend(self.session().headers());
                }
                Err(fault) => match fault.pause(attempt) {
                    Some(pause) => {
                        attempt += 1;
                        tokio::time::sleep(pause).await;
                    }
                    None => return Err(fault),
                },
                taken => return taken,
            }
        }
    }

    /// Closes the connection because the server has forgotten its session.
    pub(super) fn forget(&self) {
        // Keeps the first reason if there is one.
        let _ = self.notes.reason.set(Fault::Forgotten.to_string());
        self.over.cancel();
    }

    /// Sends a message that expects no response.
    pub(super) async fn send_other(&self, message: &Incoming, line: Vec<u8>) -> Result<(), Fault> {
        let headers = self.session().beside(message);
        let sent = async {
            let reply = self.http.send(Method::POST, headers, line.into()).await?;
            let Some(reply) = self.taken(reply, None).await? else { return Ok(()) };
            let (mut body, connection) = reply.body();
            // Some servers send a body, which is discarded.
            if tokio::io::copy(&mut body, &mut tokio::io::sink()).await.is_ok() {
                self.http.keep(connection).await;
            }
            Ok(())
        };
        let late = |_| Err(Fault::Truncated);
        tokio::time::timeout(ACCEPT_TIMEOUT, sent).await.unwrap_or_else(late)
    }

    /// Listens for messages that belong to no request, if the server offers a stream for them.
    pub(super) async fn listen(&self) {
        let mut position = Position::default();
        let mut failures = 0;
        loop {
            let session = self.session().clone();
            let login = StreamLogin(self.http.login_id().await);
            match self.open(&position).await {
                Ok(reply) => {
                    failures = 0;
                    let login = Some(&login);
                    if let Err(Fault::Over) = self.read_events(reply, None, &mut position, login).await {
                        return;
                    }
                }
                // The server offers no such stream.
                Err(Fault::Status { status: 405, .. } | Fault::NotFound) => return,
                Err(
                    fault @ (Fault::Unauthorized { .. } | Fault::Login(_) | Fault::WebPage | Fault::Form(_)),
                ) => {
                    let text = format!("failed to listen for unsolicited messages: {fault}");
                    self.say(&text).await;
                    if !fault.needs_login() {
                        return;
                    }
                    self.notes.login.refuse(login.0.clone());
                    // With the same login, the server would refuse again.
                    while self.http.login_id().await == login.0 {
                        self.notes.login.until_accepted().await;
                    }
                }
                Err(Fault::Forgotten) => match self.renew(&session).await {
                    Ok(()) => position = Position::default(),
                    Err(_) => return self.forget(),
                },
                Err(Fault::Over) => return,
                Err(_) => failures += 1,
            }
            tokio::time::sleep(position.pause() * 2_u32.pow(failures.min(MAX_FAILURES))).await;
        }
    }

    /// Closes the session at the server.
    pub(super) async fn goodbye(&self) {
        let headers = self.session().headers();
        if !self.session().has_session() || self.over.is_cancelled() {
            return;
        }
        // On failure, the server's own timeout closes the session.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.http.send_last(Method::DELETE, headers)).await;
    }

    /// Writes a line to the connection's standard output.
    pub(super) async fn pass(&self, line: &[u8]) -> Result<(), Fault> {
        self.to_us.lock().await.write_all(line).await.map_err(|_| Fault::Over)
    }

    /// Answers a request with an error of our own, and records the message.
    pub(super) async fn refuse(&self, id: &Id, fault: &Fault) -> Result<(), Fault> {
        if fault.needs_login() {
            self.notes.login.refuse(self.http.login_id().await);
        }
        let message = fault.to_string();
        // An authorization server may echo the tokens that were sent to it.
        let message = String::from_utf8_lossy(&(self.redact)(message.as_bytes())).into_owned();
        let line = error_line(Some(id), ErrorCode::INTERNAL_ERROR.0, &message);
        *self.notes.fault.lock().unwrap_or_else(PoisonError::into_inner) = message;
        self.pass(&line).await
    }

    /// Writes a line to the connection's standard error.
    pub(super) async fn say(&self, text: &str) {
        // Writing fails if the reader was dropped.
        let _ = self.log.lock().await.write_all(format!("{text}\n").as_bytes()).await;
    }

    fn session(&self) -> MutexGuard<'_, HttpSession> {
        self.session.now()
    }

    /// Checks a response. Returns `None` if its body was the awaited response and has already been forwarded.
    async fn taken(&self, reply: Reply, awaited: Option<&mut Awaited<'_>>) -> Result<Option<Reply>, Fault> {
        let has_session = self.session().has_session();
        let foreign = |text: &[u8]| self.foreign(text);
        match Head::of(&reply.response, awaited.is_some(), has_session, self.http.refused(), foreign) {
            Head::Good => {
                self.notes.login.accept();
                Ok(Some(reply))
            }
            Head::Faulty(fault) => Err(fault),
            Head::Explained(fault) => {
                let is_page = form(reply.response.headers()) == Form::WebPage;
                let reason = reply.reason().await;
                if has_session && fault.is_about_session(&explanation_of(&reason)) {
                    return Err(Fault::Forgotten);
                }
                match awaited {
                    Some(awaited) if answers(&reason, awaited.id) => {
                        self.deliver(reason, Some(awaited)).await?;
                        Ok(None)
                    }
                    Some(_) | None if is_page => Err(fault),
                    Some(_) | None => Err(fault.with_explanation(&self.foreign(&explanation_of(&reason)))),
                }
            }
        }
    }

    /// Redacts, sanitizes and shortens server text, for use in a message.
    fn foreign(&self, text: &[u8]) -> String {
        let text = (self.redact)(text);
        visible::head(&visible::line(&String::from_utf8_lossy(&text)), MAX_MESSAGE_LEN)
    }

    async fn read_message(&self, reply: Reply, awaited: &mut Awaited<'_>) -> Result<(), Fault> {
        let (body, connection) = reply.body_as_line();
        let mut lines = Lines::within(self.memory.clone(), body, MAX_LINE_BYTES);
        match lines.next().await {
            Ok(Some(Line::Whole(text, held))) => {
                match members(&text) {
                    None => self.deliver(text, Some(awaited)).await?,
                    Some(all) => {
                        for one in all {
                            self.deliver(one.get().into(), Some(awaited)).await?;
                        }
                    }
                }
                drop(held);
                self.http.keep(connection).await;
                Ok(())
            }
            Ok(Some(Line::TooLong { length, .. })) => Err(Fault::TooLong(length)),
            Ok(Some(Line::NoRoom { .. })) => Err(Fault::NoRoom),
            Ok(None) | Err(_) => Err(Fault::Truncated),
        }
    }

    /// Reads the event stream of a request, and resumes it until the response has arrived.
    async fn follow(&self, reply: Reply, awaited: &mut Awaited<'_>) -> Result<(), Fault> {
        let mut position = Position::default();
        self.read_events(reply, Some(awaited), &mut position, None).await?;
        let mut failures = 0;
        while !awaited.is_answered {
            // Without an event id, a resumed stream would not belong to this request.
            if position.last_id.is_none() {
                return Err(Fault::Truncated);
            }
            tokio::time::sleep(position.pause()).await;
            match self.open(&position).await {
                Ok(reply) => {
                    failures = 0;
                    self.read_events(reply, Some(awaited), &mut position, None).await?;
                }
                Err(fault @ (Fault::Forgotten | Fault::Over)) => return Err(fault),
                Err(fault) if failures == MAX_FAILURES => return Err(fault),
                Err(_) => failures += 1,
            }
        }
        Ok(())
    }

    /// Opens an event stream that continues after the last event.
    async fn open(&self, position: &Position) -> Result<Reply, Fault> {
        let headers = self.session().after(position.last_id.as_deref());
        let reply = self.http.send(Method::GET, headers, Vec::new().into()).await?;
        let reply = self.taken(reply, None).await?.ok_or(Fault::Truncated)?;
        match form(reply.response.headers()) {
            Form::Events => Ok(reply),
            Form::WebPage => Err(Fault::WebPage),
            Form::Message => Err(Fault::Form("application/json".to_owned())),
            Form::Other(form) => Err(Fault::Form(form)),
        }
    }

    /// Forwards the events of a stream until the stream ends or `login` is no longer current. `login` is the login with
    /// which the stream was opened.
    async fn read_events(
        &self,
        reply: Reply,
        mut awaited: Option<&mut Awaited<'_>>,
        position: &mut Position,
        login: Option<&StreamLogin>,
    ) -> Result<(), Fault> {
        let (body, connection) = reply.body();
        let mut events = Events::new(body, self.memory.clone());
        loop {
            let is_answered = awaited.as_ref().is_some_and(|awaited| awaited.is_answered);
            let next = events.next(position);
            let next = if is_answered {
                match tokio::time::timeout(AFTER_ANSWER, next).await {
                    Ok(next) => next,
                    Err(_) => return Ok(()),
                }
            } else {
                next.await
            };
            if let Some(StreamLogin(opened)) = login
                && self.http.login_id().await != *opened
            {
                return Ok(());
            }
            match next {
                Ok(Some(Event::Message(text, held))) => {
                    self.deliver(text, awaited.as_deref_mut()).await?;
                    drop(held);
                }
                Ok(Some(lost @ (Event::TooLong(_) | Event::NoRoom))) => {
                    let fault = if let Event::TooLong(length) = lost {
                        Fault::TooLong(length)
                    } else {
                        Fault::NoRoom
                    };
                    // The skipped message may have been the awaited response. Otherwise, only a notification is lost.
                    if awaited.is_some() {
                        return Err(fault);
                    }
                    self.say(&fault.to_string()).await;
                }
                Ok(None) => {
                    self.http.keep(connection).await;
                    return Ok(());
                }
                Err(_) => return Ok(()),
            }
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
                self.session().version_of(result);
            }
        }
        let text = match (self.redact)(&text) {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => text,
        };
        let mut line = in_one_line(text);
        line.push(b'\n');
        self.pass(&line).await
    }
}
