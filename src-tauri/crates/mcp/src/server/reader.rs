//! Task that reads a server's output.

use super::pending::{MAX_CLIENT_REQUESTS, is_ours};
use super::{
    CANCELLED, ConnectionOptions, InvalidMessageLog, MemoryShare, SamplingRequest, ServerConnection,
};
use crate::server::client_request::ClientRequest;
use crate::server::{NoResponse, RootsSource};
use crate::wire::{
    Id, Incoming, Input, Line, Lines, MAX_CONCURRENT, MAX_LINE_BYTES, Outbox, Outgoing, PartialMessage,
    error_line, notification_line, request_parts, result_line, server_may_send,
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
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum length of an unsupported method name in an error, in characters.
const MAX_METHOD_LEN: usize = 100;

/// Server request that requires the user's approval.
pub(crate) const SAMPLING: &str = "sampling/createMessage";

/// State of the reading task.
pub(super) struct Reader {
    pub(super) connection: ServerConnection,
    pub(super) client: Outbox,
    pub(super) roots: Arc<dyn RootsSource>,
    pub(super) client_supports: watch::Receiver<HashSet<String>>,
    pub(super) sampling: mpsc::UnboundedSender<SamplingRequest>,
    pub(super) log_invalid: InvalidMessageLog,
    pub(super) sent_roots: watch::Sender<u64>,
    /// One permit for each answer that may still be queued.
    pub(super) unwritten: Arc<Semaphore>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.connection.close(&NoResponse::ServerExited(None));
    }
}

impl Reader {
    /// Creates the state of the task, and the reader of the server's lines.
    pub(super) fn new(
        connection: ServerConnection,
        from: ConnectionOptions,
        sent_roots: watch::Sender<u64>,
    ) -> (Self, Lines<Input>) {
        let ConnectionOptions { stdout, client, memory, roots, client_supports, sampling, log_invalid } =
            from;
        let unwritten = Arc::new(Semaphore::new(MAX_UNWRITTEN));
        let reader =
            Self { connection, client, roots, client_supports, sampling, log_invalid, sent_roots, unwritten };
        (reader, Lines::with_allowance(memory, stdout, MAX_LINE_BYTES))
    }

    pub(super) async fn run(self, mut stdout: Lines<Input>, end: oneshot::Sender<()>) {
        loop {
            // Never fails, because the semaphore is never closed.
            drop(self.unwritten.acquire().await);
            let Ok(Some(line)) = stdout.next().await else { break };
            // Lines that arrived together are written together.
            let _batch = self.client.batch_writes();
            self.handle_line(line);
            let mut remaining = MAX_CONCURRENT - 1;
            while remaining > 0
                && self.unwritten.available_permits() > 0
                && let Some(line) = stdout.try_next()
            {
                self.handle_line(line);
                remaining -= 1;
            }
        }
        self.connection.pending.mark_closed();
        // Sending fails if the receiver was dropped.
        let _ = end.send(());
        // Gives the owner of the process time to report the exit reason.
        tokio::time::sleep(EXIT_TIMEOUT).await;
    }

    fn handle_line(&self, line: Line) {
        match line {
            Line::Whole(line, share) => self.receive(line, share.map(Arc::new)),
            Line::TooLong { length, .. } => self.fail_all(&NoResponse::TooLong(length)),
            Line::NoMemory { .. } => self.fail_all(&NoResponse::NoMemory),
        }
    }

    pub(super) fn receive(&self, line: Vec<u8>, share: MemoryShare) {
        match Incoming::parse(&line) {
            Ok(incoming) => {
                // The line is freed early, because its needed parts have been copied.
                drop(line);
                self.handle_message(incoming, share);
            }
            Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
            Err(problem) => {
                let head = line.get(..line.len().min(500)).unwrap_or_default();
                let text = String::from_utf8_lossy(head);
                (self.log_invalid)(format!("invalid message on standard output ({problem}): {text}"));
                // Fails the request that the line was meant to answer.
                if let Some(PartialMessage { id, is_response: true }) = PartialMessage::recover(&line) {
                    self.connection
                        .pending
                        .fail_matching(id.as_deref(), || NoResponse::InvalidResponse(problem.to_string()));
                }
            }
        }
    }

