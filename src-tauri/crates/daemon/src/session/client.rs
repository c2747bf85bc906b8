//! Client side of a session: reads the client's messages and handles them.
//!
//! - INVARIANT: a message without an id is forwarded only after `initialize`, and only if it is a notification that MCP
//!   defines.

use super::call::{CallBatch, handle_call};
use super::in_flight::Ticket;
use super::passthrough::{Rejection, is_allowed_when_paused, is_passed_through, record_and_forward};
use super::refusal::denied;
use super::tool_call::CALL_TOOL;
use super::{Session, client_notifications, echo, initialize};
use ironcurtain_consent::Stop;
use ironcurtain_mcp::client::{ClientMessage, ClientReader, ClientVersion};
use ironcurtain_mcp::server::{ClientAnswer, MemoryShare, ServerAnswer};
use ironcurtain_mcp::wire::{
    Id, Incoming, Line, MAX_CONCURRENT, MAX_LINE_BYTES, PartialMessage, Response, batch_members,
    client_may_send, error_line, id_in_truncated, notification_line, result_line,
};
use ironcurtain_policy::JudgedRequest;
use ironcurtain_server::DownReason;
use ironcurtain_visible as visible;
use rmcp::model::ErrorCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Maximum length of a method name in an error message, in characters.
const MAX_METHOD_LEN: usize = 100;

/// Error for a message that exceeds the memory budget.
const OUT_OF_MEMORY: &str = "not enough memory for a message of this length while other sessions use it; try again, or increase `memoryMib` in `config.json`";

/// Reason why reading from the client stopped.
pub(super) enum ReadEnd {
    /// The client disconnected.
    ClientEof,
    /// The client is sending IronCurtain's own messages back.
    Echo,
    /// Another daemon process is replacing this one.
    TakenOver {
        /// Beginning of an incomplete message, or `None` if it was discarded.
        unread: Option<Vec<u8>>,
        /// Returns the client's protocol version. Must be called after the session has closed.
        version: Box<dyn Fn() -> ClientVersion + Send + Sync>,
    },
}

/// Reads messages until the client disconnects or the session is handed over.
pub(super) async fn read(session: &Arc<Session>, mut lines: ClientReader) -> ReadEnd {
    let taken_over = &session.services.shutdown.taken_over;
    // All input that was handed over must be processed before the session is handed over again.
    let is_handed_over = lines.is_channel();
    loop {
        let line = tokio::select! {
            biased;
            () = taken_over.cancelled(), if !is_handed_over => match lines.try_pending() {
                Some(line) => Ok(Some(line)),
                None => return ReadEnd::TakenOver { version: Box::new(lines.version()), unread: lines.into_unread() },
            },
            line = lines.next() => line,
        };
        let Ok(Some(message)) = line else {
            if is_handed_over && taken_over.is_cancelled() {
                return ReadEnd::TakenOver {
                    version: Box::new(lines.version()),
                    unread: lines.into_unread(),
                };
            }
            return ReadEnd::ClientEof;
        };
        // Each line causes at most one reply. Waiting here stops reading from a client that does not read its
        // replies. The semaphore is never closed.
        drop(session.unread.acquire().await);
        let line = match message {
            ClientMessage::Line(line) => line,
            ClientMessage::Refused(refused) => {
                session.record_refused(&refused).await;
                continue;
            }
        };
        let mut calls = CallBatch::default();
        let (mut next, mut remaining) = (Some(line), MAX_CONCURRENT);
        while let Some(line) = next {
            if handle_next(session, line, &mut calls).await.is_break() {
                session.log_problem(format!("the session was ended: {}", echo::ECHO_REASON));
                return ReadEnd::Echo;
            }
            remaining -= 1;
            let has_more = remaining > 0 && session.unread.available_permits() > 0;
            next = if has_more { lines.try_next() } else { None };
        }
        calls.forward(session).await;
    }
}

/// Handles a line. Returns `Break` if the client echoes IronCurtain's messages.
async fn handle_next(session: &Arc<Session>, line: Line, calls: &mut CallBatch) -> ControlFlow<()> {
    match line {
        Line::Whole(line, _) if line.iter().all(u8::is_ascii_whitespace) => ControlFlow::Continue(()),
        Line::Whole(line, share) => handle_line(session, line, share.map(Arc::new), calls).await,
        Line::TooLong { length, head } => {
            let text = format!("the message is {length} bytes long; the limit is {MAX_LINE_BYTES} bytes");
            reject_line(session, &head, &text).await;
            ControlFlow::Continue(())
        }
        Line::NoMemory { head } => {
            reject_line(session, &head, OUT_OF_MEMORY).await;
            ControlFlow::Continue(())
        }
    }
}

