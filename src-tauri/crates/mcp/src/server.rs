//! The conversation with one server process.
//!
//! - Results, errors and the parameters of notifications pass to the client as they came, in the order in which they came; only
//!   ids are exchanged.
//! - INVARIANT: nothing without an id reaches the client but the notifications of the protocol.
//! - `roots/list` and `ping` are answered here; other requests of the server go to the client only if the client
//!   said it can take them.
//! - A server that does not read our answers is not read either.
//! - Lines that are no messages are counted and logged, and change nothing.
//! - Every request is answered once: by the server, or with why it has no answer.
//! - One task reads. Whoever sends writes by itself, so that a call wakes nobody but its server.

mod client_answer;
mod no_answer;
mod pending;
mod reader;
mod roots;
mod stateless;

pub use client_answer::{ClientAnswer, ClientRequest};
pub use no_answer::{NoAnswer, ServerExit};
pub use pending::{OnAnswer, PendingRequest, RequestHandle, ServerAnswer};
pub use reader::SAMPLING;
pub use roots::{Root, RootList, RootsSource};
pub use stateless::{ClientSide, Negotiation, initialize};

use crate::request::ServerRequest;
use crate::wire::{Allowance, Gathered, Id, Input, Outbox, Outgoing, Output, Response, Share};
use crate::wire::{notification_line, request_parts, response_parts};
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

/// The number of characters of a client's reason for taking a request back that are passed on.
const LONGEST_REASON: usize = 1000;

/// The notification by which whoever sent a request takes it back.
const CANCELLED: &str = "notifications/cancelled";

/// A share of a session's memory. It is given back when the last holder lets go: when the bytes it stands for are
/// written, or nobody wants them any more.
pub type MemoryShare = Option<Arc<Share>>;

/// Takes a line about what a server wrote that is no message.
pub type Noise = Arc<dyn Fn(String) + Send + Sync>;

/// Something that a server wants the client's model to answer.
#[derive(Debug)]
pub struct SamplingRequest {
    /// Its id.
    pub id: Id,
    /// Its parameters.
    pub params: Option<Box<RawValue>>,
    /// Its share of the memory.
    pub held: MemoryShare,
    /// The conversation that it is in.
    pub connection: ServerConnection,
}

/// A handle to the conversation.
#[derive(Debug, Clone)]
pub struct ServerConnection {
    asked: Arc<PendingRequests>,
    to_server: Outbox,
    /// Set when the server was told that the client is initialized.
    initialized: Arc<AtomicBool>,
    /// Set when the server is of the era without a handshake.
    stateless: Arc<OnceLock<Arc<StatelessServer>>>,
    /// The newest version of the roots that the server has asked for and been told.
    pub told: watch::Receiver<u64>,
}

/// The server's output, and where to with what it says.
pub struct ConnectionOptions {
    /// Its standard output.
    pub stdout: Input,
    /// The way to the client.
    pub client: Outbox,
    /// The memory for what the server says and the client has not read yet. While there is none, the server waits.
    pub memory: Allowance,
    /// The roots, for when the server asks for them.
    pub roots: Arc<dyn RootsSource>,
    /// Methods the client takes from a server.
    pub client_takes: watch::Receiver<HashSet<String>>,
    /// Takes what the server wants the client's model to answer.
    pub sampling: mpsc::UnboundedSender<SamplingRequest>,
    /// Takes the lines that are no messages.
    pub noise: Noise,
}

/// The task that reads. Dropped, it reads no more, and every request is told that there is no answer.
#[derive(Debug)]
pub struct Reading {
    /// Completes when the server's output does.
    pub ended: oneshot::Receiver<()>,
    task: AbortHandle,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ServerConnection {
    /// Starts the conversation.
    pub fn start(stdin: Output, from_server: ConnectionOptions) -> (Self, Reading) {
        let (told_sender, told) = watch::channel(0);
        let (end, ended) = oneshot::channel();
        let connection = Self {
            asked: Arc::default(),
            to_server: Outbox::new(stdin),
            initialized: Arc::default(),
            stateless: Arc::default(),
            told,
        };
        let (reader, stdout) = Reader::new(connection.clone(), from_server, told_sender);
        let task = tokio::spawn(reader.run(stdout, end)).abort_handle();
        (connection, Reading { ended, task })
    }

    /// Returns `true` if the server's output has ended: it takes nothing any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.asked.is_over()
    }

    /// From now on the server is spoken to without a handshake.
    fn set_stateless(&self, server: StatelessServer) {
        // It is found out once.
        let _ = self.stateless.set(Arc::new(server));
    }

    /// Returns `true` if the server is of the era without a handshake.
    pub fn is_stateless(&self) -> bool {
        self.stateless.get().is_some()
    }

    /// Sends a request of ours.
    #[must_use]
    pub fn request(&self, method: &str, params: Option<&RawValue>) -> PendingRequest {
        let (answer, answered) = oneshot::channel();
        // Who no longer waits was cancelled.
        let then = move |answered, _| drop(answer.send(answered));
        self.pass((method, params.map(ToOwned::to_owned)), None, Box::new(then));
        PendingRequest::new(answered)
    }

    /// Sends a request of the client, with a share of the memory that it has until it is written. Its answer goes to `then`,
    /// before anything that the server says later goes anywhere.
    pub fn ask(
        &self,
        request: ServerRequest,
        held: MemoryShare,
        then: impl FnOnce(ServerAnswer, MemoryShare) + Send + 'static,
    ) -> RequestHandle {
        let ServerRequest { method, params } = request;
        self.pass((&method, params), held, Box::new(then))
    }

