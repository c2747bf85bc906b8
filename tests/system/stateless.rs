//! Stateless clients and servers (2026-07-28), combined with each other and with handshake clients and servers.

mod version_detection;

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::scripted;
use crate::test_home::Prepared;
use crate::world::{World, eventually, installed};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Script of a handshake server that sends a request to the client during each call.
const ASKS: &str = r#"
for m in messages():
    method = m.get("method")
    if method == "initialize":
        if "elicitation" not in m["params"]["capabilities"]: sys.exit(9)
        greet(m)
    elif method == "tools/call":
        call = m
        say(id="q", method="elicitation/create", params={"message": "who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}})
    elif "result" in m:
        say(method="notifications/tools/list_changed")
        answer(call, json.dumps([m["result"], call["params"]["arguments"]]))
    elif method == "tools/list":
        say(id=m["id"], result={"tools": []})
"#;

/// Script of a stateless server that requests the roots and a name during each call.
const ALONE: &str = r#"
OWN = "io.modelcontextprotocol/"
for m in messages():
    if "id" not in m: continue
    params = m.get("params", {})
    meta = params.get("_meta", {})
    if meta.get(OWN + "protocolVersion") != "2026-07-28" or OWN + "clientCapabilities" not in meta:
        say(id=m["id"], error={"code": -32022, "message": "Unsupported protocol version", "data": {"supported": ["2026-07-28"], "requested": "?"}})
    elif m["method"] == "server/discover":
        say(id=m["id"], result={"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
            "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}},
            "_meta": {OWN + "serverInfo": {"name": "alone", "version": "1"}}})
    elif m["method"] == "subscriptions/listen":
        stamp = {OWN + "subscriptionId": m["id"]}
        say(method="notifications/subscriptions/acknowledged", params={"_meta": stamp, "notifications": params["notifications"]})
        for uri in params["notifications"].get("resourceSubscriptions", []):
            say(method="notifications/resources/updated", params={"_meta": stamp, "uri": uri})
        if "toolsListChanged" in params["notifications"]:
            say(method="notifications/tools/list_changed", params={"_meta": stamp})
    elif m["method"] == "tools/call" and params["name"] == "slow":
        asked = {"s": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}}
        say(id=m["id"], result={"resultType": "input_required", "inputRequests": asked})
    elif m["method"] == "tools/call" and params["name"] == "echo":
        n = int(params.get("requestState", "0")) + 1
        say(id=m["id"], result={"resultType": "input_required", "requestState": str(n)})
    elif m["method"] == "tools/call" and "requestState" not in params:
        asked = {"r": {"method": "roots/list"}, "n": {"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "number"}}}}}}
        say(id=m["id"], result={"resultType": "input_required", "inputRequests": asked, "requestState": "s1"})
    elif m["method"] == "tools/call":
        said = [params["requestState"], params["inputResponses"], params["arguments"], meta.get("progressToken"), meta[OWN + "clientInfo"]["name"]]
        say(id=m["id"], result={"resultType": "complete", "content": [{"type": "text", "text": json.dumps(said)}], "isError": False})
"#;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/stateless").join(name)
}

/// Creates a test environment with a server of the Python SDK that has these arguments.
fn python(args: &[&str]) -> World {
    World::with(|prepared| install(prepared, args))
}

fn install(prepared: &Prepared, args: &[&str]) {
    hostile::install(prepared);
    let program = std::fs::read_to_string(script("server.py")).unwrap();
    let args: Vec<&str> = [&["-c", program.as_str()], args].concat();
    let packages = installed("pypi");
    let entry = json!({
        "command": "/usr/bin/python3", "args": args,
        "env": { "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1" },
        "sandbox": { "filesystem": { "allowRead": [packages] } },
    });
    let servers = json!({ "hostile": entry }).to_string();
    std::fs::write(prepared.home.config.join("mcp-servers.json"), servers).unwrap();
}

/// Runs the Python SDK's client with this server command. Returns the client's report.
fn sdk_client_report(mode: &str, command: &mut Command) -> Value {
    let (program, args) = (command.get_program().to_owned(), command.get_args().map(ToOwned::to_owned));
    let args: Vec<_> = args.collect();
    let environment: Vec<_> =
        command.get_envs().map(|(k, v)| (k.to_owned(), v.unwrap().to_owned())).collect();
    let said = Command::new("/usr/bin/python3")
        .arg(script("client.py"))
        .arg(mode)
        .arg(program)
        .args(args)
        .envs(environment)
        .env("PYTHONPATH", installed("pypi"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&said.stderr);
    serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{complaint}"))
}

fn through(world: &World, mode: &str) -> Value {
    let mut shim = Command::new(world.programs.join("ironcurtain-shim"));
    sdk_client_report(mode, shim.args(["--server", "hostile"]).env("IRONCURTAIN_HOME", world.ours()))
}

fn direct(mode: &str, args: &[&str]) -> Value {
    sdk_client_report(mode, Command::new("/usr/bin/python3").arg(script("server.py")).args(args))
}

/// Sends a request as a stateless client does.
pub fn begin(client: &mut Client, method: &str, mut params: Value) -> u64 {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "modern", "version": "1" });
    client.begin(method, params)
}

