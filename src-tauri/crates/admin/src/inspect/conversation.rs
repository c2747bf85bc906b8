//! Exchanges MCP messages with a server that is being inspected.

use super::fault::{MAX_BYTES, MESSAGE, ServerFault};
use ironcurtain_mcp::wire::{
    Id, Incoming, Input, Line, Lines, Output, Response, error_line, notification_line, request_line,
    result_line,
};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_server::process::{Process, ProcessHold, ServerStderr};
use ironcurtain_visible as visible;
use rmcp::model::ErrorCode;
use serde_json::json;
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Maximum number of output lines that are skipped because they are not JSON-RPC messages.
const NOISE: usize = 100;

/// Maximum time to wait for the server to exit after it was killed.
const END: Duration = Duration::from_secs(5);

/// Maximum number of bytes of standard error to keep.
const KEPT: usize = 2000;

pub(super) struct Conversation {
    stdin: Output,
    stdout: Lines<Input>,
    stderr: JoinHandle<String>,
    hold: ProcessHold,
    root: Option<String>,
    next: u64,
    heard: u64,
    noise: usize,
    /// `true` if the server has sent `notifications/tools/list_changed`.
    changed: bool,
    /// First output line that was not a message.
    odd: Option<String>,
}

impl Conversation {
    pub(super) fn new(process: Process, folder: Option<&CanonicalPath>) -> Self {
        Self {
            stdin: process.stdin,
            stdout: Lines::new(process.stdout, MESSAGE),
            stderr: tokio::spawn(end_of(process.stderr)),
            hold: process.hold,
            root: folder.map(CanonicalPath::file_uri),
            next: 0,
            heard: 0,
            noise: 0,
            changed: false,
            odd: None,
        }
    }

    /// Sends a request and waits for its response.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        params: &serde_json::Value,
    ) -> Result<Box<RawValue>, ServerFault> {
        self.next += 1;
        let id = Id::from(self.next);
        let params = serde_json::value::to_raw_value(params)?;
        self.write(&request_line(&id, method, Some(&params))).await?;
        loop {
            match self.hear(method).await? {
                Some(Incoming::Response { id: answered, response }) if answered == id => {
                    return match response {
                        Response::Result(result) => Ok(result),
                        Response::Error(error) => Err(self.refused(method, &error)),
                    };
                }
                other => self.take(other).await?,
            }
        }
    }

    /// Converts an error response to a fault. The response comes from the server, or from IronCurtain's transport if a
    /// remote server did not respond.
    fn refused(&self, method: &str, error: &RawValue) -> ServerFault {
        let error: serde_json::Value = serde_json::from_str(error.get()).unwrap_or_default();
        let message = error.get("message").and_then(serde_json::Value::as_str).unwrap_or("(no message)");
        if self.hold.remote_fault().is_some_and(|fault| fault == message) {
            let message = visible::line(message);
            return if self.hold.needs_login() {
                ServerFault::NeedsLogin(message)
            } else {
                ServerFault::Unanswered(message)
            };
        }
        let message = visible::head(&visible::line(message), 300);
        ServerFault::Refused { method: method.to_owned(), message }
    }

    /// Waits until the server announces that its tools have changed. Returns `false` on timeout.
    pub(super) async fn changes(&mut self, within: Duration) -> Result<bool, ServerFault> {
        let deadline = Instant::now() + within;
        while !self.changed {
            let Ok(heard) = timeout_at(deadline, self.hear("tools/list")).await else { return Ok(false) };
            self.take(heard?).await?;
        }
        self.changed = false;
        Ok(true)
    }

    /// Handles a message that is not the expected response.
    async fn take(&mut self, message: Option<Incoming>) -> Result<(), ServerFault> {
        match message {
            Some(Incoming::Request { id, method, .. }) => self.serve(&id, &method).await,
            Some(Incoming::Notification { method, .. }) => {
                self.changed |= method == "notifications/tools/list_changed";
                Ok(())
            }
            Some(Incoming::Response { .. }) | None => Ok(()),
        }
    }

    /// Sends a notification.
    pub(super) async fn notify(&mut self, method: &str) -> Result<(), ServerFault> {
        self.write(&notification_line(method, None)).await
    }

    /// Kills the server and waits until it has exited. Returns its first output line that was not a message, and the
    /// last lines of its standard error.
    pub(super) async fn end(self) -> String {
        let Self { stdin, mut stdout, stderr, hold, odd, .. } = self;
        drop((stdin, hold));
        let gone = async { while let Ok(Some(_)) = stdout.next().await {} };
        // Does not wait longer for a process that keeps the pipe open.
        let _ = tokio::time::timeout(END, gone).await;
        let last = tokio::time::timeout(END, stderr).await;
        let last = last.ok().and_then(Result::ok).unwrap_or_default();
        let last = visible::head(&visible::lines(last.trim()), KEPT);
        // Starts multi-line output on a new line, because the caller marks each line.
        let apart = if last.contains('\n') { "\n" } else { " " };
        let odd = odd.map(|line| format!("; it printed a line that is not a protocol message: `{line}`"));
        let last = if last.is_empty() { last } else { format!("; it said:{apart}{last}") };
        odd.unwrap_or_default() + &last
    }

    /// Reads the next line. Returns `None` if the line is not a message.
    async fn hear(&mut self, waiting_for: &str) -> Result<Option<Incoming>, ServerFault> {
        let ended = || ServerFault::Ended(waiting_for.to_owned());
        let line = match self.stdout.next().await {
            Ok(Some(Line::Whole(line, _))) => line,
            Ok(Some(Line::TooLong { length, .. })) => {
                return Err(ServerFault::LongMessage(length));
            }
            // `NoRoom` cannot occur, because this buffer is not shared.
            Ok(None | Some(Line::NoRoom { .. })) | Err(_) => return Err(ended()),
        };
        self.heard = self.heard.saturating_add(line.len() as u64 + 1);
        if self.heard > MAX_BYTES {
            return Err(ServerFault::TooMuch);
        }
        if let Ok(message) = Incoming::parse(&line) {
            return Ok(Some(message));
        }
        self.noise += 1;
        let text = || {
            let text = String::from_utf8_lossy(line.get(..line.len().min(200)).unwrap_or_default());
            visible::line(&text)
        };
        if self.noise <= NOISE {
            self.odd.get_or_insert_with(text);
            return Ok(None);
        }
        self.odd = None;
        Err(ServerFault::Noise(text()))
    }

    /// Answers a request from the server. Declines requests that need a user or a model.
    async fn serve(&mut self, id: &Id, method: &str) -> Result<(), ServerFault> {
        let line = match (method, &self.root) {
            ("ping", _) => result_line(id, &json!({})),
            ("roots/list", Some(root)) => {
                result_line(id, &json!({ "roots": [{ "uri": root, "name": "sandbox" }] }))
            }
            ("elicitation/create", _) => result_line(id, &json!({ "action": "decline" })),
            _ => error_line(Some(id), ErrorCode::METHOD_NOT_FOUND.0, "not available during inspection"),
        };
        self.write(&line).await
    }

    async fn write(&mut self, line: &[u8]) -> Result<(), ServerFault> {
        self.stdin.write_all(line).await.map_err(|_| ServerFault::NoInput)
    }
}

/// Reads until EOF and returns the last [`KEPT`] bytes.
async fn end_of(mut stderr: ServerStderr) -> String {
    let mut kept = Vec::new();
    while let Some(text) = stderr.next().await {
        kept.extend(text);
        let too_much = kept.len().saturating_sub(KEPT);
        kept.drain(..too_much);
    }
    String::from_utf8_lossy(&kept).into_owned()
}