    fn pass(
        &self,
        (method, params): (&str, Option<Box<RawValue>>),
        held: MemoryShare,
        then: OnAnswer,
    ) -> RequestHandle {
        if let Some(stateless) = self.stateless.get() {
            return stateless.ask(self, (method, params), held, then);
        }
        RequestHandle::new(self.send_request(method, params, held, then), self.clone())
    }

    /// Sends a request in the words of the server; its id there, if it is sent.
    pub fn send_request(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
        held: MemoryShare,
        then: OnAnswer,
    ) -> Option<u64> {
        let id = self.asked.enter(then)?;
        self.to_server.send(request_parts(&Id::from(id), method, params).holding(held));
        Some(id)
    }

    /// Sends a request in the words of the server and waits for its answer. When the wait is given up, the answer is ignored.
    pub async fn send_and_wait(&self, method: &str, params: Option<Box<RawValue>>) -> ServerAnswer {
        let (answer, answered) = oneshot::channel();
        // As above.
        let then: OnAnswer = Box::new(move |answered, _| drop(answer.send(answered)));
        self.send_request(method, params, None, then);
        PendingRequest::new(answered).answer().await
    }

    /// Until this is dropped, what is sent waits: then all of it is written at once. Nothing may be waited for meanwhile.
    #[must_use]
    pub fn gather(&self) -> Gathered {
        self.to_server.gather()
    }

    /// Sends a notification of the client. A server without a handshake takes none of them.
    pub fn send(&self, line: Vec<u8>, held: MemoryShare) {
        if !self.is_stateless() {
            self.to_server.send(Outgoing::line(line).holding(held));
        }
    }

    /// Tells the server, once, that the client is initialized.
    pub fn send_initialized(&self, line: &[u8]) {
        if self.initialized.swap(true, Ordering::Relaxed) {
            return;
        }
        match self.stateless.get() {
            Some(stateless) => stateless.listen(self),
            None => self.send(line.to_vec(), None),
        }
    }

    /// Notes that a request is sent to the client on behalf of the server.
    pub fn asks_client(&self, id: Id, request: ClientRequest) {
        self.asked.client_asked_for(id, request);
    }

    /// Returns the request that a response of the client is for, once. `None` if the server has no such request in flight.
    #[must_use]
    pub fn take_client_request(&self, id: &Id) -> Option<UnansweredRequest> {
        let request = self.asked.client_answered(id)?;
        Some(UnansweredRequest { id: id.clone(), request, connection: self.clone() })
    }

    /// Sends the response to a request of the server.
    fn respond(&self, id: &Id, response: Response, held: MemoryShare) {
        let response = match self.stateless.get() {
            Some(stateless) => stateless.responded(self, id, response),
            None => Some(response),
        };
        if let Some(response) = response {
            self.to_server.send(response_parts(id, response).holding(held));
        }
    }

    /// Answers a request of the server, which the client was not given, with an error.
    pub fn refuse(&self, id: &Id, code: i32, text: &str) {
        let error = json!({ "code": code, "message": text });
        let error = to_raw_value(&error).unwrap_or_else(|_| RawValue::NULL.to_owned());
        self.asked.forget_client_request(id);
        self.respond(id, Response::Error(error), None);
    }

    /// Answers every request that still waits with how the server ended.
    pub fn ended(&self, how: &ServerExit) {
        self.over(&NoAnswer::Ended(Some(Arc::new(how.clone()))));
    }

    fn over(&self, why: &NoAnswer) {
        self.asked.end(why);
        if let Some(stateless) = self.stateless.get() {
            stateless.ended(why);
        }
    }

    fn cancel(&self, id: u64, reason: Option<&str>) {
        match self.stateless.get() {
            Some(stateless) => stateless.cancel(self, id, reason),
            None => self.withdraw(id, reason),
        }
    }

    /// Tells the server that the request of this id there is taken back.
    pub fn withdraw(&self, id: u64, reason: Option<&str>) {
        // One that was answered meanwhile is over.
        if self.asked.forget(id) {
            self.to_server.send(Outgoing::line(cancelled_line(id, reason)));
        }
    }
}

/// A request of a server that the client has responded to, and whose response has not been sent to the server yet.
#[derive(Debug)]
pub struct UnansweredRequest {
    id: Id,
    request: ClientRequest,
    connection: ServerConnection,
}

impl UnansweredRequest {
    /// Returns what the response may contain.
    #[must_use]
    pub fn request(&self) -> &ClientRequest {
        &self.request
    }

    /// Sends the response to the server.
    pub fn respond(self, answer: ClientAnswer, held: MemoryShare) {
        self.connection.respond(&self.id, answer.response, held);
    }

    /// Answers the server with an error.
    pub fn refuse(self, code: i32, text: &str) {
        self.connection.refuse(&self.id, code, text);
    }
}

fn cancelled_line(id: u64, reason: Option<&str>) -> Vec<u8> {
    let reason = reason.map(|reason| visible::head(reason, LONGEST_REASON));
    let params = serde_json::json!({ "requestId": id, "reason": reason });
    notification_line(CANCELLED, to_raw_value(&params).ok().as_deref())
}

#[cfg(test)]
mod tests;
