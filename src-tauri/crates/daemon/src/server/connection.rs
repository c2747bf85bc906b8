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

mod asked;
pub(super) mod modern;

pub use asked::{AtServer, PendingRequest, ServerAnswer};

use super::down::{NoAnswer, ServerExit};
use super::roots::ServerView;
use crate::consent::visible;
use crate::session_log::SessionLog;
use crate::wire::{Allowance, Id, Incoming, Input, Line, Lines, MAX_LINE_BYTES, Outbox, Outgoing, Output};
use crate::wire::{Response, Salvage, Share, error_line, notification_line, request_parts};
use crate::wire::{response_parts, result_line, server_may_tell};
pub(super) use asked::Then;
use asked::{Asked, MOST_OF_CLIENT};
use modern::ModernServer;
use rmcp::model::ErrorCode;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::AbortHandle;

/// The number of answers of ours that may wait for a server that does not read.
const MOST_UNWRITTEN: usize = 256;

/// The time for which requests without an answer wait to be told how their server ended.
const ENDING_BOUND: Duration = Duration::from_secs(1);

/// The number of characters of a client's reason for taking a request back that are passed on.
const LONGEST_REASON: usize = 1000;

/// The notification by which whoever sent a request takes it back.
const CANCELLED: &str = "notifications/cancelled";

/// The number of characters of a method that is not taken that are repeated.
const LONGEST_METHOD: usize = 100;

/// A share of a session's memory. It is given back when the last holder lets go: when the bytes it stands for are
/// written, or nobody wants them any more.
pub type MemoryShare = Option<Arc<Share>>;

/// The request of a server that is asked about.
const SAMPLING: &str = "sampling/createMessage";

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
    asked: Arc<Asked>,
    to_server: Outbox,
    /// Set when the server was told that the client is initialized.
    initialized: Arc<AtomicBool>,
    /// Set when the server is of the era without a handshake.
    modern: Arc<OnceLock<Arc<ModernServer>>>,
    /// The newest version of the roots that the server has asked for and been told.
    pub(super) told: watch::Receiver<u64>,
}

/// The parts that a conversation is started with.
pub(super) struct ConnectionOptions {
    pub(super) stdin: Output,
    pub(super) stdout: Input,
    /// The way to the client.
    pub(super) client: Outbox,
    /// The memory for what the server says and the client has not read yet. While there is none, the server waits.
    pub(super) memory: Allowance,
    /// The roots, for when the server asks for them.
    pub(super) roots: watch::Receiver<ServerView>,
    /// Methods the client takes from a server.
    pub(super) client_takes: watch::Receiver<HashSet<String>>,
    /// Takes what the server wants the client's model to answer.
    pub(super) sampling: mpsc::UnboundedSender<SamplingRequest>,
    /// Takes the lines that are no messages.
    pub(super) noise: SessionLog,
}

/// The task that reads. Dropped, it reads no more, and every request is told that there is no answer.
#[derive(Debug)]
pub(super) struct Reading {
    /// Completes when the server's output does.
    pub(super) ended: oneshot::Receiver<()>,
    task: AbortHandle,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ServerConnection {
    /// Starts the conversation.
    pub(super) fn start(options: ConnectionOptions) -> (Self, Reading) {
        let (told_sender, told) = watch::channel(0);
        let (end, ended) = oneshot::channel();
        let connection = Self {
            asked: Arc::default(),
            to_server: Outbox::new(options.stdin),
            initialized: Arc::default(),
            modern: Arc::default(),
            told,
        };
        let reader = Reader {
            asked: connection.asked.clone(),
            modern: connection.modern.clone(),
            to_server: connection.to_server.clone(),
            client: options.client,
            roots: options.roots,
            client_takes: options.client_takes,
            sampling: options.sampling,
            connection: connection.clone(),
            noise: options.noise,
            told: told_sender,
            unwritten: Arc::new(Semaphore::new(MOST_UNWRITTEN)),
        };
        let stdout = Lines::within(options.memory, options.stdout, MAX_LINE_BYTES);
        let task = tokio::spawn(reader.run(stdout, end)).abort_handle();
        (connection, Reading { ended, task })
    }

    /// Returns `true` if the server's output has ended: it takes nothing any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.asked.is_over()
    }

    /// From now on the server is spoken to without a handshake.
    fn speaks_modern(&self, server: ModernServer) {
        // It is found out once.
        let _ = self.modern.set(Arc::new(server));
    }

    /// Returns `true` if the server is of the era without a handshake.
    pub(super) fn is_modern(&self) -> bool {
        self.modern.get().is_some()
    }

