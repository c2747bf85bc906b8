//! Connection to one server process.
//!
//! - Results, errors and notification parameters reach the client unchanged and in order. Only ids are translated.
//! - INVARIANT: the only messages without an id that reach the client are notifications defined by the protocol.
//! - `roots/list` and `ping` are answered here. Other server requests reach the client only if the client declared the
//!   capability.
//! - Applies backpressure: stops reading from a server that does not read our responses.
//! - Invalid lines are counted and logged, and have no other effect.
//! - Every request is answered exactly once: by the server, or with an error.
//! - A single task reads the server's output. Senders write directly so that a call wakes only its server.

mod client_answer;
mod client_request;
mod no_response;
mod pending;
mod reader;
mod roots;
mod stateless;

pub use client_answer::ClientAnswer;
pub use client_request::ClientRequest;
pub use no_response::{NoResponse, ServerExit};
pub use pending::{OnAnswer, PendingRequest, RequestHandle, ServerAnswer};
pub(crate) use reader::SAMPLING;
pub use roots::{Root, RootList, RootsSource};
pub use stateless::{ClientHandle, Negotiation, initialize};

use crate::request::ServerRequest;
use crate::wire::{
    Allowance, Id, Input, Outbox, Outgoing, Output, Response, Share, WriteBatch, notification_line,
    request_parts, response_parts,
};
use ironcurtain_visible as visible;
use pending::PendingRequests;
use reader::Reader;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
#[cfg(feature = "fuzzing")]
pub use stateless::FuzzedServer;
use stateless::StatelessServer;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

/// Maximum length of a forwarded cancellation reason, in characters.
const MAX_REASON_LEN: usize = 1000;

/// Notification that cancels a request.
const CANCELLED: &str = "notifications/cancelled";

/// Share of a session's memory. The share is released when the last holder drops it, after the bytes were written or
/// discarded.
pub type MemoryShare = Option<Arc<Share>>;

/// Callback for log lines about invalid server messages.
pub type InvalidMessageLog = Arc<dyn Fn(String) + Send + Sync>;

/// Server request for a completion by the client's model. It requires the user's approval.
#[derive(Debug)]
pub struct SamplingRequest {
    /// Id that the server chose.
    pub id: Id,
    /// Parameters as raw JSON.
    pub params: Option<Box<RawValue>>,
    /// Memory that the request holds.
    pub share: MemoryShare,
    /// Connection that the request arrived on.
    pub connection: ServerConnection,
}

/// Handle to a connection. Clones share the connection.
#[derive(Debug, Clone)]
pub struct ServerConnection {
    pending: Arc<PendingRequests>,
    to_server: Outbox,
    /// `true` once `notifications/initialized` has been sent.
    initialized: Arc<AtomicBool>,
    /// State of a stateless server; unset for a handshake server.
    stateless: Arc<OnceLock<Arc<StatelessServer>>>,
    /// Version of the roots that were last sent to the server.
    pub sent_roots: watch::Receiver<u64>,
}

/// Output of a server, and the destinations of its messages.
pub struct ConnectionOptions {
    /// Standard output of the server process.
    pub stdout: Input,
    /// Sends lines to the client.
    pub client: Outbox,
    /// Memory for messages that the client has not read. Reading pauses while no memory is available.
    pub memory: Allowance,
    /// Source of the roots that the server may request.
    pub roots: Arc<dyn RootsSource>,
    /// Methods of server requests that the client supports.
    pub client_supports: watch::Receiver<HashSet<String>>,
    /// Receives sampling requests, which require the user's approval.
    pub sampling: mpsc::UnboundedSender<SamplingRequest>,
    /// Receives log lines about invalid messages.
    pub log_invalid: InvalidMessageLog,
}

/// Task that reads the server's output. Dropping it stops reading and fails all pending requests.
#[derive(Debug)]
pub struct ReaderTask {
    /// Completes at the end of the server's output.
    pub eof: oneshot::Receiver<()>,
    task: AbortHandle,
}

impl Drop for ReaderTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ServerConnection {
    /// Starts reading from the server.
    pub fn start(stdin: Output, from_server: ConnectionOptions) -> (Self, ReaderTask) {
        let (sent_roots_sender, sent_roots) = watch::channel(0);
        let (end, eof) = oneshot::channel();
        let connection = Self {
            pending: Arc::default(),
            to_server: Outbox::new(stdin),
            initialized: Arc::default(),
            stateless: Arc::default(),
            sent_roots,
        };
        let (reader, stdout) = Reader::new(connection.clone(), from_server, sent_roots_sender);
        let task = tokio::spawn(reader.run(stdout, end)).abort_handle();
        (connection, ReaderTask { eof, task })
    }