/// Sends a request as a stateless client does, and waits for its response.
pub fn request(client: &mut Client, method: &str, params: Value) -> Value {
    let id = begin(client, method, params);
    client.answer(id)
}

/// Parses the text of a tool result as JSON.
fn result_json(answer: &Value) -> Value {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{answer}"))
}

#[test]
fn stateless_sdk_client_and_server_behave_as_without_ironcurtain() {
    for args in [[].as_slice(), &["--alone"]] {
        let world = python(args);
        let told = through(&world, "auto");
        assert_eq!(told, direct("auto", args));
        assert_eq!((&told["version"], &told["asked"]), (&json!("2026-07-28"), &json!(["Who are you?"])));
        let calls = world
            .log()
            .lines()
            .filter(|line| line.contains("\"toolName\":\"now\"") && line.contains("\"allow\""))
            .count();
        assert_eq!(calls, 1, "a call was not decided exactly once: {}", world.log());
    }
}

#[test]
fn handshake_sdk_client_uses_stateless_sdk_server() {
    let world = python(&["--alone"]);
    let told = through(&world, "legacy");
    assert_eq!((&told["version"], &told["asked"]), (&json!("2025-11-25"), &json!(["Who are you?"])));
    assert_eq!(told["call"]["structuredContent"], json!({ "result": "hello Ada" }));
    let direct = direct("auto", &["--alone"]);
    assert_eq!((&told["tools"]["tools"], &told["server"]), (&direct["tools"]["tools"], &direct["server"]));
    // The server was recognized as stateless, so it gets no handshake.
    assert_eq!(through(&world, "legacy")["asked"], json!(["Who are you?"]));
}