    /// Sends a request.
    #[must_use]
    pub fn request(&self, method: &str, params: Option<&RawValue>) -> PendingRequest {
        let (answer, answered) = oneshot::channel();
        // Who no longer waits was cancelled.
        self.ask(method, params.map(ToOwned::to_owned), None, move |answered, _| drop(answer.send(answered)));
        PendingRequest::new(answered)
    }

    /// Sends a request, with a share of the memory that it has until it is written. Its answer goes to `then`, before anything
    /// that the server says later goes anywhere.
    pub fn ask(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
        held: MemoryShare,
        then: impl FnOnce(ServerAnswer, MemoryShare) + Send + 'static,
    ) -> AtServer {
        if let Some(modern) = self.modern.get() {
            return modern.ask(self, (method, params), held, Box::new(then));
        }
        AtServer::new(self.send_request(method, params, held, Box::new(then)), self.clone())
    }

    /// Sends a request in the words of the server; its id there, if it is sent.
    pub(super) fn send_request(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
        held: MemoryShare,
        then: Then,
    ) -> Option<u64> {
        let id = self.asked.enter(then)?;
        self.to_server.send(request_parts(&Id::from(id), method, params).holding(held));
        Some(id)
    }

    /// Sends a request in the words of the server and waits for its answer. When the wait is given up, the answer is ignored.
    pub(super) async fn send_and_wait(&self, method: &str, params: Option<Box<RawValue>>) -> ServerAnswer {
        let (answer, answered) = oneshot::channel();
        // As above.
        let then: Then = Box::new(move |answered, _| drop(answer.send(answered)));
        self.send_request(method, params, None, then);
        PendingRequest::new(answered).answer().await
    }

    /// Sends a notification of the client. A server without a handshake takes none of them.
    pub fn send(&self, line: Vec<u8>, held: MemoryShare) {
        if !self.is_modern() {
            self.to_server.send(Outgoing::line(line).holding(held));
        }
    }

    /// Tells the server, once, that the client is initialized.
    pub(super) fn tell_initialized(&self, line: &[u8]) {
        if self.initialized.swap(true, Ordering::Relaxed) {
            return;
        }
        match self.modern.get() {
            Some(modern) => modern.listen(self),
            None => self.send(line.to_vec(), None),
        }
    }

    /// A request is sent to the client on behalf of the server.
    pub fn asks_client(&self, id: Id) {
        self.asked.client_asked_for(id);
    }

    /// Gives the client's answer to a request of the server. One it did not make is dropped.
    pub fn respond(&self, id: &Id, response: Response, held: MemoryShare) {
        if !self.asked.client_answered(id) {
            return;
        }
        let response = match self.modern.get() {
            Some(modern) => modern.responded(self, id, response),
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
        self.asks_client(id.clone());
        self.respond(id, Response::Error(error), None);
    }

    /// Answers every request that still waits with how the server ended.
    pub(super) fn ended(&self, how: &ServerExit) {
        self.over(&NoAnswer::Ended(Some(Arc::new(how.clone()))));
    }

    fn over(&self, why: &NoAnswer) {
        self.asked.end(why);
        if let Some(modern) = self.modern.get() {
            modern.ended(why);
        }
    }

    fn cancel(&self, id: u64, reason: Option<&str>) {
        match self.modern.get() {
            Some(modern) => modern.cancel(self, id, reason),
            None => self.withdraw(id, reason),
        }
    }

    /// Tells the server that the request of this id there is taken back.
    pub(super) fn withdraw(&self, id: u64, reason: Option<&str>) {
        // One that was answered meanwhile is over.
        if self.asked.forget(id) {
            self.to_server.send(Outgoing::line(cancelled_line(id, reason)));
        }
    }
}

struct Reader {
    asked: Arc<Asked>,
    modern: Arc<OnceLock<Arc<ModernServer>>>,
    to_server: Outbox,
    client: Outbox,
    roots: watch::Receiver<ServerView>,
    client_takes: watch::Receiver<HashSet<String>>,
    sampling: mpsc::UnboundedSender<SamplingRequest>,
    /// For whoever is asked about a request.
    connection: ServerConnection,
    noise: SessionLog,
    told: watch::Sender<u64>,
    /// Has a permit for every answer of ours that may wait still.
    unwritten: Arc<Semaphore>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.asked.end(&NoAnswer::Ended(None));
        if let Some(modern) = self.modern.get() {
            modern.ended(&NoAnswer::Ended(None));
        }
    }
}

