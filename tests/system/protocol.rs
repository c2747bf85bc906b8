//! Invalid messages from a client or a server: each gets a clear error, and the session continues.

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::WithdrawalReason;
use serde_json::{Value, json};
use std::time::Instant;

const MAX: usize = 64 * 1024 * 1024;

fn error(client: &mut Client, line: &[u8]) -> (i64, String) {
    client.send_raw(line);
    client.send_raw(b"\n");
    let answer = client.wait_for(|m| m.get("error").is_some());
    (answer["error"]["code"].as_i64().unwrap(), answer["error"]["message"].as_str().unwrap().to_owned())
}

pub fn assert_session_works(client: &mut Client) {
    assert_eq!(client.call("echo", json!({ "n": 1 })).ok(), r#"{"n":1}"#);
}

#[test]
fn invalid_client_messages_get_errors() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let too_deep = format!(
        r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"echo","arguments":{{"n":{}1{}}}}}}}"#,
        "[".repeat(500),
        "]".repeat(500)
    );
    let call = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
        )
    };
    for (line, code, text) in [
        ("{\"jsonrpc\":\"2.0\",\"id\":5,", -32700, "the message is not JSON: "),
        ("nonsense", -32700, "the message is not JSON: "),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}]",
            -32600,
            "only protocol version 2025-03-26 has batches",
        ),
        ("{\"jsonrpc\":\"1.0\",\"id\":5,\"method\":\"ping\"}", -32600, "`jsonrpc` is not \"2.0\""),
        ("{\"id\":5,\"method\":\"ping\"}", -32600, "`jsonrpc` is not \"2.0\""),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            -32600,
            "`id` is neither a number nor a string",
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"no/such\"}", -32601, "`no/such` is not available"),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"initialize\",\"params\":{}}",
            -32600,
            "initialized already",
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/call\"}", -32602, "`params` is missing"),
        (&too_deep, -32602, "recursion limit"),
        (&call(r#"{"n":1,"n":2}"#), -32602, "`n` comes twice"),
        (&call(r#"{"n":{"a":1,"a":2}}"#), -32602, "`a` comes twice"),
        (&call(r#"{"n":[{"a":[{"b":1,"b":1}]}]}"#), -32602, "`b` comes twice"),
        (&call(r#"{"n":{"$serde_json::private::RawValue":"1"}}"#), -32602, "is not accepted as a name"),
        (&call("[]"), -32602, "expected an object"),
    ] {
        let (got, message) = error(&mut client, line.as_bytes());
        assert!(got == code && message.contains(text), "{line}: {got} {message}");
    }
    assert_eq!(error(&mut client, b"\xff\xfe{}").0, -32700);
    assert_session_works(&mut client);
    assert!(world.audit().intact);
}

#[test]
fn batch_is_accepted_in_the_protocol_version_that_defines_it() {
    let world = hostile::world();
    let mut client = world.start("hostile");
    client.request(
        "initialize",
        json!({ "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }),
    );
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let call = |id: u64, path: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "open", "arguments": { "path": path } } });
    client.send(&json!([
        { "jsonrpc": "2.0", "id": 71, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } },
        7,
        call(72, "/etc/shadow"),
        { "jsonrpc": "2.0", "id": 73, "method": "tools/list" },
    ]));
    assert_eq!(client.answer(71)["result"], json!({}));
    assert_eq!(client.wait_for(|m| m["id"].is_null())["error"]["code"], -32600);
    client.outcome(72).refused("structural-protected-path");
    assert_eq!(client.answer(73)["result"]["tools"][1]["name"], json!("open"));
    assert_eq!(error(&mut client, b"[]").0, -32600);
    assert_session_works(&mut client);
}

#[test]
fn progress_token_reports_pending_approval() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    for _ in 0..2 {
        world.user.will(Next::Ignore);
    }
    client.begin_call("open", json!({ "path": world.file("docs/other.txt", "other") }));
    let call = json!({ "name": "open", "arguments": { "path": secret }, "_meta": { "progressToken": "t" } });
    let call = client.begin("tools/call", call);
    let mut told = || {
        let progress = client.wait_for(|m| m["method"] == "notifications/progress");
        assert_eq!(progress["params"]["progressToken"], "t", "{progress}");
        assert_eq!(progress["params"]["message"], "IronCurtain is waiting for the user's answer");
        progress["params"]["progress"].as_f64().unwrap()
    };
    let (first, second) = (told(), told());
    assert!(0.0 < first && first < second && second < 0.001, "{first} {second}");
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } }),
    );
    eventually("the session ends", TIMEOUT, || world.user.withdrawn() == [WithdrawalReason::Cancelled]);
    assert_session_works(&mut client);
}

