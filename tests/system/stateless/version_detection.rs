//! Detects the protocol version of servers that do not report it in the usual way.

use super::{request, result_json};
use crate::client::TIMEOUT;
use crate::scripted;
use crate::world::eventually;
use serde_json::json;
use std::time::{Duration, Instant};

/// Script of a stateless server that ignores `initialize` and claims to support tasks.
const SILENT: &str = r#"
OWN = "io.modelcontextprotocol/"
for m in messages():
    if m["method"] == "server/discover":
        say(id=m["id"], result={"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
            "capabilities": {"tools": {}, "tasks": {"list": {}}}, "_meta": {OWN + "serverInfo": {"name": "silent", "version": "1"}}})
    elif m["method"] == "tools/call":
        say(id=m["id"], result={"resultType": "complete", "content": [{"type": "text", "text": " ".join(heard)}], "isError": False})
"#;

/// Script of a handshake server that answers slowly and exits if it receives a request before `initialize`.
const SLOW: &str = r#"
import threading
for m in messages():
    if m["method"] == "initialize":
        threading.Timer(6, greet, [m]).start()
    elif m["method"] == "server/discover":
        os._exit(3)
    elif m["method"] == "tools/call":
        answer(m, " ".join(heard))
"#;

#[test]
fn server_crashing_on_discovery_falls_back_to_handshake() {
    let world = scripted::world(
        r#"
n = number()
for m in messages():
    if m["method"] == "initialize": greet(m)
    elif m["method"] == "server/discover": sys.exit(1)
    elif m["method"] == "tools/call": answer(m, json.dumps([n, m["params"]]))
"#,
    );
    let call = json!({ "name": "now", "arguments": {} });
    for starts in [2, 1] {
        let mut client = world.start("hostile");
        assert_eq!(result_json(&request(&mut client, "tools/call", call.clone())), json!([starts, call]));
        client.hang_up();
        eventually("the server exits", TIMEOUT, || world.sessions().is_empty());
    }
}

#[test]
fn server_ignoring_handshake_is_detected_as_stateless() {
    let world = scripted::world(SILENT);
    let connect = || {
        let began = Instant::now();
        let mut client = world.start("hostile");
        let info = json!({ "name": "c", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        let greeted = client.request("initialize", params);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        (client, greeted, began.elapsed())
    };
    let (mut client, greeted, _) = connect();
    assert_eq!(greeted["result"]["protocolVersion"], "2025-11-25", "{greeted}");
    // The two protocol versions define tasks differently, so the capability is not forwarded.
    assert_eq!(greeted["result"]["capabilities"], json!({ "tools": {} }));
    let call = json!({ "name": "echo", "arguments": {}, "task": { "ttl": 60_000 } });
    let refused = client.request("tools/call", call);
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    let told = refused["error"]["message"].as_str().unwrap();
    assert!(
        told.contains("the server does not support tasks of this protocol version; call without `task`"),
        "{told}"
    );
    assert_eq!(client.call("echo", json!({})).ok(), "initialize server/discover tools/call");
    let (mut again, _, time) = connect();
    assert_eq!(again.call("echo", json!({})).ok(), "server/discover tools/call");
    assert!(time < Duration::from_secs(4), "{time:?}");
}

#[test]
fn slow_handshake_server_crashing_on_discovery_uses_handshake() {
    let world = scripted::world(SLOW);
    let mut client = world.connect("hostile");
    assert_eq!(client.call("echo", json!({})).ok(), "initialize notifications/initialized tools/call");
}