    /// Returns `true` if the server's output has reached EOF.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.pending.is_closed()
    }

    /// Closes the server's input, which asks the server to exit.
    pub fn close_input(&self) {
        self.to_server.close();
    }

    /// Switches the connection to the stateless protocol version.
    fn set_stateless(&self, server: StatelessServer) {
        // The state is set at most once.
        let _ = self.stateless.set(Arc::new(server));
    }

    /// Returns `true` if the server is stateless.
    pub fn is_stateless(&self) -> bool {
        self.stateless.get().is_some()
    }

    /// Sends a request of our own to the server.
    #[must_use]
    pub fn request(&self, method: &str, params: Option<&RawValue>) -> PendingRequest {
        let (answer, answered) = oneshot::channel();
        // Sending fails if the caller cancelled the request, which drops the receiver.
        let then = move |answered, _| drop(answer.send(answered));
        self.dispatch((method, params.map(ToOwned::to_owned)), None, Box::new(then));
        PendingRequest::new(answered)
    }

    /// Sends a client request, and holds `held` until the request is written. `then` receives the response before any
    /// later server message is processed.
    pub fn forward_request(
        &self,
        request: ServerRequest,
        share: MemoryShare,
        then: impl FnOnce(ServerAnswer, MemoryShare) + Send + 'static,
    ) -> RequestHandle {
        let ServerRequest { method, params } = request;
        self.dispatch((&method, params), share, Box::new(then))
    }

    fn dispatch(
        &self,
        (method, params): (&str, Option<Box<RawValue>>),
        share: MemoryShare,
        then: OnAnswer,
    ) -> RequestHandle {
        if let Some(stateless) = self.stateless.get() {
            return stateless.forward_request(self, (method, params), share, then);
        }
        RequestHandle::new(self.send_request(method, params, share, then), self.clone())
    }

    /// Sends a request in the server's protocol version. Returns its id, or `None` if the server has exited.
    pub fn send_request(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
        share: MemoryShare,
        then: OnAnswer,
    ) -> Option<u64> {
        let id = self.pending.add(then)?;
        self.to_server.send(request_parts(&Id::from(id), method, params).holding(share));
        Some(id)
    }

    /// Sends a request in the server's protocol version and waits for the response. If the wait is cancelled, the
    /// response is discarded.
    pub(crate) async fn send_and_wait(&self, method: &str, params: Option<Box<RawValue>>) -> ServerAnswer {
        let (answer, answered) = oneshot::channel();
        // Sending fails if the caller cancelled the request, which drops the receiver.
        let then: OnAnswer = Box::new(move |answered, _| drop(answer.send(answered)));
        self.send_request(method, params, None, then);
        PendingRequest::new(answered).answer().await
    }

    /// Delays writing until the guard is dropped, then writes all lines at once. Do not await while holding it.
    #[must_use]
    pub fn batch_writes(&self) -> WriteBatch {
        self.to_server.batch_writes()
    }

    /// Forwards a client notification. A stateless server receives none.
    pub fn send(&self, line: Vec<u8>, share: MemoryShare) {
        if !self.is_stateless() {
            self.to_server.send(Outgoing::line(line).holding(share));
        }
    }

    /// Sends `notifications/initialized`, or subscribes to a stateless server's notifications. Only the first call has
    /// an effect.
    pub fn send_initialized(&self, line: &[u8]) {
        if self.initialized.swap(true, Ordering::Relaxed) {
            return;
        }
        match self.stateless.get() {
            Some(stateless) => stateless.subscribe(self),
            None => self.send(line.to_vec(), None),
        }
    }

    /// Records a server request that was forwarded to the client.
    pub fn add_client_request(&self, id: Id, request: ClientRequest) {
        self.pending.add_input_request(id, request);
    }

    /// Removes and returns the server request that a client response answers, or `None` if no such request is in
    /// flight.
    #[must_use]
    pub fn take_client_request(&self, id: &Id) -> Option<UnansweredRequest> {
        let request = self.pending.take_client_request(id)?;
        Some(UnansweredRequest { id: id.clone(), request, connection: self.clone() })
    }

    /// Sends a response to a server request.
    fn respond(&self, id: &Id, response: Response, share: MemoryShare) {
        let response = match self.stateless.get() {
            Some(stateless) => stateless.handle_client_response(self, id, response),
            None => Some(response),
        };
        if let Some(response) = response {
            self.to_server.send(response_parts(id, response).holding(share));
        }
    }

    /// Answers a server request with an error.
    pub fn refuse(&self, id: &Id, code: i32, text: &str) {
        let error = json!({ "code": code, "message": text });
        let error = to_raw_value(&error).unwrap_or_else(|_| RawValue::NULL.to_owned());
        self.pending.remove_client_request(id);
        self.respond(id, Response::Error(error), None);
    }

    /// Fails all pending requests and reports why the server exited.
    pub fn report_exit(&self, exit: &ServerExit) {
        self.close(&NoResponse::ServerExited(Some(Arc::new(exit.clone()))));
    }

    fn close(&self, why: &NoResponse) {
        self.pending.close(why);
        if let Some(stateless) = self.stateless.get() {
            stateless.fail_waiting(why);
        }
    }

    fn cancel(&self, id: u64, reason: Option<&str>) {
        match self.stateless.get() {
            Some(stateless) => stateless.cancel(self, id, reason),
            None => self.send_cancelled(id, reason),
        }
    }

    /// Sends `notifications/cancelled` for a request. `id` is the request's id at the server.
    pub fn send_cancelled(&self, id: u64, reason: Option<&str>) {
        // A request that has already been answered needs no cancellation.
        if self.pending.remove(id) {
            self.to_server.send(Outgoing::line(cancelled_line(id, reason)));
        }
    }
}

/// Server request that the client has answered, before the response is sent to the server.
#[derive(Debug)]
pub struct UnansweredRequest {
    id: Id,
    request: ClientRequest,
    connection: ServerConnection,
}

impl UnansweredRequest {
    /// Returns the request, which determines the allowed content of the response.
    #[must_use]
    pub fn request(&self) -> &ClientRequest {
        &self.request
    }

    /// Sends the response to the server.
    pub fn respond(self, answer: ClientAnswer, share: MemoryShare) {
        self.connection.respond(&self.id, answer.response, share);
    }

    /// Answers the server with an error.
    pub fn refuse(self, code: i32, text: &str) {
        self.connection.refuse(&self.id, code, text);
    }
}

fn cancelled_line(id: u64, reason: Option<&str>) -> Vec<u8> {
    let reason = reason.map(|reason| visible::head(reason, MAX_REASON_LEN));
    let params = serde_json::json!({ "requestId": id, "reason": reason });
    notification_line(CANCELLED, to_raw_value(&params).ok().as_deref())
}

#[cfg(test)]
mod tests;
