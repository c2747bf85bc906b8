//! The client's side of a session: reading, writing, and what each message means.
//!
//! - INVARIANT: what has no id is passed on only if it is a notification of the protocol, and only after the greeting.

use super::in_flight::Ticket;
use super::passing::{Rejection, pass, pass_on_record, pass_resource, passes, passes_on_record};
use super::tasks::TaskRequest;
use super::{Session, echo, greeting};
use crate::consent::visible;
use crate::server::{AtServer, MemoryShare, Outgoing, PendingRequest, ServerAnswer, share};
use crate::wire::{Id, Incoming, Line, Lines, MAX_LINE_BYTES, Response};
use crate::wire::{
    client_may_tell, error_line, id_in, members, notification_line, response_line, result_line,
};
use rmcp::model::ErrorCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

/// The number of bytes that are read from a client at once.
const READ_BUFFER: usize = 64 * 1024;

/// The most characters that are repeated of a method that is not taken.
const LONGEST_METHOD: usize = 100;

/// Writes lines to the client until it is gone.
pub(super) async fn write(
    mut output: Box<dyn AsyncWrite + Send + Unpin>,
    mut lines: mpsc::Receiver<Outgoing>,
) {
    while let Some(Outgoing { line, held }) = lines.recv().await {
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            return;
        }
        drop(held);
    }
}

/// Reads the client's lines until it hangs up, or hears itself: then the reason.
pub(super) async fn read(
    session: &Arc<Session>,
    input: Box<dyn AsyncRead + Send + Unpin>,
) -> Option<&'static str> {
    let mut lines = Lines::new(BufReader::with_capacity(READ_BUFFER, input), MAX_LINE_BYTES);
    while let Ok(Some(line)) = lines.next().await {
        match line {
            Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
            Line::Whole(line) => {
                // The semaphore is never closed.
                let budget = session.budget.clone().acquire_many_owned(share(line.len())).await.ok()?;
                if handle_line(session, &line, Some(Arc::new(budget))).await.is_break() {
                    session.note(format!("the session was ended: {}", echo::WHY)).await;
                    return Some(echo::WHY);
                }
            }
            Line::TooLong { length, head } => {
                let text = format!("the message has {length} bytes; at most {MAX_LINE_BYTES} are taken");
                session.dropped(&text).await;
                session.reply(error_line(id_in(&head).as_ref(), ErrorCode::INVALID_REQUEST.0, &text)).await;
            }
        }
    }
    None
}

/// Does what a line says, which may be several messages; breaks off where the session hears itself.
async fn handle_line(session: &Arc<Session>, line: &[u8], budget: MemoryShare) -> ControlFlow<()> {
    let batch = if session.has_batches.load(Ordering::Relaxed) { members(line) } else { None };
    let Some(batch) = batch else { return handle_message(session, line, budget).await };
    for message in batch {
        handle_message(session, message.get().as_bytes(), budget.clone()).await?;
    }
    ControlFlow::Continue(())
}