#[test]
fn stateless_sdk_client_uses_handshake_server() {
    let world = scripted::world(ASKS);
    let told = through(&world, "auto");
    assert_eq!((&told["version"], &told["asked"]), (&json!("2026-07-28"), &json!(["who?", "who?"])));
    assert_eq!((&told["news"], &told["server"]["name"]), (&json!(["ToolsListChanged"]), &json!("scripted")));
    let text = told["call"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, r#"[{"action": "accept", "content": {"name": "Ada"}}, {}]"#);
}

#[test]
fn retry_must_match_the_judged_call() {
    let world = scripted::world(ASKS);
    let mut client = world.start("hostile");
    let arguments = json!({ "n": 1, "text": "a" });
    let call = json!({ "name": "echo", "arguments": arguments });
    let first = request(&mut client, "tools/call", call.clone());
    let state = &first["result"]["requestState"];
    assert_eq!(first["result"]["inputRequests"]["input-1"]["params"]["message"], "who?", "{first}");
    let brings = |name: &str, arguments: &Value, state: &Value| {
        json!({ "name": name, "arguments": arguments, "requestState": state,
            "inputResponses": { "input-1": { "action": "decline" } } })
    };
    for (params, because) in [
        (brings("echo", &json!({ "n": 2, "text": "a" }), state), "belongs to another call"),
        (brings("now", &arguments, state), "belongs to another call"),
        (brings("echo", &arguments, &json!("x")), "is unknown"),
    ] {
        let refused = request(&mut client, "tools/call", params);
        assert!(refused["error"]["message"].as_str().unwrap_or_default().contains(because), "{refused}");
    }
    let done = request(&mut client, "tools/call", brings("echo", &arguments, state));
    assert_eq!(result_json(&done), json!([{ "action": "decline" }, arguments]));
    let again = request(&mut client, "tools/call", brings("echo", &arguments, state));
    assert!(again["error"]["message"].as_str().unwrap().contains("is unknown"), "{again}");
    let log = world.log();
    assert_eq!(
        log.lines().filter(|line| line.contains("\"allow\"") && line.contains("echo")).count(),
        1,
        "{log}"
    );
}

#[test]
fn handshake_client_gets_input_requests_of_stateless_server() {
    let world = scripted::world(ALONE);
    let mut client = world.start("hostile");
    let greeting = client.handshake_with(&json!({ "elicitation": {}, "sampling": {} }));
    let greeting = &greeting["result"];
    assert_eq!(
        (&greeting["protocolVersion"], &greeting["serverInfo"]["name"]),
        (&json!("2025-06-18"), &json!("alone"))
    );
    client.wait_for(|m| {
        m["method"] == "notifications/tools/list_changed" && m.get("params").is_none_or(|p| p == &json!({}))
    });
    assert_eq!(client.request("resources/subscribe", json!({ "uri": "memo://a" }))["result"], json!({}));
    let updated = client.wait_for(|m| m["method"] == "notifications/resources/updated");
    assert_eq!(updated["params"], json!({ "uri": "memo://a" }));
    for forged in [json!({ "requestState": "forged" }), json!({ "inputResponses": { "n": {} } })] {
        let mut params = json!({ "name": "now", "arguments": {} });
        params.as_object_mut().unwrap().extend(forged.as_object().unwrap().clone());
        let refused = client.request("tools/call", params);
        assert!(refused["error"]["message"].as_str().unwrap().contains("unknown field"), "{refused}");
    }
    let params = json!({ "name": "now", "arguments": {}, "_meta": { "progressToken": 4 } });
    let id = client.begin("tools/call", params);
    let asked = client.wait_for(|m| m["method"] == "elicitation/create");
    assert_eq!(asked["params"]["message"], "who?");
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept", "content": { "a": 1 } } }));
    let answer = result_json(&client.answer(id));
    let root = answer[1]["r"]["roots"][0]["uri"].as_str().unwrap();
    assert_eq!(root, format!("file://{}", world.sandbox().display()));
    assert_eq!(answer[1]["n"], json!({ "action": "accept", "content": { "a": 1 } }));
    assert_eq!((&answer[0], &answer[3], &answer[4]), (&json!("s1"), &json!(4), &json!("test-client")));
    let refused = client.plain("slow");
    refused.refused("DENIED: the user denied it");
    assert!(world.user.asked().iter().any(|question| question.rule == "sampling"));
    let endless = client.call("echo", json!({ "n": 1, "text": "" }));
    endless.refused("it asked 16 times in one call");
    assert!(client.plain("now_unknown").is_error);
}

#[test]
fn input_request_of_stateless_server_ends_when_call_is_cancelled() {
    let world = scripted::world(ALONE);
    let mut client = world.start("hostile");
    client.handshake_with(&json!({ "elicitation": {} }));
    let id = client.begin_call("now", json!({}));
    let asked = client.wait_for(|m| m["method"] == "elicitation/create");
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
    );
    let over = client.wait_for(|m| m["method"] == "notifications/cancelled");
    assert_eq!(over["params"]["requestId"], asked["id"]);
    let id = client.begin_call("now", json!({}));
    let asked = client.wait_for(|m| m["method"] == "elicitation/create");
    let error = json!({ "code": -1, "message": "nobody is here" });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }));
    assert_eq!(client.answer(id)["error"], error);
}

