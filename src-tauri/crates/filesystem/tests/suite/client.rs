//! Raw JSON-RPC client that gives tests access to every byte of a response.

use ironcurtain_testkit::JsonProcess;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Timeout far above the duration of any response.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Server process and the client's ends of its pipes.
pub(crate) struct Client {
    pub(crate) child: JsonProcess,
    requests: u64,
}

impl Client {
    /// Starts IronCurtain's server with one allowed directory, and completes the handshake.
    pub(crate) fn ours(directory: &Path) -> Self {
        let mut client = Self::start(ours().arg(directory));
        client.handshake("2025-11-25", &json!({}));
        client
    }

    /// Starts IronCurtain's server for a client that supports roots but has not sent any.
    pub(crate) fn ours_with_roots(directories: &[&Path]) -> Self {
        let mut client = Self::start(ours().args(directories));
        client.handshake("2025-06-18", &json!({ "roots": { "listChanged": true } }));
        client
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        let child = JsonProcess::start(command.env("TZ", "UTC").stderr(Stdio::null()));
        Self { child, requests: 0 }
    }

    /// Completes the handshake and returns the response to `initialize`.
    pub(crate) fn handshake(&mut self, revision: &str, capabilities: &Value) -> Value {
        let answer = self.request(
            "initialize",
            &json!({
                "protocolVersion": revision,
                "capabilities": capabilities,
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        self.notify("notifications/initialized");
        answer
    }

    /// Sends a request and returns the next message, which must be its response.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send_request(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool and returns its result, which can be an error.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))["result"].clone()
    }

    /// Calls a tool that must succeed, and returns its text.
    pub(crate) fn text(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], Value::Null, "{result}");
        assert_eq!(result["content"][0]["text"], result["structuredContent"]["content"]);
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// Calls a tool that must fail, and returns its error text.
    pub(crate) fn refusal(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool} {arguments} succeeded: {result}");
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// Sends a request and returns its id without waiting for the response.
    pub(crate) fn send_request(&mut self, method: &str, params: &Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn notify(&mut self, method: &str) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method }));
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.child.send(message);
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.child.send_bytes(bytes);
    }

    pub(crate) fn receive(&mut self) -> Value {
        self.child.receive(TIMEOUT).expect("a message from the server")
    }

    /// Waits for the server's `roots/list` request and answers it with `roots`.
    pub(crate) fn send_roots(&mut self, roots: &[&Path]) {
        let question = self.receive();
        assert_eq!(question["method"], "roots/list", "{question}");
        let roots: Vec<Value> =
            roots.iter().map(|root| json!({ "uri": format!("file://{}", root.display()) })).collect();
        self.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": roots } }));
    }

    /// Closes the server's input. Returns `true` if the server then exits successfully.
    pub(crate) fn hang_up(mut self) -> bool {
        self.child.hang_up();
        self.child.wait_for_success()
    }
}

/// Returns a command that starts IronCurtain's server.
pub(crate) fn ours() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ironcurtain-filesystem"))
}

/// Creates a temporary directory and returns it with its real path.
pub(crate) fn directory() -> (tempfile::TempDir, std::path::PathBuf) {
    let keep = tempfile::tempdir().expect("a temporary directory");
    let path = keep.path().canonicalize().expect("a real path");
    (keep, path)
}
