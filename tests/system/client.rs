//! An agent client: raw JSON-RPC over a real shim's standard input and output.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// The time for which a test waits for anything.
pub const BOUND: Duration = Duration::from_secs(20);

/// The number of messages that are read before anybody wants them.
const READ_AHEAD: usize = 10_000;

pub struct Client {
    pub shim: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    kept: VecDeque<Value>,
    next: u64,
}

/// The outcome of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub is_error: bool,
    pub text: String,
}

impl Outcome {
    #[track_caller]
    pub fn ok(&self) -> &str {
        assert!(!self.is_error, "unexpected refusal: {}", self.text);
        &self.text
    }

    #[track_caller]
    pub fn refused(&self, because: &str) -> &str {
        assert!(self.is_error, "unexpectedly allowed: {}", self.text);
        assert!(self.text.contains(because), "refused, but not because of `{because}`: {}", self.text);
        &self.text
    }
}

impl Client {
    /// Starts a shim; nothing is said yet.
    pub fn start(programs: &Path, home: &Path, server: &str) -> Self {
        Self::start_reading(programs, home, server, READ_AHEAD)
    }

    fn start_reading(programs: &Path, home: &Path, server: &str, ahead: usize) -> Self {
        let mut shim = Command::new(programs.join("ironcurtain-shim"));
        shim.args(["--server", server]);
        Self::spawn_reading(shim, home, ahead)
    }

    /// Starts a shim by this command.
    pub fn spawn(command: Command, home: &Path) -> Self {
        Self::spawn_reading(command, home, READ_AHEAD)
    }

    fn spawn_reading(mut command: Command, home: &Path, ahead: usize) -> Self {
        let mut shim = command
            .env("IRONCURTAIN_HOME", home)
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the shim starts");
        let stdout = shim.stdout.take().unwrap();
        let (send, lines) = mpsc::sync_channel(ahead);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n') {
                let Ok(line) = line else { return };
                let message = serde_json::from_slice(&line).expect("every line of the shim is JSON");
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        Self { stdin: shim.stdin.take(), shim, lines, kept: VecDeque::new(), next: 0 }
    }

    /// Starts a shim and goes through the handshake; from then on nothing is read.
    pub fn connect_deaf(programs: &Path, home: &Path, server: &str) -> Self {
        let mut client = Self::start_reading(programs, home, server, 0);
        client.handshake();
        client
    }

    /// Starts a shim and goes through the handshake.
    pub fn connect(programs: &Path, home: &Path, server: &str) -> Self {
        let mut client = Self::start(programs, home, server);
        client.handshake();
        client
    }

    pub fn handshake(&mut self) -> Value {
        self.greet(&json!({ "roots": { "listChanged": true } }))
    }

    /// Goes through the handshake as a client of these capabilities.
    pub fn greet(&mut self, capabilities: &Value) -> Value {
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

    pub fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Sends a request and waits for its answer.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// Sends a request.
    pub fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for the answer to a request.
    pub fn answer(&mut self, id: u64) -> Value {
        self.wait_for(|m| m.get("id") == Some(&json!(id)) && m.get("method").is_none())
    }

    /// Waits for a message, keeping others for later.
    pub fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&wanted) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            match self.lines.recv_timeout(BOUND) {
                Ok(message) if wanted(&message) => return message,
                Ok(message) => self.kept.push_back(message),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no such message within {BOUND:?}; had {:?}", self.kept)
                }
                Err(RecvTimeoutError::Disconnected) => panic!("the shim ended; had {:?}", self.kept),
            }
        }
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Outcome {
        let id = self.begin_call(tool, arguments);
        self.outcome(id)
    }

    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.begin("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    pub fn outcome(&mut self, id: u64) -> Outcome {
        let answer = self.answer(id);
        let Some(result) = answer.get("result") else {
            return Outcome {
                is_error: true,
                text: answer["error"]["message"].as_str().unwrap_or_default().to_owned(),
            };
        };
        let texts = result["content"].as_array().into_iter().flatten().filter_map(|c| c["text"].as_str());
        Outcome { is_error: result["isError"] == json!(true), text: texts.collect::<Vec<_>>().join("\n") }
    }

    pub fn read(&mut self, path: &Path) -> Outcome {
        self.call("read_text_file", json!({ "path": path }))
    }

    pub fn write(&mut self, path: &Path, content: &str) -> Outcome {
        self.call("write_file", json!({ "path": path, "content": content }))
    }

    /// The client hangs up; the shim must end by itself.
    pub fn hang_up(mut self) {
        drop(self.stdin.take());
        assert!(self.wait_until_ended(), "the shim did not end within {BOUND:?}");
    }

    /// True if a request is answered, or the conversation ends, within the bound.
    pub fn is_answered_or_ended(&mut self, id: u64) -> bool {
        loop {
            match self.lines.recv_timeout(BOUND) {
                Ok(message) if message.get("id") == Some(&json!(id)) => return true,
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    /// True if the conversation ends within the bound: the shim's output is closed.
    pub fn wait_until_ended(&mut self) -> bool {
        loop {
            match self.lines.recv_timeout(BOUND) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return self.shim.wait().is_ok(),
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.shim.kill();
        let _ = self.shim.wait();
    }
}
