//! Messages without an id: nothing that is to be judged can be told, and nothing but notifications comes from a server.

use crate::client::{BOUND, Client};
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

/// The methods that the server was told, in order; every message before has reached it.
fn told(client: &mut Client) -> Vec<String> {
    let heard: Vec<Value> = serde_json::from_str(client.plain("heard").ok()).unwrap();
    heard.iter().map(|message| message["method"].as_str().unwrap().to_owned()).collect()
}

fn in_log(world: &World, text: &str) {
    let log = world.home.sessions().join(&world.sessions()[0].id).join("session.log");
    eventually(text, BOUND, || std::fs::read_to_string(&log).unwrap_or_default().contains(text));
}

#[test]
fn a_call_without_an_id_does_not_reach_a_server_that_would_do_it() {
    let world = hostile::hasty();
    let mut client = world.connect("hostile");
    let file = world.sandbox().join("written");
    assert_eq!(told(&mut client), ["notifications/initialized"]);
    client.send(&json!({ "jsonrpc": "2.0", "method": "tools/call", "params": scribbling(&file) }));
    client.send(&json!({ "jsonrpc": "2.0", "method": "resources/read", "params": { "uri": "memo://x" } }));
    client.send(&progress());
    assert_eq!(told(&mut client), ["notifications/initialized", "notifications/progress"]);
    assert!(!file.exists());
    in_log(&world, "dropped a message without an id that is not a client notification: tools/call");
    // The same as a request is judged, done and on record.
    client.call("scribble", json!({ "where": file })).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "scribbled");
    let decided = |e: &ironcurtain_protocol::ActivityView| {
        e.event == "decision" && e.tool.as_deref() == Some("scribble")
    };
    assert_eq!(world.activity().into_iter().filter(decided).count(), 1);
}

#[test]
fn a_call_whose_id_is_null_is_an_error() {
    let world = hostile::hasty();
    let mut client = world.connect("hostile");
    let file = world.sandbox().join("written");
    client
        .send(&json!({ "jsonrpc": "2.0", "id": null, "method": "tools/call", "params": scribbling(&file) }));
    let answer = client.wait_for(|m| m.get("error").is_some());
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)));
    assert_eq!(told(&mut client), ["notifications/initialized"]);
    assert!(!file.exists());
}

#[test]
fn nothing_is_told_before_the_greeting() {
    let world = hostile::hasty();
    let mut client = world.start("hostile");
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    eventually("the server", BOUND, || world.sessions().first().is_some_and(|s| s.server_pid.is_some()));
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    client.send(&progress());
    in_log(&world, "dropped a notification before `initialize`: notifications/progress");
    client.handshake();
    assert_eq!(told(&mut client), ["notifications/initialized"]);
}

#[test]
fn only_notifications_come_from_a_server_without_an_id() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    client.plain("intrude").ok();
    // IronCurtain itself asks for the client's roots.
    let first = client.wait_for(|m| m.get("method").is_some_and(|method| method != "roots/list"));
    // What the protocol does not name is not passed on with it.
    let expected =
        json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info" } });
    assert_eq!(first, expected);
    in_log(&world, "a notification that no server may send was dropped: sampling/createMessage");
    in_log(
        &world,
        "a line on standard output is no message (the message's `id` is neither a number nor a string)",
    );
}

#[test]
fn no_spelling_of_a_file_is_a_resource() {
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
