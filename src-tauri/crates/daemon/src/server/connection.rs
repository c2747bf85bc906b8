//! The conversation with one server process.
//!
//! - Results, errors and the parameters of notifications pass to the client as they came; only ids are exchanged.
//! - INVARIANT: nothing without an id reaches the client but the notifications of the protocol.
//! - `roots/list` and `ping` are answered here; other requests of the server go to the client only if the client
//!   said it can take them.
//! - A server that does not read our answers is not read either.
//! - Lines that are no messages are counted and logged, and change nothing.

use super::down::NoAnswer;
use super::roots::ServerView;
use crate::consent::visible;
use crate::wire::{Id, Incoming, Input, Line, Lines, MAX_LINE_BYTES, Output, Response};
use crate::wire::{error_line, notification_line, request_line, response_line, result_line, server_may_tell};
use rmcp::model::ErrorCode;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

/// The number of bytes that are read from a server at once.
const READ_BUFFER: usize = 64 * 1024;

/// The number of answers of ours that may that wait for a server that does not read.
const MOST_UNWRITTEN: usize = 256;

/// The number of characters of a client's reason for taking a request back that are passed on.
const LONGEST_REASON: usize = 1000;

/// The number of characters of a method that is not taken that are repeated.
const LONGEST_METHOD: usize = 100;

/// A share of a session's memory. It is given back when the last holder lets go: when the bytes it stands for are
/// written, or nobody wants them any more.
pub type MemoryShare = Option<Arc<OwnedSemaphorePermit>>;

/// A line on its way to the client.
#[derive(Debug)]
pub struct Outgoing {
    /// With its line feed.
    pub line: Vec<u8>,
    /// Its share.
    pub held: MemoryShare,
}

/// The share that so many bytes need, in KiB, of which the semaphores are made.
#[must_use]
pub fn share(bytes: usize) -> u32 {
    u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX)
}

/// The outcome of a request.
#[derive(Debug, Clone)]
pub enum ServerAnswer {
    /// The server answered.
    Response(Response),
    /// It cannot have: the reason is for the client.
    Failed(NoAnswer),
}

/// A request under way. Dropped, its answer is ignored.
#[derive(Debug)]
pub struct PendingRequest {
    place: AtServer,
    answer: oneshot::Receiver<(ServerAnswer, MemoryShare)>,
}

/// The conversation that a request is in, and its id there.
#[derive(Debug, Clone)]
pub struct AtServer {
    id: u64,
    inbox: mpsc::UnboundedSender<ConnectionCommand>,
}

impl AtServer {
    /// Tells the server that the request is taken back. Another process than the one that has it is not told.
    pub fn cancel(&self, reason: Option<&str>) {
        // A conversation that is over has forgotten the request.
        let _ = self.inbox.send(ConnectionCommand::Cancel { id: self.id, reason: reason.map(str::to_owned) });
    }
}

impl PendingRequest {
    /// Its conversation and its id there, for taking it back.
    #[must_use]
    pub fn place(&self) -> AtServer {
        self.place.clone()
    }

    /// Waits for the answer.
    pub async fn answer(self) -> ServerAnswer {
        self.answer_held().await.0
    }

    /// Waits for the answer, with its share of the memory.
    pub async fn answer_held(self) -> (ServerAnswer, MemoryShare) {
        let ended = || ServerAnswer::Failed(NoAnswer::Ended);
        self.answer.await.unwrap_or_else(|_| (ended(), None))
    }
}

/// A handle to the conversation.
#[derive(Debug, Clone)]
pub struct ServerConnection {
    inbox: mpsc::UnboundedSender<ConnectionCommand>,
    ids: Arc<AtomicU64>,
    /// The newest version of the roots that the server has asked for and been told.
    pub(super) told: watch::Receiver<u64>,
}

#[derive(Debug)]
enum ConnectionCommand {
    Cancel {
        id: u64,
        reason: Option<String>,
    },
    Request {
        id: u64,
        line: Vec<u8>,
        held: MemoryShare,
        answer: oneshot::Sender<(ServerAnswer, MemoryShare)>,
    },
    Line(Vec<u8>, MemoryShare),
    Respond {
        id: Id,
        response: Response,
        held: MemoryShare,
    },
}

/// The parts that a conversation is started with.
pub(super) struct ConnectionOptions {
    pub(super) stdin: Output,
    pub(super) stdout: Input,
    /// Lines for the client.
    pub(super) client: mpsc::Sender<Outgoing>,
    /// The memory for what the server says and the client has not read yet. While there is none, the server waits.
    pub(super) memory: Arc<Semaphore>,
    /// The roots, for when the server asks for them.
    pub(super) roots: watch::Receiver<ServerView>,
    /// Methods the client takes from a server.
    pub(super) client_takes: watch::Receiver<HashSet<String>>,
    /// Takes the lines that are no messages.
    pub(super) noise: mpsc::Sender<String>,
}