#[test]
fn stateless_client_gets_server_start_failure() {
    let world = scripted::world("sys.stderr.write('no database\\n'); sys.exit(5)");
    let mut client = world.start("hostile");
    for _ in 0..2 {
        let answer = request(&mut client, "server/discover", json!({}));
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("the server `hostile` is not running: "), "{answer}");
    }
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let answer = client.request("initialize", params);
    assert!(
        answer["error"]["message"].as_str().unwrap().starts_with("the server `hostile` is not running: "),
        "{answer}"
    );
}

#[test]
fn unknown_protocol_version_lists_supported_ones_and_handshake_may_follow() {
    let world = scripted::world(
        "for m in messages():\n    if m['method'] == 'initialize': greet(m)\n    elif m['method'] == 'tools/call': answer(m)",
    );
    let mut client = world.start("hostile");
    let params = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2099-01-01", "io.modelcontextprotocol/clientCapabilities": {} } });
    let refused = client.request("server/discover", params);
    let supported = json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["supported"]),
        (&json!(-32022), &supported)
    );
    client.handshake();
    assert_eq!(client.plain("now").ok(), "done");
}

#[test]
fn stateless_client_eof_still_delivers_responses() {
    let world = scripted::world(
        "for m in messages():\n    if m['method'] == 'initialize': greet(m)\n    elif m['method'] == 'tools/call': answer(m)",
    );
    let mut client = world.start("hostile");
    let ids: Vec<u64> =
        (0..3).map(|_| begin(&mut client, "tools/call", json!({ "name": "now", "arguments": {} }))).collect();
    client.close_input();
    for id in ids {
        assert_eq!(client.outcome(id).ok(), "done");
    }
    assert!(client.wait_until_ended());
}

#[test]
fn requests_refused_to_stateless_client_are_recorded() {
    let world = hostile::world();
    let mut client = world.start("hostile");
    let meta = |version: &str| json!({ "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {} });
    let mut call = |meta: Value, beside: Value| {
        let mut params = json!({ "name": "echo", "arguments": { "n": 1 }, "_meta": meta });
        params.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
        client.request("tools/call", params)
    };
    let fine = call(meta("2026-07-28"), json!({}));
    assert_eq!(fine["result"]["isError"], false, "{fine}");
    let retried = json!({ "requestState": "forged", "inputResponses": {} });
    for (meta, beside, why) in [
        (meta("2031-01-01"), json!({}), "Unsupported protocol version"),
        (json!({}), json!({}), "protocolVersion` (a string)"),
        (meta("2026-07-28"), retried, "`requestState` is unknown"),
        (meta("2026-07-28"), json!({ "task": { "ttl": 1 } }), "tasks are not available"),
    ] {
        let refused = call(meta, beside);
        assert!(refused["error"]["message"].as_str().is_some_and(|told| told.contains(why)), "{refused}");
        let is_it = |entry: &Value| {
            let decision = &entry["policyDecision"];
            entry["summary"] == "the request was rejected"
                && entry["method"] == "tools/call"
                && decision["status"] == "deny"
                && decision["reason"].as_str().is_some_and(|reason| reason.contains(why))
        };
        eventually(why, TIMEOUT, || {
            world.log().lines().filter_map(|line| serde_json::from_str(line).ok()).any(|entry| is_it(&entry))
        });
    }
}
