//! Server messages reach the client byte for byte.

use crate::reference;
use crate::world::World;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Returns the requests to send, in order.
fn requests() -> Vec<(&'static str, Value)> {
    vec![
        (
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "roots": { "listChanged": true } },
                "clientInfo": { "name": "test-client", "version": "1" },
            }),
        ),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/templates/list", json!({})),
        ("ping", json!({})),
        ("tools/call", json!({ "name": "echo", "arguments": { "message": "grüße \"1\" \u{202e}" } })),
        ("tools/call", json!({ "name": "get-sum", "arguments": { "a": 1.5, "b": 2 } })),
        ("tools/call", json!({ "name": "echo", "arguments": { "message": "again" }, "_meta": { "x": [1] } })),
        ("prompts/get", json!({ "name": "simple-prompt" })),
        ("prompts/get", json!({ "name": "no-such-prompt" })),
    ]
}

/// A program with an MCP connection, and its raw responses.
struct Speaker {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

#[derive(Deserialize)]
struct ReceivedMessage {
    id: Option<Value>,
    method: Option<String>,
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

impl Speaker {
    fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { stdin: child.stdin.take().unwrap(), stdout, child }
    }

    fn answer(&mut self, id: usize, method: &str, params: &Value) -> String {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        if method == "initialize" {
            let answer = self.next(id);
            self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
            return answer;
        }
        self.next(id)
    }

    fn next(&mut self, id: usize) -> String {
        loop {
            let line = self.stdout.next().expect("an answer").unwrap();
            let answer: ReceivedMessage = serde_json::from_str(&line).unwrap();
            if answer.id == Some(json!(id)) && answer.method.is_none() {
                let said = answer.result.map(|r| format!("result {}", r.get()));
                return said.or(answer.error.map(|e| format!("error {}", e.get()))).unwrap();
            }
        }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn responses_pass_through_byte_for_byte() {
    let world = World::with(|w| {
        reference::configure(w, &json!({ "everything": reference::entry("server-everything") }));
        let tool = |name: &str, args: Value| json!({ "toolName": name, "serverName": "everything", "comment": "", "args": args });
        let tools = [
            tool("echo", json!({ "message": ["none"] })),
            tool("get-sum", json!({ "a": ["none"], "b": ["none"] })),
        ];
        let annotations = json!({ "schemaVersion": 1, "servers": { "everything": { "tools": tools } } });
        std::fs::write(w.home.policy().join("tool-annotations.json"), annotations.to_string()).unwrap();
    });
    let mut direct = Speaker::start(Command::new("node").arg(reference::script("server-everything")));
    let mut shim = Command::new(world.programs.join("ironcurtain-shim"));
    shim.args(["--server", "everything"]).env("IRONCURTAIN_HOME", world.ours());
    let mut through = Speaker::start(&mut shim);
    for (id, (method, params)) in requests().iter().enumerate() {
        assert_eq!(
            through.answer(id, method, params),
            direct.answer(id, method, params),
            "{method} {params}"
        );
    }
    // The calls access nothing, so there was no question.
    assert_eq!(world.user.asked().len(), 0);
    let refused = through.answer(99, "tools/call", &json!({ "name": "get-env", "arguments": {} }));
    assert!(refused.contains("has not been reviewed yet"), "{refused}");
}
