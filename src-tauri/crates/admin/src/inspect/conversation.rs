//! Exchanges MCP messages with a server that is being inspected.

use super::fault::{MAX_BYTES, MAX_MESSAGE_LEN, ServerFault};
use ironcurtain_mcp::wire::{
    Id, Incoming, Input, Line, Lines, Output, Response, error_line, notification_line, request_line,
    result_line,
};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_server::process::{Process, ProcessGuard, ServerStderr};
use ironcurtain_visible as visible;
use rmcp::model::ErrorCode;
use serde_json::json;
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Maximum number of output lines that are skipped because they are not JSON-RPC messages.
const MAX_OTHER_LINES: usize = 100;

/// Maximum time to wait for the server to exit after it was killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of bytes of standard error to keep.
const MAX_STDERR_LEN: usize = 2000;

pub(super) struct Conversation {
    stdin: Output,
    stdout: Lines<Input>,
    stderr: JoinHandle<String>,
    guard: ProcessGuard,
    root: Option<String>,
    next: u64,
    bytes_read: u64,
    other_lines: usize,
    /// `true` if the server has sent `notifications/tools/list_changed`.
    tools_changed: bool,
    /// First output line that was not a message.
    first_other_line: Option<String>,
}

impl Conversation {
    pub(super) fn new(process: Process, folder: Option<&CanonicalPath>) -> Self {
        Self {
            stdin: process.stdin,
            stdout: Lines::new(process.stdout, MAX_MESSAGE_LEN),
            stderr: tokio::spawn(read_tail(process.stderr)),
            guard: process.guard,
            root: folder.map(CanonicalPath::file_uri),
            next: 0,
            bytes_read: 0,
            other_lines: 0,
            tools_changed: false,
            first_other_line: None,
        }
    }

    /// Sends a request and waits for its response.
    pub(super) async fn request(
        &mut self,
        method: &str,
        params: &serde_json::Value,
    ) -> Result<Box<RawValue>, ServerFault> {
        self.next += 1;
        let id = Id::from(self.next);
        let params = serde_json::value::to_raw_value(params)?;
        self.write(&request_line(&id, method, Some(&params))).await?;
        loop {
            match self.read_message(method).await? {
                Some(Incoming::Response { id: answered, response }) if answered == id => {
                    return match response {
                        Response::Result(result) => Ok(result),
                        Response::Error(error) => Err(self.error_to_fault(method, &error)),
                    };
                }
                other => self.handle(other).await?,
            }
        }
    }

    /// Converts an error response to a fault. The response comes from the server, or from IronCurtain's transport if a
    /// remote server did not respond.
    fn error_to_fault(&self, method: &str, error: &RawValue) -> ServerFault {
        let error: serde_json::Value = serde_json::from_str(error.get()).unwrap_or_default();
        let message = error.get("message").and_then(serde_json::Value::as_str).unwrap_or("(no message)");
        if self.guard.remote_fault().is_some_and(|fault| fault == message) {
            let message = visible::line(message);
            return if self.guard.needs_login() {
                ServerFault::NeedsLogin(message)
            } else {
                ServerFault::NoResponse(message)
            };
        }
        let message = visible::head(&visible::line(message), 300);
        ServerFault::ErrorResponse { method: method.to_owned(), message }
    }

    /// Waits until the server announces that its tools have changed. Returns `false` on timeout.
    pub(super) async fn wait_for_tool_change(&mut self, within: Duration) -> Result<bool, ServerFault> {
        let deadline = Instant::now() + within;
        while !self.tools_changed {
            let Ok(message) = timeout_at(deadline, self.read_message("tools/list")).await else {
                return Ok(false);
            };
            self.handle(message?).await?;
        }
        self.tools_changed = false;
        Ok(true)
    }

    /// Handles a message that is not the expected response.
    async fn handle(&mut self, message: Option<Incoming>) -> Result<(), ServerFault> {
        match message {
            Some(Incoming::Request { id, method, .. }) => self.serve(&id, &method).await,
            Some(Incoming::Notification { method, .. }) => {
                self.tools_changed |= method == "notifications/tools/list_changed";
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
    pub(super) async fn kill(self) -> String {
        let Self { stdin, mut stdout, stderr, guard, first_other_line, .. } = self;
        drop((stdin, guard));
        let eof = async { while let Ok(Some(_)) = stdout.next().await {} };
        // Does not wait longer for a process that keeps the pipe open.
        let _ = tokio::time::timeout(EXIT_TIMEOUT, eof).await;
        let stderr_tail = tokio::time::timeout(EXIT_TIMEOUT, stderr).await;
        let stderr_tail = stderr_tail.ok().and_then(Result::ok).unwrap_or_default();
        let stderr_tail = visible::head(&visible::lines(stderr_tail.trim()), MAX_STDERR_LEN);
        // Starts multi-line output on a new line, because the caller marks each line.
        let separator = if stderr_tail.contains('\n') { "\n" } else { " " };
        let first_other_line = first_other_line
            .map(|line| format!("; it printed a line that is not a protocol message: `{line}`"));
        let stderr_tail =
            if stderr_tail.is_empty() { stderr_tail } else { format!("; it said:{separator}{stderr_tail}") };
        first_other_line.unwrap_or_default() + &stderr_tail
    }

    /// Reads the next line. Returns `None` if the line is not a message.
    async fn read_message(&mut self, method: &str) -> Result<Option<Incoming>, ServerFault> {
        let exited = || ServerFault::Exited(method.to_owned());
        let line = match self.stdout.next().await {
            Ok(Some(Line::Whole(line, _))) => line,
            Ok(Some(Line::TooLong { length, .. })) => {
                return Err(ServerFault::MessageTooLong(length));
            }
            // `NoMemory` cannot occur, because this buffer is not shared.
            Ok(None | Some(Line::NoMemory { .. })) | Err(_) => return Err(exited()),
        };
        self.bytes_read = self.bytes_read.saturating_add(line.len() as u64 + 1);
        if self.bytes_read > MAX_BYTES {
            return Err(ServerFault::OutputTooLong);
        }
        if let Ok(message) = Incoming::parse(&line) {
            return Ok(Some(message));
        }
        self.other_lines += 1;
        let text = || {
            let text = String::from_utf8_lossy(line.get(..line.len().min(200)).unwrap_or_default());
            visible::line(&text)
        };
        if self.other_lines <= MAX_OTHER_LINES {
            self.first_other_line.get_or_insert_with(text);
            return Ok(None);
        }
        self.first_other_line = None;
        Err(ServerFault::NotMessages(text()))
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
        self.stdin.write_all(line).await.map_err(|_| ServerFault::StdinClosed)
    }
}

/// Reads until EOF and returns the last [`MAX_STDERR_LEN`] bytes.
async fn read_tail(mut stderr: ServerStderr) -> String {
    let mut tail = Vec::new();
    while let Some(text) = stderr.next().await {
        tail.extend(text);
        let excess = tail.len().saturating_sub(MAX_STDERR_LEN);
        tail.drain(..excess);
    }
    String::from_utf8_lossy(&tail).into_owned()
}
