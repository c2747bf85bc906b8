//! Every request gets exactly one response, and messages stay in order, even if the server or the client misbehaves.

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::machine::Machine;
use crate::scripted;
use crate::world::{World, eventually};
use serde_json::{Value, json};

/// Creates a test environment whose server answers calls to `tool` with the bytes of the Python expression `data`,
/// and other calls correctly.
fn odd(tool: &str, data: &str) -> World {
    scripted::world(&format!(
        r#"
for m in messages():
    if m["method"] == "initialize": greet(m)
    elif m["method"] == "tools/call":
        i = str(m["id"]).encode()
        if m["params"]["name"] == "{tool}": raw({data})
        else: answer(m)
"#
    ))
}

fn assert_session_works(client: &mut Client) {
    assert_eq!(client.plain("echo").ok(), "done");
}

#[test]
fn malformed_response_is_an_error() {
    for (data, why) in [
        (
            r#"b'{"jsonrpc":"2.0","id":'+i+b',"result":{"content":[{"type":"text","text":"\xff"}]}}'"#,
            "not JSON",
        ),
        (
            r#"b'{"jsonrpc":"2.0","id":'+i+b',"result":{},"error":{"code":1,"message":"x"}}'"#,
            "neither a request",
        ),
        (r#"b'{"jsonrpc":"1.0","id":'+i+b',"result":{}}'"#, "`jsonrpc` is not"),
        (r#"b'{"jsonrpc":"2.0","id":'+i+b'}'"#, "neither a request"),
        (r#"b'{"jsonrpc":"2.0","id":"'+i+b'","result":{}}'"#, "the unknown id"),
        (r#"b'{"jsonrpc":"2.0","id":'+i+b'.0,"result":{}}'"#, "the unknown id"),
        (r#"b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}'"#, "neither a number"),
    ] {
        let world = odd("noise", data);
        let mut client = world.connect("hostile");
        client.plain("noise").refused(why);
        assert_session_works(&mut client);
    }
}

#[test]
fn non_utf8_request_gets_an_error_with_its_id() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    client.send_raw(
        b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/call\",\"params\":{\"name\":\"\xff\"}}\n",
    );
    let answer = client.answer(77);
    assert_eq!(answer["error"]["code"], -32700, "{answer}");
    client.call("echo", json!({ "n": 1 })).ok();
}

#[test]
fn server_exit_reports_status_and_redacted_stderr() {
    let world = scripted::world(
        r#"
for m in messages():
    if m["method"] == "initialize": greet(m)
    elif m["method"] == "tools/call":
        if m["params"]["name"] == "die":
            sys.stderr.write("x" * 5000 + "\nconnecting with ghp_abcdefghijklmnop1234567890\nTraceback: no \x1b[31mway\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGSEGV)
        answer(m)
"#,
    );
    let mut client = world.connect("hostile");
    let told = client.plain("die").refused("the server stopped before it answered: signal 11").to_owned();
    assert!(told.contains("Traceback: no \\u{1b}[31mway"), "{told}");
    assert!(told.contains("[redacted: a token]") && !told.contains("ghp_abc") && told.len() < 2000, "{told}");
    assert_session_works(&mut client);
    let outcome = || {
        let record = world.log();
        let mut lines = record.lines();
        lines.find(|line| line.contains("\"outcome\"") && line.contains("signal 11")).map(str::to_owned)
    };
    eventually("the exit is recorded", TIMEOUT, || outcome().is_some());
    let outcome = outcome().unwrap();
    assert!(outcome.contains("Traceback") && !outcome.contains("ghp_abc"), "{outcome}");
}

#[test]
fn client_eof_still_delivers_pending_responses() {
    let world = scripted::world(
        r#"
for m in messages():
    if m["method"] == "initialize": greet(m)
    elif m["method"] == "tools/call":
        time.sleep(0.3)
        answer(m, "late")
    elif "id" in m: say(id=m["id"], result={"tools": []})
"#,
    );
    let mut client = world.connect("hostile");
    let list = client.begin("tools/list", json!({}));
    let calls: Vec<u64> = (0..3).map(|_| client.begin_call("echo", json!({}))).collect();
    client.close_input();
    assert!(client.answer(list).get("result").is_some());
    for call in calls {
        assert_eq!(client.outcome(call).ok(), "late");
    }
    assert!(client.wait_until_ended());
}

#[test]
fn piped_script_gets_all_responses() {
    let world = hostile::world();
    let mut client = world.start("hostile");
    let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let greeting = client.begin("initialize", greeting);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let call = client.begin_call("echo", json!({ "n": 1 }));
    client.close_input();
    assert!(client.answer(greeting).get("result").is_some());
    assert_eq!(client.outcome(call).ok(), r#"{"n":1}"#);
    assert!(client.wait_until_ended());
}

#[test]
fn server_notifications_keep_their_order_before_a_response() {
    let world = scripted::world(
        r#"
for m in messages():
    if m["method"] == "initialize": greet(m)
    elif m["method"] == "tools/call":
        for n in range(3):
            say(method="notifications/progress", params={"progressToken": m["id"], "progress": n})
        answer(m)
        say(method="notifications/message", params={"level": "info", "data": "after"})
"#,
    );
    let mut client = world.connect("hostile");
    for _ in 0..200 {
        let call = client.begin_call("echo", json!({}));
        // IronCurtain itself requests the client's roots once.
        let is_servers = |message: &Value| message["method"] != "roots/list";
        let mut said: Vec<Value> = (0..5).map(|_| client.wait_for(is_servers)).collect();
        assert_eq!(said.pop().unwrap()["params"]["data"], "after");
        assert_eq!(said.pop().unwrap()["id"], call);
        let progress: Vec<_> = said.iter().map(|m| m["params"]["progress"].as_u64()).collect();
        assert_eq!(progress, [Some(0), Some(1), Some(2)], "{said:?}");
    }
}

#[test]
fn client_messages_reach_server_in_order() {
    let world = scripted::world(
        r#"
for m in messages():
    if m["method"] == "initialize": greet(m)
    elif m["method"] == "tools/call":
        answer(m, json.dumps(heard))
        heard.clear()
    elif "id" in m: say(id=m["id"], result={"tools": []})
"#,
    );
    let mut client = world.connect("hostile");
    client.plain("heard").ok();
    for _ in 0..200 {
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 1, "progress": 1 } }));
        client.begin("tools/list", json!({}));
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 1, "progress": 2 } }));
        let heard = client.plain("heard");
        let expected = r#"["notifications/progress", "tools/list", "notifications/progress", "tools/call"]"#;
        assert_eq!(heard.ok(), expected);
    }
}

#[test]
fn client_exit_ends_session_with_a_call_in_flight() {
    let mut machine = Machine::new(hostile::install);
    machine.start();
    let mut client = machine.connect();
    client.begin_call("slow", json!({}));
    client.plain("heard").ok();
    drop(client);
    let began = std::time::Instant::now();
    eventually("the session ends", TIMEOUT, || {
        let shown: Value = serde_json::from_slice(&machine.command(&["sessions", "--json"]).stdout).unwrap();
        shown["sessions"].as_array().unwrap().is_empty()
    });
    assert!(began.elapsed() < std::time::Duration::from_secs(8), "{:?}", began.elapsed());
}