/// Records that a line was not processed, and sends the client an error for it.
async fn reject_line(session: &Session, head: &[u8], text: &str) {
    session.dropped(text).await;
    session.reply(error_line(id_in_truncated(head).as_ref(), ErrorCode::INVALID_REQUEST.0, text));
}

/// Handles a line, which may be a JSON-RPC batch. Returns `Break` if the client echoes IronCurtain's messages.
async fn handle_line(
    session: &Arc<Session>,
    line: Vec<u8>,
    budget: MemoryShare,
    calls: &mut CallBatch,
) -> ControlFlow<()> {
    let batch = if session.has_batches.load(Ordering::Relaxed) { batch_members(&line) } else { None };
    let Some(batch) = batch else { return handle_message(session, line, budget, calls).await };
    for message in batch {
        handle_message(session, message.get().as_bytes().to_vec(), budget.clone(), calls).await?;
    }
    ControlFlow::Continue(())
}

async fn handle_message(
    session: &Arc<Session>,
    line: Vec<u8>,
    budget: MemoryShare,
    calls: &mut CallBatch,
) -> ControlFlow<()> {
    let incoming = Incoming::parse(&line);
    if !matches!(&incoming, Ok(Incoming::Request { method, .. }) if method == CALL_TOOL) {
        // The message may refer to a call in the batch, so the batch is forwarded before the message.
        calls.forward(session).await;
    }
    let is_request_or_notification =
        matches!(incoming, Ok(Incoming::Request { .. } | Incoming::Notification { .. }));
    if !is_request_or_notification
        && session.echo.lock().unwrap_or_else(PoisonError::into_inner).is_echoing(&line)
    {
        return ControlFlow::Break(());
    }
    match incoming {
        Ok(Incoming::Request { id, method, params }) => {
            // The parsed request contains copies of the data, so the line can be freed.
            drop(line);
            handle_request(session, id, &method, params, budget, calls).await
        }
        Ok(Incoming::Notification { method, params }) => {
            handle_notification(session, &method, params.as_deref(), budget).await
        }
        Ok(Incoming::Response { id, response }) => {
            let Err(response) = session.client_roots.take_answer(&id, response) else {
                return ControlFlow::Continue(());
            };
            // The server process that sent the request may have exited in the meantime.
            let connection = session.server.connection_now();
            if let Some(request) = connection.and_then(|connection| connection.take_client_request(&id)) {
                let answer = ClientAnswer::build(request.request(), &response);
                match session.record_client_answer(&id, request.request(), &answer).await {
                    Ok(()) => request.respond(answer, budget),
                    Err(problem) => request.refuse(ErrorCode::INTERNAL_ERROR.0, &denied(problem)),
                }
            }
        }
        Err(problem) => {
            session.dropped(&problem.to_string()).await;
            let id = PartialMessage::recover(&line).and_then(|partial| partial.id());
            session.reply(error_line(id.as_ref(), problem.code(), &problem.to_string()));
        }
    }
    ControlFlow::Continue(())
}

async fn handle_request(
    session: &Arc<Session>,
    id: Id,
    method: &str,
    params: Option<Box<RawValue>>,
    budget: MemoryShare,
    calls: &mut CallBatch,
) {
    let Some(ticket) = session.in_flight.enter(&id) else {
        let text = format!("the id {} is in use by a pending request", id.as_json());
        session.dropped(&text).await;
        session.reply(error_line(Some(&id), ErrorCode::INVALID_REQUEST.0, &text));
        return;
    };
    let request = (method, params.as_deref());
    match method {
        "ping" => session.finish(&ticket, result_line(&id, &serde_json::Map::new())),
        "initialize" => initialize(session, ticket, params.as_deref()),
        _ if !session.is_initialized.load(Ordering::Relaxed) => {
            let problem = (ErrorCode::INVALID_REQUEST, "the first request must be `initialize`");
            session.reject(&ticket, request, Rejection::Malformed, problem).await;
        }
        _ if session.is_paused() && !is_allowed_when_paused(method) && method != CALL_TOOL => {
            let problem = (ErrorCode::INVALID_REQUEST, &*denied(Stop::Paused));
            session.reject(&ticket, request, Rejection::Paused, problem).await;
        }
        _ if method == CALL_TOOL || JudgedRequest::parse(method).is_some() => {
            handle_call(session, ticket, request, budget, calls).await
        }
        _ if is_passed_through(method) => record_and_forward(session, ticket, request, budget).await,
        _ => {
            let text = format!("`{}` is not available through IronCurtain", clipped(method));
            session
                .reject(&ticket, request, Rejection::Malformed, (ErrorCode::METHOD_NOT_FOUND, &text))
                .await;
        }
    }
}