async fn handle_message(session: &Arc<Session>, line: &[u8], budget: MemoryShare) -> ControlFlow<()> {
    let incoming = Incoming::parse(line);
    let is_asked = matches!(incoming, Ok(Incoming::Request { .. } | Incoming::Notification { .. }));
    if !is_asked && session.echo.lock().unwrap_or_else(PoisonError::into_inner).hears_itself(line) {
        return ControlFlow::Break(());
    }
    match incoming {
        Ok(Incoming::Request { id, method, params }) => {
            handle_request(session, id, &method, params, budget).await
        }
        Ok(Incoming::Notification { method, params }) => {
            handle_notification(session, &method, params.as_deref(), budget).await
        }
        Ok(Incoming::Response { id, response }) => {
            // The process that asked is gone if there is none.
            if let Some(connection) = session.server.connection_now() {
                connection.respond(id, response, budget);
            }
        }
        Err(problem) => {
            session.dropped(&problem.to_string()).await;
            session.reply(error_line(None, problem.code(), &problem.to_string())).await;
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
) {
    let Some(ticket) = session.in_flight.enter(&id) else {
        let text = format!("the id {} is in use by a request that has no answer yet", id.as_json());
        session.dropped(&text).await;
        session.reply(error_line(Some(&id), ErrorCode::INVALID_REQUEST.0, &text)).await;
        return;
    };
    let request = (method, params.as_deref());
    match method {
        "ping" => session.finish(&ticket, result_line(&id, &serde_json::Map::new())).await,
        "initialize" => initialize(session, ticket, params.as_deref(), budget).await,
        "server/discover" => discover(session, ticket),
        _ if !session.greeted.load(Ordering::Relaxed) => {
            let problem = (ErrorCode::INVALID_REQUEST, "the first request must be `initialize`");
            session.reject(&ticket, request, Rejection::Malformed, problem).await;
        }
        "tools/call" => super::call::handle_tool_call(session, ticket, params.as_deref(), budget).await,
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            pass_resource(session, ticket, request, budget).await
        }
        _ if passes_on_record(method) => pass_on_record(session, ticket, request, budget).await,
        _ if passes(method) => pass(session, ticket, method, params.as_deref(), budget).await,
        _ => {
            let text = format!("`{}` is not available through IronCurtain", clipped(method));
            session
                .reject(&ticket, request, Rejection::Malformed, (ErrorCode::METHOD_NOT_FOUND, &text))
                .await;
        }
    }
}

async fn initialize(session: &Arc<Session>, ticket: Ticket, params: Option<&RawValue>, budget: MemoryShare) {
    let greeting = match greeting::rewrite(params) {
        Ok(greeting) => greeting,
        Err(problem) => {
            return session.fail(&ticket, ErrorCode::INVALID_PARAMS, &problem.to_string()).await;
        }
    };
    if session.greeted.swap(true, Ordering::Relaxed) {
        return session.fail(&ticket, ErrorCode::INVALID_REQUEST, "the session is initialized already").await;
    }
    *session.principal.says_it_is.lock().unwrap_or_else(PoisonError::into_inner) = greeting.says_it_is;
    session.client_takes.send_replace(greeting.takes);
    session.services.changed();
    match session.server.connection().await {
        Err(problem) => {
            session.greeted.store(false, Ordering::Relaxed);
            session.fail(&ticket, ErrorCode::INTERNAL_ERROR, &problem.to_string()).await;
        }
        Ok(connection) => {
            let pending = connection.request_held("initialize", Some(&greeting.params), budget.clone());
            let (waiting, place) = (session.clone(), pending.place());
            session.track(&ticket.clone(), Some(place), async move {
                waiting.deliver_greeting(&ticket, pending, greeting.params, budget).await;
            });
        }
    }
}

/// Sends a client of the revision without a handshake back to the handshake; where there is no server to shake hands with, it is
/// told that instead.
fn discover(session: &Arc<Session>, ticket: Ticket) {
    let waiting = session.clone();
    session.track(&ticket.clone(), None, async move {
        match waiting.server.connection().await {
            Err(problem) => waiting.fail(&ticket, ErrorCode::INTERNAL_ERROR, &problem.to_string()).await,
            Ok(_) => {
                let text = "`server/discover` is not available through IronCurtain; begin with `initialize`";
                waiting.fail(&ticket, ErrorCode::METHOD_NOT_FOUND, text).await;
            }
        }
    });
}

async fn handle_notification(
    session: &Arc<Session>,
    method: &str,
    params: Option<&RawValue>,
    budget: MemoryShare,
) {
    if !client_may_tell(method) {
        let text = "a message without an id that is no notification of a client was dropped";
        let text = format!("{text}: {}", clipped(method));
        session.dropped(&text).await;
        return session.note(text).await;
    }
    if !session.greeted.load(Ordering::Relaxed) {
        return session.note(format!("a notification before the greeting was dropped: {method}")).await;
    }
    match method {
        "notifications/initialized" => session.server.initialized(notification_line(method, params)),
        "notifications/cancelled" => session.cancelled(params).await,
        // The client's own roots are never relayed.
        "notifications/roots/list_changed" => {}
        _ => {
            // A server that is not there has missed nothing that it could act on.
            if let Some(connection) = session.server.connection_now() {
                connection.send(notification_line(method, params), budget);
            }
        }
    }
}

/// A method that is named in a sentence.
fn clipped(method: &str) -> String {
    visible::head(&visible::line(method), LONGEST_METHOD)
}

impl Session {
    /// Sends a line to the client.
    pub(super) async fn reply(&self, line: Vec<u8>) {
        self.send(line, None).await;
    }

    async fn send(&self, line: Vec<u8>, held: MemoryShare) {
        self.echo.lock().unwrap_or_else(PoisonError::into_inner).sent(&line);
        // A client that is gone ends the session.
        let _ = self.to_client.send(Outgoing { line, held }).await;
    }

    /// Puts something odd about the client into the session's log.
    async fn note(&self, text: String) {
        // Without a log there is nobody to tell.
        let _ = self.log.send(text).await;
    }

    /// Answers a request with an error.
    pub(super) async fn fail(&self, ticket: &Ticket, code: ErrorCode, text: &str) {
        self.finish(ticket, error_line(Some(&ticket.id), code.0, text)).await;
    }

    /// Answers a request, unless it was cancelled meanwhile.
    pub(super) async fn finish(&self, ticket: &Ticket, line: Vec<u8>) {
        self.finish_held(ticket, line, None).await;
    }

    async fn finish_held(&self, ticket: &Ticket, line: Vec<u8>, held: MemoryShare) {
        if self.in_flight.finish(ticket) {
            self.send(line, held).await;
        }
    }

    /// Waits for the server's answer and passes it to the client.
    pub(super) async fn deliver(
        &self,
        ticket: &Ticket,
        pending: PendingRequest,
        of_task: Option<TaskRequest>,
        _budget: MemoryShare,
    ) {
        let (answered, held) = pending.answer_held().await;
        if let Some(request) = of_task {
            self.tasks.hear(&request, &answered);
        }
        self.pass_on(ticket, answered, held).await;
    }

    /// As [`Session::deliver`]; a greeting that failed may be tried again, one that worked is kept for a restart.
    async fn deliver_greeting(
        &self,
        ticket: &Ticket,
        pending: PendingRequest,
        params: Box<RawValue>,
        _budget: MemoryShare,
    ) {
        let (answered, held) = pending.answer_held().await;
        match &answered {
            ServerAnswer::Response(Response::Result(result)) => {
                self.has_batches.store(greeting::has_batches(result), Ordering::Relaxed);
                self.server.remember_greeting(params);
            }
            ServerAnswer::Response(Response::Error(_)) | ServerAnswer::Failed(_) => {
                self.greeted.store(false, Ordering::Relaxed);
            }
        }
        self.pass_on(ticket, answered, held).await;
    }

    /// Answers a request with what the server said.
    pub(super) async fn pass_on(&self, ticket: &Ticket, answered: ServerAnswer, held: MemoryShare) {
        match answered {
            ServerAnswer::Response(response) => {
                self.finish_held(ticket, response_line(&ticket.id, &response), held).await
            }
            ServerAnswer::Failed(reason) => {
                self.fail(ticket, ErrorCode::INTERNAL_ERROR, &reason.to_string()).await
            }
        }
    }

    /// Runs what waits for a request, so that cancelling the request ends it.
    pub(super) fn track(
        &self,
        ticket: &Ticket,
        at_server: Option<AtServer>,
        wait: impl Future<Output = ()> + Send + 'static,
    ) {
        self.in_flight.update(ticket, |request| {
            request.at_server = at_server;
            request.task = Some(tokio::spawn(wait).abort_handle());
        });
    }

    /// Notes that a request calls a tool.
    pub(super) fn calls(&self, ticket: &Ticket, tool: &str) {
        self.in_flight.update(ticket, |request| request.tool = Some(tool.to_owned()));
    }

    /// Notes which request at the server stands for this one.
    pub(super) fn forwarded(&self, ticket: &Ticket, at_server: AtServer) {
        self.in_flight.update(ticket, |request| request.at_server = Some(at_server));
    }

    /// The client takes a request back: its question is closed, and the server is told if it has the request.
    async fn cancelled(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: Box<RawValue>,
            reason: Option<String>,
        }
        let Some(cancelled) = params.and_then(|p| serde_json::from_str::<Cancelled>(p.get()).ok()) else {
            return;
        };
        let Ok(id) = Id::try_from(&*cancelled.request_id) else { return };
        let Some(call) = self.in_flight.take_back(&id) else { return };
        self.abandon(&id, &call, "the client took the call back").await;
        if let Some(at_server) = call.at_server {
            at_server.cancel(cancelled.reason.as_deref());
        }
    }
}