#[test]
fn first_request_must_be_initialize() {
    let world = hostile::world();
    let mut client = world.start("hostile");
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    let answer = client.request("tools/list", json!({}));
    assert_eq!(answer["error"]["message"], "the first request must be `initialize`");
    client.handshake();
    assert_session_works(&mut client);
}

#[test]
fn longest_message_passes_and_one_more_byte_is_refused() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let line = |id: u64, length: usize| {
        let head = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"heard","arguments":{{}},"_meta":{{"x":""#
        );
        let tail = "\"}}}";
        format!("{head}{}{tail}\n", "x".repeat(length - head.len() - tail.len()))
    };
    client.send_raw(line(901, MAX).as_bytes());
    client.outcome(901).ok();
    client.send_raw(line(902, MAX + 1).as_bytes());
    let refused = client.answer(902);
    let expected = format!("the message is {} bytes long; the limit is {MAX} bytes", MAX + 1);
    assert_eq!(refused["error"]["message"], expected);
    assert_session_works(&mut client);
}

#[test]
fn stdout_noise_is_logged_and_ignored() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    assert_eq!(client.plain("noise").ok(), "sorry");
    assert_session_works(&mut client);
    let session = world.home.sessions().join(&world.sessions()[0].id).join("session.log");
    eventually("the noise is in the log", TIMEOUT, || {
        let log = std::fs::read_to_string(&session).unwrap_or_default();
        log.contains("this is no message") && log.contains("a response to an unknown request: 999")
    });
}

#[test]
fn crashed_server_fails_its_calls_and_restarts_initialized() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let waiting = client.begin_call("slow", json!({}));
    client.plain("die").refused("the server stopped before it answered");
    client.outcome(waiting);
    assert_session_works(&mut client);
    let heard: Value = serde_json::from_str(client.plain("heard").ok()).unwrap();
    assert_eq!(heard[0]["method"], "notifications/initialized");
    assert!(world.activity().iter().any(|e| e.summary.contains("exit status 3")), "{:?}", world.activity());
}

#[test]
fn crash_looping_server_is_backed_off() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let rests = "it exited 3 times immediately after starting";
    eventually("the server is backed off", TIMEOUT, || {
        client.plain("die").refused("the server").contains(rests)
    });
    eventually("the server is started again", TIMEOUT, || !client.plain("heard").is_error);
}

#[test]
fn call_to_silent_server_can_be_cancelled() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let slow = client.begin_call("slow", json!({}));
    let twice = json!({ "jsonrpc": "2.0", "id": slow, "method": "ping" });
    client.send(&twice);
    let answer = client.answer(slow);
    assert_eq!(answer["error"]["message"], format!("the id {slow} is in use by a pending request"));
    assert_session_works(&mut client);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": slow, "reason": "bored" } }));
    let heard = client.plain("heard");
    let heard: Value = serde_json::from_str(heard.ok()).unwrap();
    assert_eq!(heard[1]["method"], "notifications/cancelled");
    // The reason is omitted, because it is client text that the user has not seen.
    assert!(heard[1]["params"]["reason"].is_null());
    client.send(&twice);
    assert_eq!(client.answer(slow)["result"], json!({}));
}

#[test]
fn cancelled_call_is_not_sent_to_restarted_server() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let slow = client.begin_call("slow", json!({}));
    client.plain("die");
    client.outcome(slow);
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": slow } }),
    );
    let heard: Value = serde_json::from_str(client.plain("heard").ok()).unwrap();
    assert_eq!(heard.as_array().unwrap().len(), 1, "{heard}");
}

