//! Task that reads a server's output.

use super::pending::{MAX_CLIENT_REQUESTS, is_ours};
use super::{CANCELLED, ConnectionOptions, MemoryShare, Noise, SamplingRequest, ServerConnection};
use crate::server::client_request::ClientRequest;
use crate::server::{NoAnswer, RootsSource};
use crate::wire::{
    Id, Incoming, Input, Line, Lines, MAX_CONCURRENT, MAX_LINE_BYTES, Outbox, Outgoing, Salvage, error_line,
    notification_line, request_parts, result_line, server_may_send,
};
use ironcurtain_visible as visible;
use rmcp::model::ErrorCode;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

/// Maximum number of our answers that are queued for a server that is not reading.
pub(super) const MAX_UNWRITTEN: usize = 256;

/// Maximum time that pending requests wait for the server's exit reason.
const ENDING_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum length of an unsupported method name in an error, in characters.
const MAX_METHOD_LEN: usize = 100;

/// Server request that requires the user's approval.
pub(crate) const SAMPLING: &str = "sampling/createMessage";

/// State of the reading task.
pub(super) struct Reader {
    pub(super) connection: ServerConnection,
    pub(super) client: Outbox,
    pub(super) roots: Arc<dyn RootsSource>,
    pub(super) client_takes: watch::Receiver<HashSet<String>>,
    pub(super) sampling: mpsc::UnboundedSender<SamplingRequest>,
    pub(super) noise: Noise,
    pub(super) told: watch::Sender<u64>,
    /// One permit for each answer that may still be queued.
    pub(super) unwritten: Arc<Semaphore>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.connection.over(&NoAnswer::Ended(None));
    }
}

impl Reader {
    /// Creates the state of the task, and the reader of the server's lines.
    pub(super) fn new(
        connection: ServerConnection,
        from: ConnectionOptions,
        told: watch::Sender<u64>,
    ) -> (Self, Lines<Input>) {
        let ConnectionOptions { stdout, client, memory, roots, client_takes, sampling, noise } = from;
        let unwritten = Arc::new(Semaphore::new(MAX_UNWRITTEN));
        let reader = Self { connection, client, roots, client_takes, sampling, noise, told, unwritten };
        (reader, Lines::within(memory, stdout, MAX_LINE_BYTES))
    }

    pub(super) async fn run(self, mut stdout: Lines<Input>, end: oneshot::Sender<()>) {
        loop {
            // Never fails, because the semaphore is never closed.
            drop(self.unwritten.acquire().await);
            let Ok(Some(line)) = stdout.next().await else { break };
            // Lines that arrived together are written together.
            let _gathered = self.client.gather();
            self.take(line);
            let mut left = MAX_CONCURRENT - 1;
            while left > 0
                && self.unwritten.available_permits() > 0
                && let Some(line) = stdout.next_now()
            {
                self.take(line);
                left -= 1;
            }
        }
        self.connection.asked.take_no_more();
        // Sending fails if the receiver was dropped.
        let _ = end.send(());
        // Gives the owner of the process time to report the exit reason.
        tokio::time::sleep(ENDING_TIMEOUT).await;
    }

    fn take(&self, line: Line) {
        match line {
            Line::Whole(line, share) => self.receive(line, share.map(Arc::new)),
            Line::TooLong { length, .. } => self.fail_all(&NoAnswer::TooLong(length)),
            Line::NoRoom { .. } => self.fail_all(&NoAnswer::NoRoom),
        }
    }

    pub(super) fn receive(&self, line: Vec<u8>, held: MemoryShare) {
        match Incoming::parse(&line) {
            Ok(incoming) => {
                // The line is freed early, because its needed parts have been copied.
                drop(line);
                self.received(incoming, held);
            }
            Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
            Err(problem) => {
                let begins = line.get(..line.len().min(500)).unwrap_or_default();
                let text = String::from_utf8_lossy(begins);
                (self.noise)(format!("invalid message on standard output ({problem}): {text}"));
                // Fails the request that the line was meant to answer.
                if let Some(Salvage { id, is_answer: true }) = Salvage::of(&line) {
                    self.connection
                        .asked
                        .misanswered(id.as_deref(), || NoAnswer::NotUnderstood(problem.to_string()));
                }
            }
        }
    }