    fn handle_message(&self, incoming: Incoming, share: MemoryShare) {
        match incoming {
            Incoming::Response { id, response } => {
                if !self.connection.pending.deliver(&id, response, share) {
                    (self.log_invalid)(format!("a response to an unknown request: {}", id.as_json()));
                }
            }
            Incoming::Request { id, method, params } => self.handle_request(id, &method, params, share),
            Incoming::Notification { method, params } => self.handle_notification(&method, params, share),
        }
    }

    fn handle_notification(&self, method: &str, params: Option<Box<RawValue>>, share: MemoryShare) {
        let params = match self
            .connection
            .stateless
            .get()
            .map(|stateless| stateless.translate_notification(method, params.as_deref()))
        {
            None => params,
            Some(Some(rewritten)) => rewritten.or(params),
            Some(None) => return,
        };
        if !server_may_send(method) {
            let text = format!("dropped a notification that servers must not send: {}", shorten(method));
            return (self.log_invalid)(text);
        }
        if method == CANCELLED {
            self.connection.pending.cancel_client_request(params.as_deref());
        }
        self.send_to_client(Outgoing::line(notification_line(method, params.as_deref())), share);
    }

    fn handle_request(&self, id: Id, method: &str, params: Option<Box<RawValue>>, share: MemoryShare) {
        match method {
            "ping" => self.answer(result_line(&id, &serde_json::Map::new())),
            "roots/list" => {
                let list = self.roots.roots();
                self.answer(result_line(&id, &list));
                self.sent_roots.send_replace(list.version);
            }
            _ if !self.client_supports.borrow().contains(method) => {
                let text =
                    format!("`{}` is not available through IronCurtain to this client", shorten(method));
                self.answer(error_line(Some(&id), ErrorCode::METHOD_NOT_FOUND.0, &text));
            }
            _ if is_ours(&id) => {
                let text = format!("the id {} is reserved for IronCurtain; use another", id.as_json());
                self.answer(error_line(Some(&id), ErrorCode::INVALID_REQUEST.0, &text));
            }
            _ if !self
                .connection
                .pending
                .add_client_request(&id, client_request_kind(method, params.as_deref())) =>
            {
                let text = format!(
                    "the client has not answered this id or {MAX_CLIENT_REQUESTS} other requests yet; wait for its responses"
                );
                self.answer(error_line(Some(&id), ErrorCode::INVALID_REQUEST.0, &text));
            }
            SAMPLING => {
                let request = SamplingRequest { id, params, share, connection: self.connection.clone() };
                // Sending fails only if the session is closed.
                let _ = self.sampling.send(request);
            }
            _ => self.send_to_client(request_parts(&id, method, params), share),
        }
    }

    /// Fails every request, because it is unknown which request the line was meant to answer.
    fn fail_all(&self, why: &NoResponse) {
        (self.log_invalid)(why.to_string());
        self.connection.pending.fail_all(why);
    }

    /// Sends an answer to the server, and takes one permit for the answer. A line is read only while a permit is
    /// available, because each line can cause one answer.
    fn answer(&self, line: Vec<u8>) {
        let unwritten = self.unwritten.clone().try_acquire_owned().ok();
        self.connection.to_server.send(Outgoing::line(line).holding(unwritten));
    }

    fn send_to_client(&self, line: Outgoing, share: MemoryShare) {
        self.client.send(line.holding(share));
    }
}

/// Returns the kind of a server request. A sampling request is withheld from the client until the user allows it.
fn client_request_kind(method: &str, params: Option<&RawValue>) -> ClientRequest {
    match method {
        SAMPLING => ClientRequest::Withheld,
        _ => ClientRequest::new(method, params),
    }
}

/// Returns a method name shortened for an error message.
fn shorten(method: &str) -> String {
    visible::head(&visible::line(method), MAX_METHOD_LEN)
}
