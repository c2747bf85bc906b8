//! A shim whose standard output is not a pipe copies all messages instead of passing its descriptors to the daemon.

use crate::client::TIMEOUT;
use crate::world::{World, eventually, programs};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn session_with_file_stdout_is_relayed_and_ends_with_client() {
    let world = World::new();
    let path = world.path("answers.jsonl");
    let mut shim = Command::new(programs().join("ironcurtain-shim"))
        .args(["--server", "filesystem"])
        .env("IRONCURTAIN_HOME", world.home.config.parent().unwrap())
        .stdin(Stdio::piped())
        .stdout(File::create(&path).unwrap())
        .spawn()
        .unwrap();
    let mut stdin = shim.stdin.take().unwrap();
    let client = json!({ "name": "file", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let allowed = json!({ "name": "list_allowed_directories", "arguments": {} });
    let denied = json!({ "name": "read_file", "arguments": { "path": world.file(".ssh/id", "key") } });
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": allowed }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": denied }),
    ] {
        writeln!(stdin, "{message}").unwrap();
    }
    let answer = |id: u64| -> Option<Value> {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut answers = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        answers.find(|answer| answer["id"] == json!(id))
    };
    eventually("both calls are answered", TIMEOUT, || answer(2).is_some() && answer(3).is_some());
    let text = |id| answer(id).unwrap()["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text(2), format!("Allowed directories:\n{}", world.sandbox().display()));
    assert!(text(3).contains("structural-protected-path"), "{}", text(3));
    drop(stdin);
    assert!(shim.wait().unwrap().success());
    eventually("the session ended", TIMEOUT, || world.sessions().is_empty());
}
