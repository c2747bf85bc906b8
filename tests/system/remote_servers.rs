//! Remote servers over streamable HTTP. They are judged, approved and recorded like local servers, and their effect
//! on the daemon is limited.

mod everything;
mod fake_server;
mod faults;
mod login;
mod streams;
pub mod tls;

use crate::client::{Client, TIMEOUT};
use crate::scripted_user::{Next, paths};
use crate::world::{World, eventually};
pub use fake_server::FakeServer;
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{Reply, Request};
use serde_json::{Value, json};
use std::path::Path;

/// Creates a test environment with a remote server, `far`. Its tool `say` is allowed, and its tool `look` requires
/// approval.
fn world(entry: &Value) -> World {
    World::with(|prepared| {
        let tool = |name: &str, args: Value| json!({ "toolName": name, "serverName": "far", "comment": "", "args": args });
        let tools =
            [tool("say", json!({ "text": ["none"] })), tool("look", json!({ "path": ["read-path"] }))];
        let annotations = json!({ "schemaVersion": 1, "servers": { "far": { "tools": tools } } });
        let rule = |name: &str, condition: Value, then: &str| json!({ "name": name, "description": name, "principle": name, "if": condition, "then": then, "reason": name });
        let rules = [rule("free", json!({ "tool": ["say"] }), "allow"), rule("ask", json!({}), "escalate")];
        let policy = prepared.home.policy();
        std::fs::write(policy.join("tool-annotations.json"), annotations.to_string()).unwrap();
        let rules = json!({ "schemaVersion": 1, "rules": rules });
        std::fs::write(policy.join("compiled-policy.json"), rules.to_string()).unwrap();
        write_entry(&prepared.home.config, "far", entry);
    })
}

fn write_entry(config: &Path, name: &str, entry: &Value) {
    let servers = json!({ "mcpServers": { name: entry } }).to_string();
    std::fs::write(config.join("mcp-servers.json"), servers).unwrap();
}

impl Client {
    fn say(&mut self, text: &str) -> ironcurtain_testkit::client::Outcome {
        self.call("say", json!({ "text": text }))
    }
}

/// Returns all audit entries with this event.
fn audit_entries(world: &World, event: &str) -> Vec<Value> {
    let log = world.log();
    let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries.filter(|entry| entry["event"] == event).collect()
}

#[test]
fn remote_server_calls_are_judged_approved_and_recorded() {
    let far = FakeServer::start();
    let headers = json!({ "Authorization": "Bearer abc123def", "X-Team": "blue" });
    let world = world(&json!({ "type": "http", "url": far.url(), "headers": headers }));
    let report = world.file("docs/report.txt", "numbers");
    let secret = world.file(".ssh/id_ed25519", "key");
    let mut client = world.connect("far");
    client.request("tools/list", json!({}));
    assert_eq!(client.say("hello").ok(), r#"{"text":"hello"}"#);
    assert_eq!(world.user.count(), 0);

    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    let looked = client.call("look", json!({ "path": report }));
    assert_eq!(looked.ok(), json!({ "path": report }).to_string());
    let asked = world.user.asked();
    assert_eq!(
        (paths(&asked[0]), asked[0].remote, asked[0].sandboxed),
        (vec![report.to_str().unwrap()], true, false)
    );
    assert_eq!(asked[0].server_command, far.url());
    client.call("look", json!({ "path": report })).refused("DENIED");
    client.call("look", json!({ "path": secret })).refused("protected");
    assert_eq!(world.user.asked().len(), 1, "protected paths are not asked about");

    let Reply::Sessions(sessions) = world.request(Request::Sessions) else { panic!() };
    assert_eq!((sessions[0].remote, sessions[0].sandboxed, sessions[0].server_pid), (true, false, None));
    assert_eq!(sessions[0].roots, [], "the server sees no file");
    client.hang_up();
    eventually("the server receives the end of the session", TIMEOUT, || {
        far.methods().contains(&"DELETE".to_owned())
    });

    let all = far.asked();
    assert!(all.iter().all(|asked| asked.header("authorization") == "Bearer abc123def"));
    assert!(all.iter().all(|asked| asked.header("x-team") == "blue" && asked.path == "/mcp"));
    let greetings = all.iter().filter(|asked| asked.method() == "initialize").count();
    assert_eq!(greetings, 1, "the server is initialized once, however early the client is");
    let greeting = &all[0];
    assert_eq!((greeting.method(), greeting.header("mcp-session-id")), ("initialize", ""));
    assert_eq!(greeting.body["params"]["capabilities"], json!({}), "the server gets no roots");
    let later = |asked: &fake_server::ReceivedRequest| {
        (
            asked.header("mcp-session-id") == fake_server::SESSION,
            asked.header("mcp-protocol-version") == "2025-06-18",
        )
    };
    assert!(all.iter().skip(1).all(|asked| later(asked) == (true, true)), "{all:?}");
    let calls: Vec<_> = all.iter().filter(|asked| asked.method() == "tools/call").collect();
    assert_eq!((calls.len(), calls[0].header("mcp-name")), (2, "say"));

    let reached = audit_entries(&world, "network");
    assert!(!reached.is_empty());
    for entry in &reached {
        assert_eq!((&entry["host"], &entry["sandboxed"]), (&json!("127.0.0.1"), &json!(false)));
        assert_eq!(entry["policyDecision"]["status"], "allow");
    }
    assert!(!world.log().contains("abc123def"), "no header is recorded");
    assert!(world.audit().intact);
}

#[test]
fn remote_server_grant_allows_calls_and_mounts_nothing() {
    let far = FakeServer::start();
    let world = world(&json!({ "url": far.url() }));
    let report = world.file("docs/report.txt", "numbers");
    let mut client = world.connect("far");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    for _ in 0..2 {
        client.call("look", json!({ "path": report })).ok();
    }
    assert_eq!(world.user.asked().len(), 1);
    let Reply::Sessions(sessions) = world.request(Request::Sessions) else { panic!() };
    assert_eq!(sessions[0].roots, []);
    let Reply::Grants(grants) = world.request(Request::Grants) else { panic!() };
    world.request(Request::Revoke { grant: grants[0].id.clone() });
    client.call("look", json!({ "path": report })).refused("DENIED");
}

#[test]
fn remote_server_tools_can_be_annotated() {
    let far = FakeServer::start();
    let world = world(&json!({ "url": far.url(), "headers": { "X-Key": "k-1" } }));
    let ironcurtain = |arguments: &[&str]| {
        let mut command = std::process::Command::new(world.programs.join("ironcurtain"));
        let output = command.args(arguments).env("IRONCURTAIN_HOME", world.ours()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let said = ironcurtain(&["servers", "annotate", "far", "--yes", "--unknown-as-text", "--allow-root"]);
    assert!(
        said.contains("say - say") && said.contains("look - look") && said.contains("read-path"),
        "{said}"
    );
    let all = far.asked();
    assert!(all.iter().all(|asked| asked.header("x-key") == "k-1"));
    assert!(all.iter().any(|asked| asked.method() == "tools/list"));
    let listed = ironcurtain(&["servers", "list"]);
    assert!(
        listed.contains("far  REMOTE, cannot be sandboxed  2 tools annotated") && listed.contains(&far.url()),
        "{listed}"
    );
}