fn initialize(session: &Arc<Session>, ticket: Ticket, params: Option<&RawValue>) {
    let is_remote = session.config.remote.is_some();
    let request = match initialize::rewrite(params, session.offers_sampling(), is_remote) {
        Ok(request) => request,
        Err(problem) => {
            return session.fail(&ticket, ErrorCode::INVALID_PARAMS, &problem.to_string());
        }
    };
    if session.is_initialized.swap(true, Ordering::Relaxed) {
        return session.fail(&ticket, ErrorCode::INVALID_REQUEST, "the session is initialized already");
    }
    *session.principal.claimed_name.lock().unwrap_or_else(PoisonError::into_inner) = request.claimed_name;
    session.accepted_requests.send_replace(request.accepted_requests);
    session.client_roots.declare(request.has_roots);
    session.services.changed();
    let weak_session = Arc::downgrade(session);
    let answered = move |outcome: Result<Response, DownReason>, held| {
        let Some(session) = weak_session.upgrade() else { return };
        match &outcome {
            Ok(Response::Result(result)) => {
                session.has_batches.store(initialize::has_batches(result), Ordering::Relaxed);
            }
            // The client may send `initialize` again.
            Ok(Response::Error(_)) | Err(_) => session.is_initialized.store(false, Ordering::Relaxed),
        }
        match outcome {
            Ok(response) => drop(session.respond(&ticket, ServerAnswer::Response(response), held)),
            Err(why) => {
                let problem = session.server.down(why).to_string();
                session.fail(&ticket, ErrorCode::INTERNAL_ERROR, &problem);
            }
        }
    };
    session.server.initialize(request.params, Box::new(answered));
}

async fn handle_notification(
    session: &Arc<Session>,
    method: &str,
    params: Option<&RawValue>,
    budget: MemoryShare,
) {
    if !client_may_send(method) {
        let text = "dropped a message without an id that is not a client notification";
        let text = format!("{text}: {}", clipped(method));
        session.dropped(&text).await;
        return session.log_problem(text);
    }
    if !session.is_initialized.load(Ordering::Relaxed) {
        return session.log_problem(format!("dropped a notification before `initialize`: {method}"));
    }
    match method {
        "notifications/initialized" => {
            session.server.initialized(notification_line(method, None));
            session.client_roots.request_roots();
        }
        "notifications/cancelled" => session.handle_cancelled(params).await,
        // The client's own roots are not forwarded to servers.
        "notifications/roots/list_changed" => session.client_roots.request_roots(),
        _ => {
            // If no server is running, the notification is dropped, because a new server process has no state that the
            // notification could concern.
            if let Some(connection) = session.server.connection_now() {
                let params = client_notifications::allowed_params(method, params);
                connection.send(notification_line(method, params.as_deref()), budget);
            }
        }
    }
}

/// Truncates a method name to [`MAX_METHOD_LEN`] and escapes invisible characters, for an error message.
fn clipped(method: &str) -> String {
    visible::head(&visible::line(method), MAX_METHOD_LEN)
}

impl Session {
    /// Writes a problem with the client to the session log.
    fn log_problem(&self, text: String) {
        self.log.write(text);
    }

    /// Handles `notifications/cancelled`: closes the question and forwards the cancellation if the request was already
    /// sent.
    async fn handle_cancelled(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: Box<RawValue>,
        }
        let Some(cancelled) = params.and_then(|p| serde_json::from_str::<Cancelled>(p.get()).ok()) else {
            return;
        };
        let Ok(id) = Id::try_from(&*cancelled.request_id) else { return };
        let Some(call) = self.in_flight.cancel(&id) else { return };
        self.abandon(&id, &call, "the client cancelled the call").await;
        if let Some(at_server) = call.at_server {
            // The reason is omitted, because it is unchecked client text.
            at_server.cancel(None);
        }
    }
}