    fn received(&self, incoming: Incoming, held: MemoryShare) {
        match incoming {
            Incoming::Response { id, response } => {
                if !self.connection.asked.answered(&id, response, held) {
                    (self.noise)(format!("a response to an unknown request: {}", id.as_json()));
                }
            }
            Incoming::Request { id, method, params } => self.handle_request(id, &method, params, held),
            Incoming::Notification { method, params } => self.handle_notification(&method, params, held),
        }
    }

    fn handle_notification(&self, method: &str, params: Option<Box<RawValue>>, held: MemoryShare) {
        let params = match self
            .connection
            .stateless
            .get()
            .map(|stateless| stateless.notified(method, params.as_deref()))
        {
            None => params,
            Some(Some(rewritten)) => rewritten.or(params),
            Some(None) => return,
        };
        if !server_may_send(method) {
            let text = format!("dropped a notification that servers must not send: {}", clipped(method));
            return (self.noise)(text);
        }
        if method == CANCELLED {
            self.connection.asked.client_asked_no_more(params.as_deref());
        }
        self.to_client(Outgoing::line(notification_line(method, params.as_deref())), held);
    }

    fn handle_request(&self, id: Id, method: &str, params: Option<Box<RawValue>>, held: MemoryShare) {
        match method {
            "ping" => self.answer(result_line(&id, &serde_json::Map::new())),
            "roots/list" => {
                let shown = self.roots.roots();
                self.answer(result_line(&id, &shown));
                self.told.send_replace(shown.version);
            }
            _ if !self.client_takes.borrow().contains(method) => {
                let text =
                    format!("`{}` is not available through IronCurtain to this client", clipped(method));
                self.answer(error_line(Some(&id), ErrorCode::METHOD_NOT_FOUND.0, &text));
            }
            _ if is_ours(&id) => {
                let text = format!("the id {} is reserved for IronCurtain; use another", id.as_json());
                self.answer(error_line(Some(&id), ErrorCode::INVALID_REQUEST.0, &text));
            }
            _ if !self.connection.asked.client_asked(&id, request_of(method, params.as_deref())) => {
                let text = format!(
                    "the client has not answered this id or {MAX_CLIENT_REQUESTS} other requests yet; wait for its responses"
                );
                self.answer(error_line(Some(&id), ErrorCode::INVALID_REQUEST.0, &text));
            }
            SAMPLING => {
                let request = SamplingRequest { id, params, held, connection: self.connection.clone() };
                // Sending fails only if the session is closed.
                let _ = self.sampling.send(request);
            }
            _ => self.to_client(request_parts(&id, method, params), held),
        }
    }

    /// Fails every request, because it is unknown which request the line was meant to answer.
    fn fail_all(&self, why: &NoAnswer) {
        (self.noise)(why.to_string());
        self.connection.asked.fail_all(why);
    }

    /// Sends an answer to the server, and takes one permit for the answer. A line is read only while a permit is
    /// available, because each line can cause one answer.
    fn answer(&self, line: Vec<u8>) {
        let unwritten = self.unwritten.clone().try_acquire_owned().ok();
        self.connection.to_server.send(Outgoing::line(line).holding(unwritten));
    }

    fn to_client(&self, line: Outgoing, held: MemoryShare) {
        self.client.send(line.holding(held));
    }
}

/// Returns the kind of a server request. A sampling request is withheld from the client until the user allows it.
fn request_of(method: &str, params: Option<&RawValue>) -> ClientRequest {
    match method {
        SAMPLING => ClientRequest::Withheld,
        _ => ClientRequest::of(method, params),
    }
}

/// Returns a method name shortened for an error message.
fn clipped(method: &str) -> String {
    visible::head(&visible::line(method), MAX_METHOD_LEN)
}