impl Reader {
    async fn run(self, mut stdout: Lines<Input>, end: oneshot::Sender<()>) {
        loop {
            // The semaphore is never closed.
            drop(self.unwritten.acquire().await);
            match stdout.next().await {
                Ok(Some(Line::Whole(line, share))) => self.receive(line, share.map(Arc::new)),
                Ok(Some(Line::TooLong { length, .. })) => self.gone(&NoAnswer::TooLong(length)),
                Ok(Some(Line::NoRoom { .. })) => self.gone(&NoAnswer::NoRoom),
                Ok(None) | Err(_) => break,
            }
        }
        self.asked.take_no_more();
        // Nobody may wait for it any more.
        let _ = end.send(());
        // Whoever owns the process says how it ended.
        tokio::time::sleep(ENDING_BOUND).await;
    }

    fn receive(&self, line: Vec<u8>, held: MemoryShare) {
        match Incoming::parse(&line) {
            Ok(incoming) => {
                // What of it is needed has been copied.
                drop(line);
                self.received(incoming, held);
            }
            Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
            Err(problem) => {
                let begins = line.get(..line.len().min(500)).unwrap_or_default();
                let text = String::from_utf8_lossy(begins);
                self.noise.write(format!("a line on standard output is no message ({problem}): {text}"));
                // Whoever waits for it need not wait any more.
                if let Some(Salvage { id, is_answer: true }) = Salvage::of(&line) {
                    self.asked.misanswered(id.as_deref(), || NoAnswer::NotUnderstood(problem.to_string()));
                }
            }
        }
    }

    fn received(&self, incoming: Incoming, held: MemoryShare) {
        match incoming {
            Incoming::Response { id, response } => {
                if !self.asked.answered(&id, response, held) {
                    self.noise.write(format!("an answer to a request that was not made: {}", id.as_json()));
                }
            }
            Incoming::Request { id, method, params } => self.handle_request(id, &method, params, held),
            Incoming::Notification { method, params } => self.handle_notification(&method, params, held),
        }
    }

    fn handle_notification(&self, method: &str, params: Option<Box<RawValue>>, held: MemoryShare) {
        let params = match self.modern.get().map(|modern| modern.notified(method, params.as_deref())) {
            None => params,
            Some(Some(rewritten)) => rewritten.or(params),
            Some(None) => return,
        };
        if !server_may_tell(method) {
            let text = format!("a notification that no server may send was dropped: {}", clipped(method));
            return self.noise.write(text);
        }
        if method == CANCELLED {
            self.asked.client_asked_no_more(params.as_deref());
        }
        self.to_client(Outgoing::line(notification_line(method, params.as_deref())), held);
    }

    fn handle_request(&self, id: Id, method: &str, params: Option<Box<RawValue>>, held: MemoryShare) {
        match method {
            "ping" => self.answer(result_line(&id, &serde_json::Map::new())),
            "roots/list" => {
                let shown = self.roots.borrow().clone();
                self.answer(result_line(&id, &shown.mcp_roots()));
                self.told.send_replace(shown.version);
            }
            _ if !self.client_takes.borrow().contains(method) => {
                let text =
                    format!("`{}` is not available through IronCurtain to this client", clipped(method));
                self.answer(error_line(Some(&id), ErrorCode::METHOD_NOT_FOUND.0, &text));
            }
            _ if !self.asked.client_asked(&id) => {
                let text = format!(
                    "the client has not answered this id yet, or {MOST_OF_CLIENT} others; wait for its answers"
                );
                self.answer(error_line(Some(&id), ErrorCode::INVALID_REQUEST.0, &text));
            }
            SAMPLING => {
                let request = SamplingRequest { id, params, held, connection: self.connection.clone() };
                // A session that is gone asks nobody.
                let _ = self.sampling.send(request);
            }
            _ => self.to_client(request_parts(&id, method, params), held),
        }
    }

    /// Which request such a line answers cannot be known for sure, so none is left waiting for it.
    fn gone(&self, why: &NoAnswer) {
        self.noise.write(why.to_string());
        self.asked.fail_all(why);
    }

    /// Answers the server. One line of it has one answer at most, and it is read only while there is a permit.
    fn answer(&self, line: Vec<u8>) {
        let unwritten = self.unwritten.clone().try_acquire_owned().ok();
        self.to_server.send(Outgoing::line(line).holding(unwritten));
    }

    fn to_client(&self, line: Outgoing, held: MemoryShare) {
        self.client.send(line.holding(held));
    }
}

/// A method that is named in a sentence.
fn clipped(method: &str) -> String {
    visible::head(&visible::line(method), LONGEST_METHOD)
}

fn cancelled_line(id: u64, reason: Option<&str>) -> Vec<u8> {
    let reason = reason.map(|reason| visible::head(reason, LONGEST_REASON));
    let params = serde_json::json!({ "requestId": id, "reason": reason });
    notification_line(CANCELLED, to_raw_value(&params).ok().as_deref())
}

#[cfg(test)]
mod tests;
