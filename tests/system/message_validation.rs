//! Messages without an id: a request that requires a decision cannot be sent as a notification, and a server may only
//! send notifications this way.

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::world::{World, eventually};
use serde_json::{Value, json};
use std::path::Path;

fn scribbling(file: &Path) -> Value {
    json!({ "name": "scribble", "arguments": { "where": file } })
}

fn progress() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 1, "progress": 1 } })
}

/// Returns the methods of the notifications that the server has received, in order. Includes everything that was sent
/// before this call.
fn received_notifications(client: &mut Client) -> Vec<String> {
    let heard: Vec<Value> = serde_json::from_str(client.plain("heard").ok()).unwrap();
    heard.iter().map(|message| message["method"].as_str().unwrap().to_owned()).collect()
}

fn wait_for_log_line(world: &World, text: &str) {
    let log = world.home.sessions().join(&world.sessions()[0].id).join("session.log");
    eventually(text, TIMEOUT, || std::fs::read_to_string(&log).unwrap_or_default().contains(text));
}

#[test]
fn call_without_id_never_reaches_server() {
    let world = hostile::executing_notifications();
    let mut client = world.connect("hostile");
    let file = world.sandbox().join("written");
    assert_eq!(received_notifications(&mut client), ["notifications/initialized"]);
    client.send(&json!({ "jsonrpc": "2.0", "method": "tools/call", "params": scribbling(&file) }));
    client.send(&json!({ "jsonrpc": "2.0", "method": "resources/read", "params": { "uri": "memo://x" } }));
    client.send(&progress());
    assert_eq!(received_notifications(&mut client), ["notifications/initialized", "notifications/progress"]);
    assert!(!file.exists());
    wait_for_log_line(
        &world,
        "dropped a message without an id that is not a client notification: tools/call",
    );
    // The same message with an id is judged, executed and recorded.
    client.call("scribble", json!({ "where": file })).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "scribbled");
    let decided = |e: &ironcurtain_protocol::ActivityView| {
        e.event == "decision" && e.tool.as_deref() == Some("scribble")
    };
    assert_eq!(world.activity().into_iter().filter(decided).count(), 1);
}

#[test]
fn call_with_null_id_is_an_error() {
    let world = hostile::executing_notifications();
    let mut client = world.connect("hostile");
    let file = world.sandbox().join("written");
    client
        .send(&json!({ "jsonrpc": "2.0", "id": null, "method": "tools/call", "params": scribbling(&file) }));
    let answer = client.wait_for(|m| m.get("error").is_some());
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)));
    assert_eq!(received_notifications(&mut client), ["notifications/initialized"]);
    assert!(!file.exists());
}

#[test]
fn notifications_before_initialize_are_dropped() {
    let world = hostile::executing_notifications();
    let mut client = world.start("hostile");
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    eventually("the server starts", TIMEOUT, || {
        world.sessions().first().is_some_and(|s| s.server_pid.is_some())
    });
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    client.send(&progress());
    wait_for_log_line(&world, "dropped a notification before `initialize`: notifications/progress");
    client.handshake();
    assert_eq!(received_notifications(&mut client), ["notifications/initialized"]);
}

#[test]
fn messages_without_id_from_server_must_be_notifications() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    client.plain("intrude").ok();
    // IronCurtain itself requests the client's roots.
    let first = client.wait_for(|m| m.get("method").is_some_and(|method| method != "roots/list"));
    // Unknown fields are not forwarded.
    let expected =
        json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info" } });
    assert_eq!(first, expected);
    wait_for_log_line(&world, "dropped a notification that servers must not send: sampling/createMessage");
    wait_for_log_line(
        &world,
        "invalid message on standard output (the message's `id` is neither a number nor a string)",
    );
}

#[test]
fn file_uri_spellings_are_not_resources() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    for method in ["resources/read", "resources/subscribe", "resources/unsubscribe"] {
        for uri in
            ["file:/etc/passwd", "\u{1}file:///etc/passwd", "fi\tle:///etc/passwd", "fi\nle:/etc/passwd"]
        {
            let answer = client.request(method, json!({ "uri": uri }));
            let problem = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(problem.starts_with("DENIED: "), "{method} {uri:?}: {answer}");
        }
        assert_eq!(client.request(method, json!({ "uri": "memo://x" }))["result"], json!({}));
    }
}
