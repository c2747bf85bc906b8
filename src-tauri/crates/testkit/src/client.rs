//! Agent client for tests, which exchanges JSON-RPC messages with a real shim over standard input and output.

use crate::JsonProcess;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Timeout for everything that a test waits for.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// Agent client connected to a shim or server.
pub struct AgentClient {
    /// The running shim or server.
    pub shim: JsonProcess,
    buffered: VecDeque<Value>,
    last_id: u64,
}

/// Outcome of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// `true` if the call was denied or failed.
    pub is_error: bool,
    /// Text of the result, or message of the error.
    pub text: String,
}

impl Outcome {
    /// Returns the result's text. Panics if the call was denied or failed.
    #[track_caller]
    pub fn ok(&self) -> &str {
        assert!(!self.is_error, "unexpected refusal: {}", self.text);
        &self.text
    }

    /// Returns the error message. Panics if the call succeeded or the message does not contain `because`.
    #[track_caller]
    pub fn refused(&self, because: &str) -> &str {
        assert!(self.is_error, "unexpectedly allowed: {}", self.text);
        assert!(self.text.contains(because), "refused, but not because of `{because}`: {}", self.text);
        &self.text
    }
}

impl AgentClient {
    /// Starts a shim for a server, without sending anything.
    pub fn start(programs: &Path, home: &Path, server: &str) -> Self {
        Self::spawn(shim(programs, server), home)
    }

    /// Spawns `command` as a shim, without sending anything to it.
    pub fn spawn(mut command: Command, home: &Path) -> Self {
        Self::new(JsonProcess::start(headless(&mut command, home)))
    }

    /// Creates a client for a running shim or server.
    #[must_use]
    pub fn new(shim: JsonProcess) -> Self {
        Self { shim, buffered: VecDeque::new(), last_id: 0 }
    }

    /// Starts a shim and completes the handshake, then stops reading its output.
    pub fn connect_without_reading(programs: &Path, home: &Path, server: &str) -> Self {
        let mut command = shim(programs, server);
        let mut client = Self::new(JsonProcess::start_reading(headless(&mut command, home), 0));
        client.handshake();
        client
    }

    /// Starts a shim and completes the handshake.
    pub fn connect(programs: &Path, home: &Path, server: &str) -> Self {
        let mut client = Self::start(programs, home, server);
        client.handshake();
        client
    }

    /// Completes the handshake and declares support for roots. Returns the response to `initialize`.
    pub fn handshake(&mut self) -> Value {
        self.handshake_with(&json!({ "roots": { "listChanged": true } }))
    }

    /// Completes the handshake with the given capabilities. Returns the response to `initialize`.
    pub fn handshake_with(&mut self, capabilities: &Value) -> Value {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities,
            "clientInfo": { "name": "test-client", "version": "1" },
        });
        let answer = self.request("initialize", params);
        assert!(answer.get("result").is_some(), "{answer}");
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer
    }

    /// Sends a message as one line.
    pub fn send(&mut self, message: &Value) {
        self.shim.send(message);
    }

    /// Sends bytes unchanged.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.shim.send_bytes(bytes);
    }

    /// Sends a request and waits for its response.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// Sends a request and returns its id without waiting for the response.
    pub fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for the response to a request.
    pub fn answer(&mut self, id: u64) -> Value {
        self.wait_for(|m| m.get("id") == Some(&json!(id)) && m.get("method").is_none())
    }

    /// Waits for the first message for which `is_match` returns `true`. Other messages are kept for later calls.
    pub fn wait_for(&mut self, is_match: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.buffered.iter().position(&is_match) {
            return self.buffered.remove(index).unwrap();
        }
        loop {
            match self.shim.receive(TIMEOUT) {
                Ok(message) if is_match(&message) => return message,
                Ok(message) => self.buffered.push_back(message),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no such message within {TIMEOUT:?}; had {:?}", self.buffered)
                }
                Err(RecvTimeoutError::Disconnected) => panic!("the shim exited; had {:?}", self.buffered),
            }
        }
    }

    /// Returns `true` if a message for which `is_match` returns `true` has arrived. All messages are kept for later calls.
    pub fn has(&mut self, is_match: impl Fn(&Value) -> bool) -> bool {
        while let Ok(message) = self.shim.receive(Duration::ZERO) {
            self.buffered.push_back(message);
        }
        self.buffered.iter().any(is_match)
    }

    /// Calls a tool and waits for its outcome.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Outcome {
        let id = self.begin_call(tool, arguments);
        self.outcome(id)
    }

    /// Calls a tool and returns the request's id without waiting for the outcome.
    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.begin("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Waits for the outcome of the tool call with this request id.
    pub fn outcome(&mut self, id: u64) -> Outcome {
        let answer = self.answer(id);
        outcome_of(&answer)
    }

    /// Waits for the next response of any kind and returns its id and outcome.
    pub fn next_outcome(&mut self) -> (u64, Outcome) {
        let answer = self.wait_for(|m| m.get("id").is_some() && m.get("method").is_none());
        (answer["id"].as_u64().unwrap(), outcome_of(&answer))
    }

    /// Calls the tool that reads a file, and waits for its outcome.
    pub fn read(&mut self, path: &Path) -> Outcome {
        self.call("read_text_file", json!({ "path": path }))
    }

    /// Calls the tool that writes a file, and waits for its outcome.
    pub fn write(&mut self, path: &Path, content: &str) -> Outcome {
        self.call("write_file", json!({ "path": path, "content": content }))
    }

    /// Closes the shim's standard input.
    pub fn close_input(&mut self) {
        self.shim.hang_up();
    }

    /// Closes the shim's standard input and asserts that the shim exits.
    pub fn hang_up(mut self) {
        self.shim.hang_up();
        assert!(self.wait_until_ended(), "the shim did not exit within {TIMEOUT:?}");
    }

    /// Returns `true` if the request is answered or the shim closes its output before the timeout.
    pub fn is_answered_or_ended(&mut self, id: u64) -> bool {
        loop {
            match self.shim.receive(TIMEOUT) {
                Ok(message) if message.get("id") == Some(&json!(id)) => return true,
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    /// Returns `true` if the shim closes its output before the timeout.
    pub fn wait_until_ended(&mut self) -> bool {
        loop {
            match self.shim.receive(TIMEOUT) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.shim.wait_for_success();
                    return true;
                }
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}

fn shim(programs: &Path, server: &str) -> Command {
    let mut shim = Command::new(programs.join("ironcurtain-shim"));
    shim.args(["--server", server]);
    shim
}

/// Configures a shim's command: it uses `home`, has no display, inherits standard error, and runs outside any project
/// unless the command already sets a folder.
fn headless<'a>(shim: &'a mut Command, home: &Path) -> &'a mut Command {
    if shim.get_current_dir().is_none() {
        shim.current_dir("/");
    }
    let shim = shim.env("IRONCURTAIN_HOME", home).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    shim.stderr(Stdio::inherit())
}

fn outcome_of(answer: &Value) -> Outcome {
    let Some(result) = answer.get("result") else {
        return Outcome {
            is_error: true,
            text: answer["error"]["message"].as_str().unwrap_or_default().to_owned(),
        };
    };
    let text_blocks = result["content"].as_array().into_iter().flatten().filter_map(|c| c["text"].as_str());
    Outcome { is_error: result["isError"] == json!(true), text: text_blocks.collect::<Vec<_>>().join("\n") }
}