impl ServerConnection {
    /// Starts the conversation; `ended` completes when the server's output does.
    pub(super) fn start(options: ConnectionOptions) -> (Self, oneshot::Receiver<()>) {
        let (inbox, commands) = mpsc::unbounded_channel();
        let (to_server, lines) = mpsc::unbounded_channel();
        let (told_sender, told) = watch::channel(0);
        let (end, ended) = oneshot::channel();
        tokio::spawn(write(options.stdin, lines));
        let task = ConnectionTask {
            to_server,
            client: options.client,
            memory: options.memory,
            roots: options.roots,
            client_takes: options.client_takes,
            noise: options.noise,
            told: told_sender,
            pending: HashMap::new(),
            asked_client: HashSet::new(),
            unwritten: Arc::new(Semaphore::new(MOST_UNWRITTEN)),
        };
        let stdout = Lines::new(BufReader::with_capacity(READ_BUFFER, options.stdout), MAX_LINE_BYTES);
        tokio::spawn(task.run(commands, stdout, end));
        (Self { inbox, ids: Arc::default(), told }, ended)
    }

    /// Returns `true` if the server's output has ended: it takes nothing any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.inbox.is_closed()
    }

    /// Sends a request.
    #[must_use]
    pub fn request(&self, method: &str, params: Option<&RawValue>) -> PendingRequest {
        self.request_held(method, params, None)
    }

    /// Sends a request whose bytes are a share of the client's memory until they are written.
    #[must_use]
    pub fn request_held(&self, method: &str, params: Option<&RawValue>, held: MemoryShare) -> PendingRequest {
        let id = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, answered) = oneshot::channel();
        let line = request_line(&Id::from(id), method, params);
        // A conversation that is over drops the other end, which is an answer too.
        let _ = self.inbox.send(ConnectionCommand::Request { id, line, held, answer });
        PendingRequest { place: AtServer { id, inbox: self.inbox.clone() }, answer: answered }
    }

    /// Sends a line as it is.
    pub fn send(&self, line: Vec<u8>, held: MemoryShare) {
        // As above.
        let _ = self.inbox.send(ConnectionCommand::Line(line, held));
    }

    /// Gives the client's answer to a request of the server. One it did not make is dropped.
    pub fn respond(&self, id: Id, response: Response, held: MemoryShare) {
        // As above.
        let _ = self.inbox.send(ConnectionCommand::Respond { id, response, held });
    }
}

struct ConnectionTask {
    to_server: mpsc::UnboundedSender<(Vec<u8>, MemoryShare)>,
    client: mpsc::Sender<Outgoing>,
    memory: Arc<Semaphore>,
    roots: watch::Receiver<ServerView>,
    client_takes: watch::Receiver<HashSet<String>>,
    noise: mpsc::Sender<String>,
    told: watch::Sender<u64>,
    pending: HashMap<u64, oneshot::Sender<(ServerAnswer, MemoryShare)>>,
    asked_client: HashSet<Id>,
    /// Has a permit for every answer of ours that may wait still.
    unwritten: Arc<Semaphore>,
}