#[test]
fn cancelling_a_call_closes_its_question() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    world.user.will(Next::Ignore);
    let call = client.begin_call("open", json!({ "path": secret }));
    eventually("the question is asked", TIMEOUT, || world.user.asked().len() == 1);
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } }),
    );
    eventually("the question is closed", TIMEOUT, || world.user.withdrawn() == [WithdrawalReason::Cancelled]);
    client.sneak(&secret).refused("os error 2)");
    let open: Vec<_> = world.activity().into_iter().filter(|e| e.tool.as_deref() == Some("open")).collect();
    let mut events: Vec<&str> = open.iter().map(|e| e.event.as_str()).collect();
    events.sort_unstable();
    assert_eq!(events, ["outcome", "question"], "{open:?}");
    assert!(open.iter().any(|e| e.summary == "The client cancelled the call"), "{open:?}");
}

#[test]
fn giant_response_arrives_and_oversized_response_is_an_error() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    assert_eq!(client.call("big", json!({ "bytes": 60_000_000 })).ok().len(), 60_000_000);
    client.call("big", json!({ "bytes": MAX })).refused("MB; the limit is 64 MB");
    assert_session_works(&mut client);
}

#[test]
fn long_response_arrives_intact_beside_other_calls() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    for _ in 0..3 {
        let big = client.begin_call("big", json!({ "bytes": 5_000_000 }));
        let others: Vec<u64> = (0..50).map(|n| client.begin_call("echo", json!({ "n": n }))).collect();
        assert_eq!(client.outcome(big).ok().len(), 5_000_000);
        for other in others {
            client.outcome(other).ok();
        }
    }
}

#[test]
fn non_reading_client_does_not_block_others() {
    let world = hostile::world();
    let mut deaf = world.connect_non_reading("hostile");
    for _ in 0..40 {
        deaf.begin_call("big", json!({ "bytes": 20_000_000 }));
    }
    let mut client = world.connect("hostile");
    let began = Instant::now();
    for _ in 0..20 {
        assert_session_works(&mut client);
    }
    assert!(began.elapsed() < TIMEOUT);
}

#[test]
fn server_sees_only_mounted_parts_of_host() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let environ = client.plain("environ").ok().to_owned();
    let mut names: Vec<&str> =
        environ.split(' ').filter(|n| !["LANG", "TERM", "USER", "LC_ALL"].contains(n)).collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "PATH", "PWD", "TMPDIR"]);
    client.call("connect", json!({ "where": world.home.socket })).refused("os error ");
    for own in [
        world.home.state.join("state.db"),
        world.home.audit().join("audit.jsonl"),
        world.home.config.join("mcp-servers.json"),
    ] {
        client.sneak(&own).refused("os error 2)");
        client.scribble(&own).refused("os error");
    }
    assert!(world.audit().intact);
}

#[test]
fn invalid_server_configuration_error_names_the_server() {
    let world = World::with(|w| {
        let servers = r#"{ "mcpServers": { "gone": { "command": "/nonexistent/server", "alwaysAllow": [] },
            "mute": { "type": "stdio", "command": "/bin/cat" }, "off": { "command": "/bin/cat", "disabled": true } } }"#;
        std::fs::write(w.home.config.join("mcp-servers.json"), servers).unwrap();
    });
    let mut client = world.start("gone");
    for method in ["server/discover", "initialize", "initialize"] {
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
            "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} },
        });
        let answer = client.request(method, params);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("the server `gone` is not running") && message.contains("/nonexistent/server"),
            "{method}: {message}"
        );
    }
    client.hang_up();
    let mut unknown = world.start("nobody");
    let expected = "IronCurtain: no server is named `nobody`; pass one of `gone`, `mute` to `--server`, or add `nobody` to `mcp-servers.json`";
    for method in ["server/discover", "initialize", "tools/list"] {
        assert_eq!(unknown.request(method, json!({}))["error"]["message"], expected, "{method}");
    }
    unknown.hang_up();
    let off = world.start("off").request("initialize", json!({}));
    let expected =
        "IronCurtain: the server `off` is disabled; remove `disabled` from its entry in `mcp-servers.json`";
    assert_eq!(off["error"]["message"], expected);
}

#[test]
fn incomplete_stateless_request_is_an_error_and_handshake_may_follow() {
    let world = hostile::world();
    let mut client = world.start("hostile");
    let answer = client.request("server/discover", json!({}));
    let missing = "missing `io.modelcontextprotocol/protocolVersion` (a string) in `params._meta`";
    assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(-32602), &json!(missing)));
    client.handshake();
    assert_session_works(&mut client);
}
