//! Transport over standard input and output, one JSON message per line.
//!
//! - Reading and writing use separate threads, so a slow client does not delay calls. The descriptors stay in blocking
//!   mode, because other programs may share them.
//! - Changes to the roots are announced here, before any later message is passed on.
//! - Invalid input never stops the server. A line that is not JSON is logged. JSON that is not a message, and a line
//!   longer than [`LINE_LIMIT`], get an error response.

mod lines;

use std::io;
use std::sync::Arc;
use std::thread;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::{RoleServer, transport::Transport};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use self::lines::{Line, Lines};
use crate::log;
use crate::roots::Roots;

/// Maximum length of a line in bytes: 64 MiB of content plus its envelope.
const LINE_LIMIT: usize = 65 * 1024 * 1024;

/// Maximum number of messages queued for processing. Reading pauses while the queue is full.
const READ_AHEAD: usize = 64;

/// Server end of the transport.
pub(crate) struct Stdio {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: mpsc::Sender<Outgoing>,
    roots: Arc<Roots>,
    is_started: bool,
}

struct Outgoing {
    message: ServerJsonRpcMessage,
    done: oneshot::Sender<io::Result<()>>,
}

/// Error response for a message that the server never sees.
struct Refusal {
    id: Option<RequestId>,
    reason: String,
}

impl Stdio {
    /// Spawns the reader and writer threads.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be spawned.
    pub(crate) fn start(roots: Arc<Roots>) -> io::Result<Self> {
        let (send_incoming, incoming) = mpsc::channel(READ_AHEAD);
        let (outgoing, receive_outgoing) = mpsc::channel(READ_AHEAD);
        let refusals = outgoing.downgrade();
        thread::Builder::new()
            .name("stdin".into())
            .spawn(move || read(io::stdin().lock(), &send_incoming, &refusals))?;
        thread::Builder::new()
            .name("stdout".into())
            .spawn(move || write(io::stdout().lock(), receive_outgoing))?;
        Ok(Self { incoming, outgoing, roots, is_started: false })
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let (done, outcome) = oneshot::channel();
            outgoing.send(Outgoing { message, done }).await.map_err(|_| closed())?;
            outcome.await.map_err(|_| closed())?
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let message = tokio::select! {
                message = self.incoming.recv() => message?,
                // The client has closed its end.
                () = self.outgoing.closed() => return None,
            };
            self.is_started |= matches!(message, JsonRpcMessage::Request(_));
            // Messages before the first request are ignored.
            if !self.is_started {
                continue;
            }
            if changes_roots(&message) {
                self.roots.announce();
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.incoming.close();
        Ok(())
    }
}

fn changes_roots(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Notification(notification) = message else {
        return false;
    };
    matches!(
        notification.notification,
        ClientNotification::InitializedNotification(_) | ClientNotification::RootsListChangedNotification(_)
    )
}

fn read(
    input: impl io::Read,
    messages: &mpsc::Sender<ClientJsonRpcMessage>,
    refusals: &mpsc::WeakSender<Outgoing>,
) {
    let mut lines = Lines::new(input, LINE_LIMIT);
    loop {
        let continues = match lines.next() {
            Ok(Line::Whole(line)) if line.iter().all(u8::is_ascii_whitespace) => true,
            Ok(Line::Whole(line)) => match parse(line) {
                Ok(message) => messages.blocking_send(message).is_ok(),
                Err(refusal) => refuse(refusal, refusals),
            },
            Ok(Line::TooLong) => refuse(Some(too_long()), refusals),
            Ok(Line::End) => false,
            Err(error) => {
                log(&format!("cannot read standard input: {error}"));
                false
            }
        };
        if !continues {
            return;
        }
    }
}

/// Parses a message. On failure, returns the error response to send, or `None` to ignore the line.
fn parse(line: &[u8]) -> Result<ClientJsonRpcMessage, Option<Refusal>> {
    let error = match serde_json::from_slice(line) {
        Ok(message) => return Ok(message),
        Err(error) => error,
    };
    // A line that is not JSON has no id to respond to, so it is ignored, as in other SDKs.
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        log(&format!("ignoring a line that is not JSON: {error}"));
        return Err(None);
    };
    let id = match value.get("id") {
        Some(Value::String(text)) => Some(RequestId::String(text.as_str().into())),
        Some(Value::Number(number)) => number.as_i64().map(RequestId::Number),
        _ => None,
    };
    if id.is_none() && value.get("method").is_some() {
        log("ignoring an invalid notification");
        return Err(None);
    }
    Err(Some(Refusal { id, reason: "not an MCP message".to_owned() }))
}

fn too_long() -> Refusal {
    Refusal { id: None, reason: format!("message is longer than {LINE_LIMIT} bytes") }
}

/// Sends an error response. Returns `true` if the connection can continue.
fn refuse(refusal: Option<Refusal>, refusals: &mpsc::WeakSender<Outgoing>) -> bool {
    let (Some(Refusal { id, reason }), Some(refusals)) = (refusal, refusals.upgrade()) else {
        return true;
    };
    let data = ErrorData::new(ErrorCode::INVALID_REQUEST, format!("Invalid request: {reason}"), None);
    let message = ServerJsonRpcMessage::error(data, id);
    let (done, _) = oneshot::channel();
    refusals.blocking_send(Outgoing { message, done }).is_ok()
}

fn write(mut output: impl io::Write, mut messages: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { message, done }) = messages.blocking_recv() {
        let outcome = write_line(&mut output, &message);
        let is_broken = outcome.is_err();
        // Sending fails only if the waiting task was cancelled.
        let _ = done.send(outcome);
        if is_broken {
            return;
        }
    }
}

fn write_line(output: &mut impl io::Write, message: &ServerJsonRpcMessage) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}