impl ConnectionTask {
    async fn run(
        mut self,
        mut commands: mpsc::UnboundedReceiver<ConnectionCommand>,
        mut stdout: Lines<BufReader<Input>>,
        end: oneshot::Sender<()>,
    ) {
        let unwritten = self.unwritten.clone();
        loop {
            let has_room = unwritten.available_permits() > 0;
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.handle(command),
                    None => break,
                },
                // The semaphore is never closed.
                _ = unwritten.acquire(), if !has_room => {}
                line = stdout.next(), if has_room => match line {
                    Ok(Some(Line::Whole(line))) => self.receive(&line).await,
                    Ok(Some(Line::TooLong { length, .. })) => self.too_long(length).await,
                    Ok(None) | Err(_) => break,
                },
            }
        }
        // Nobody may wait for it any more.
        let _ = end.send(());
    }

    fn handle(&mut self, command: ConnectionCommand) {
        match command {
            ConnectionCommand::Request { id, line, held, answer } => {
                self.pending.insert(id, answer);
                self.write(line, held);
            }
            ConnectionCommand::Cancel { id, reason } => {
                // One that was answered meanwhile is over.
                if self.pending.remove(&id).is_some() {
                    self.write(cancelled_line(id, reason), None);
                }
            }
            ConnectionCommand::Line(line, held) => self.write(line, held),
            ConnectionCommand::Respond { id, response, held } => {
                if self.asked_client.remove(&id) {
                    self.write(response_line(&id, &response), held);
                }
            }
        }
    }

    async fn receive(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match Incoming::parse(line) {
            Ok(Incoming::Response { id, response }) => {
                let held = self.hold(line.len()).await;
                self.handle_response(&id, response, held).await;
            }
            Ok(Incoming::Request { id, method, params }) => {
                self.handle_request(id, &method, params.as_deref()).await
            }
            Ok(Incoming::Notification { method, params }) if server_may_tell(&method) => {
                self.to_client(notification_line(&method, params.as_deref())).await;
            }
            Ok(Incoming::Notification { method, .. }) => {
                self.note(format!(
                    "a notification that no server may send was dropped: {}",
                    clipped(&method)
                ))
                .await;
            }
            Err(problem) => {
                let text =
                    String::from_utf8_lossy(line.get(..line.len().min(500)).unwrap_or_default()).into_owned();
                self.note(format!("a line on standard output is no message ({problem}): {text}")).await;
            }
        }
    }

    async fn handle_response(&mut self, id: &Id, response: Response, held: MemoryShare) {
        let waiting = id.as_json().parse().ok().and_then(|id: u64| self.pending.remove(&id));
        match waiting {
            // Who no longer waits was cancelled.
            Some(answer) => drop(answer.send((ServerAnswer::Response(response), held))),
            None => self.note(format!("an answer to a request that was not made: {}", id.as_json())).await,
        }
    }

    async fn handle_request(&mut self, id: Id, method: &str, params: Option<&RawValue>) {
        match method {
            "ping" => self.answer(result_line(&id, &serde_json::Map::new())),
            "roots/list" => {
                let shown = self.roots.borrow().clone();
                self.answer(result_line(&id, &shown.mcp_roots()));
                self.told.send_replace(shown.version);
            }
            _ if self.client_takes.borrow().contains(method) => {
                self.asked_client.insert(id.clone());
                self.to_client(request_line(&id, method, params)).await;
            }
            _ => {
                let text =
                    format!("`{}` is not available through IronCurtain to this client", clipped(method));
                self.answer(error_line(Some(&id), ErrorCode::METHOD_NOT_FOUND.0, &text));
            }
        }
    }

    /// Which request it answers cannot be known for sure, so none is left waiting for it.
    async fn too_long(&mut self, length: u64) {
        let reason = NoAnswer::TooLong(length);
        self.note(reason.to_string()).await;
        for (_, answer) in self.pending.drain() {
            // Who no longer waits was cancelled.
            let _ = answer.send((ServerAnswer::Failed(reason.clone()), None));
        }
    }

    /// Answers the server. One line of it has one answer at most, and it is read only while there is a permit.
    fn answer(&self, line: Vec<u8>) {
        let unwritten = self.unwritten.clone().try_acquire_owned().ok().map(Arc::new);
        self.write(line, unwritten);
    }

    fn write(&self, line: Vec<u8>, held: MemoryShare) {
        // A server that takes no more input ends its output too, which is seen there.
        let _ = self.to_server.send((line, held));
    }

    async fn to_client(&self, line: Vec<u8>) {
        let held = self.hold(line.len()).await;
        // A client that is gone ends the session.
        let _ = self.client.send(Outgoing { line, held }).await;
    }

    /// Waits until there is memory for so many bytes. The semaphore is never closed.
    async fn hold(&self, bytes: usize) -> MemoryShare {
        self.memory.clone().acquire_many_owned(share(bytes)).await.ok().map(Arc::new)
    }

    async fn note(&self, text: String) {
        // Without a log there is nobody to tell.
        let _ = self.noise.send(text).await;
    }
}

/// A method that is named in a sentence.
fn clipped(method: &str) -> String {
    visible::head(&visible::line(method), LONGEST_METHOD)
}

fn cancelled_line(id: u64, reason: Option<String>) -> Vec<u8> {
    let reason = reason.map(|reason| visible::head(&reason, LONGEST_REASON));
    let params = serde_json::json!({ "requestId": id, "reason": reason });
    notification_line("notifications/cancelled", serde_json::value::to_raw_value(&params).ok().as_deref())
}

async fn write(mut stdin: Output, mut lines: mpsc::UnboundedReceiver<(Vec<u8>, MemoryShare)>) {
    while let Some((line, held)) = lines.recv().await {
        if stdin.write_all(&line).await.is_err() {
            return;
        }
        drop(held);
    }
}

#[cfg(test)]
mod tests;
