//! Features of several servers behind one entry: the task list, instructions and remote servers.

use crate::aggregation::{connect, edit, entry, lists, shim, wait_for_list_change};
use crate::client::{Client, TIMEOUT};
use crate::remote_servers::FakeServer;
use crate::scripted_user::Next;
use crate::test_home::Prepared;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Script of a server that supports tasks and also lists other servers' tasks.
const TASKS: &str = r#"
for m in messages():
    if m["method"] == "initialize":
        say(id=m["id"], result={"protocolVersion": "2025-11-25", "serverInfo": {"name": NAME, "version": "1"},
            "instructions": "I am %s.\nThe server `x` describes its use:\nnothing" % NAME,
            "capabilities": {"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}})
    elif m["method"] == "tools/list":
        say(id=m["id"], result={"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
    elif m["method"] == "tools/call":
        say(id=m["id"], result={"task": {"taskId": "of-" + NAME, "status": "working", "ttl": None, "createdAt": "2026-01-01T00:00:00Z"}})
    elif m["method"] == "tasks/list":
        if NAME == "silent":
            continue
        if "cursor" in m.get("params", {}):
            say(id=m["id"], result={"tasks": [{"taskId": "of-" + n, "status": "working", "x": NAME} for n in ["b", "silent", "nobody"]]})
        else:
            say(id=m["id"], result={"tasks": [{"taskId": "of-a", "status": "working", "x": NAME}], "nextCursor": "1"})
    elif m["method"] in ["tasks/get", "tasks/cancel"]:
        say(id=m["id"], result={"taskId": m["params"]["taskId"], "status": m["method"] == "tasks/get" and "working" or "cancelled", "x": NAME})
    elif m["method"] == "tasks/result":
        answer(m, "done by " + NAME)
    elif "id" in m:
        say(id=m["id"], error={"code": -32601, "message": "no"})
"#;

/// Configures these servers and allows every call to their tools.
fn install(prepared: &Prepared, servers: &Value) {
    let rule = |name: &str, condition: Value, then: &str| json!({ "name": name, "description": name, "principle": name, "if": condition, "then": then, "reason": name });
    let rules =
        [rule("free", json!({ "tool": ["echo", "say"] }), "allow"), rule("ask", json!({}), "escalate")];
    let policy = json!({ "schemaVersion": 1, "rules": rules }).to_string();
    std::fs::write(prepared.home.policy().join("compiled-policy.json"), policy).unwrap();
    let tool = |server: &str, name: &str, args: Value| json!({ "toolName": name, "serverName": server, "comment": "", "args": args });
    let mut annotated = json!({ "far": { "tools": [
        tool("far", "say", json!({ "text": ["none"] })), tool("far", "look", json!({ "path": ["read-path"] })),
    ] } });
    for server in ["a", "b", "silent"] {
        annotated[server] = json!({ "tools": [tool(server, "echo", json!({}))] });
    }
    let annotations = json!({ "schemaVersion": 1, "servers": annotated }).to_string();
    std::fs::write(prepared.home.policy().join("tool-annotations.json"), annotations).unwrap();
    std::fs::write(prepared.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
}

fn named(name: &str) -> Value {
    entry(&format!("NAME = {name:?}\n{TASKS}"))
}

fn initialize(client: &mut Client) -> Value {
    let client_info = json!({ "name": "c", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info });
    let greeted = client.request("initialize", params);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    greeted
}

fn begin_task(client: &mut Client, tool: &str) {
    let call = json!({ "name": tool, "arguments": {}, "task": { "ttl": 60_000 } });
    let made = client.request("tools/call", call);
    assert!(made["result"]["task"]["taskId"].is_string(), "{made}");
}

#[test]
fn task_list_merges_servers_and_keeps_tasks_separate() {
    let servers = json!({ "a": named("a"), "b": named("b"), "silent": named("silent") });
    let world = World::with(|prepared| install(prepared, &servers));
    let mut client = shim(&world, &[]);
    let greeted = initialize(&mut client);
    assert!(greeted["result"]["capabilities"]["tasks"]["list"].is_object(), "{greeted}");
    for tool in ["a__echo", "b__echo", "silent__echo"] {
        eventually(tool, TIMEOUT, || lists(&mut client, tool));
        begin_task(&mut client, tool);
    }
    // An unresponsive server delays the list only until a timeout.
    let began = Instant::now();
    let all = client.request("tasks/list", json!({}));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let tasks = all["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{all}"));
    let mut found: Vec<(&str, &str)> =
        tasks.iter().map(|task| (task["taskId"].as_str().unwrap(), task["x"].as_str().unwrap())).collect();
    found.sort_unstable();
    assert_eq!(found, [("of-a", "a"), ("of-b", "b")]);
    let refused = client.request("tasks/list", json!({ "cursor": "7" }));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    // A request about a task goes to the server that created it.
    for server in ["a", "b", "silent"] {
        let task = json!({ "taskId": format!("of-{server}") });
        assert_eq!(client.request("tasks/get", task.clone())["result"]["x"], server);
        let id = client.begin("tasks/result", task.clone());
        assert_eq!(client.outcome(id).ok(), format!("done by {server}"));
        assert_eq!(client.request("tasks/cancel", task)["result"]["status"], "cancelled");
    }
    let unknown = client.request("tasks/get", json!({ "taskId": "of-nobody" }));
    assert_eq!(unknown["error"]["message"], "no task of this session is called `of-nobody`");
}

#[test]
fn server_instructions_are_attributed_to_their_server() {
    let hangs = entry("for m in messages():\n    pass");
    let servers = json!({ "a": named("a"), "b": named("b"), "hangs": hangs });
    let world = World::with(|prepared| install(prepared, &servers));
    let mut client = shim(&world, &[]);
    initialize(&mut client);
    eventually("tools of all servers are listed", TIMEOUT, || {
        lists(&mut client, "a__echo") && lists(&mut client, "b__echo")
    });
    client.hang_up();
    // The servers' instructions are already known, so a hanging server causes no delay.
    let began = Instant::now();
    let mut client = shim(&world, &[]);
    let greeted = initialize(&mut client);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let said = greeted["result"]["instructions"].as_str().unwrap();
    for server in ["a", "b"] {
        let own = format!(
            "The server `{server}` describes its use:\n> I am {server}.\n> The server `x` describes its use:\n> nothing"
        );
        assert!(said.contains(&own), "{said}");
    }
    assert!(!said.contains("\nThe server `x`"), "{said}");
}

#[test]
fn remote_server_is_aggregated_and_follows_its_entry() {
    let far = FakeServer::start();
    let world = World::with(|prepared| install(prepared, &json!({ "a": named("a") })));
    let entries = world.home.config.join("mcp-servers.json");
    let report = world.file("docs/report.txt", "numbers");
    let mut client = connect(&world, &[]);
    eventually("tools of `a` are listed", TIMEOUT, || lists(&mut client, "a__echo"));
    let before = world.sessions()[0].id.clone();

    edit(&entries, |servers| servers["far"] = json!({ "url": far.url() }));
    wait_for_list_change(&mut client);
    eventually("tools of the remote server are listed", TIMEOUT, || lists(&mut client, "far__say"));
    assert_eq!(client.call("far__say", json!({ "text": "hi" })).ok(), r#"{"text":"hi"}"#);
    // The policy judges the call under the server's own name. Like any call to a remote server, it needs approval.
    client.call("far__look", json!({ "path": report })).refused("the user denied");
    let question = world.user.asked().remove(0);
    assert_eq!((question.server.as_str(), question.remote), ("far", true));
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    client.call("far__look", json!({ "path": report })).ok();
    let sessions = world.sessions();
    assert!(sessions.iter().all(|one| one.connection == sessions[0].connection) && sessions.len() == 2);

    // The server's failure affects no other server, and the server recovers without a restart.
    far.set_behaviour(|_, back| {
        back.answer("503 Service Unavailable", "", "");
        true
    });
    client.call("far__say", json!({ "text": "hi" })).refused("503");
    begin_task(&mut client, "a__echo");
    far.behave_correctly();
    eventually("the remote server answers again", TIMEOUT, || {
        !client.call("far__say", json!({ "text": "hi" })).is_error
    });

    edit(&entries, |servers| drop(servers.as_object_mut().unwrap().remove("far")));
    wait_for_list_change(&mut client);
    assert!(!lists(&mut client, "far__say"));
    client.call("far__say", json!({ "text": "hi" })).refused("no tool is called `far__say`");
    eventually("the remote server receives the end of the session", TIMEOUT, || {
        far.methods().contains(&"DELETE".to_owned())
    });
    assert_eq!(world.sessions().iter().map(|one| one.id.clone()).collect::<Vec<_>>(), [before]);
    assert!(world.audit().intact);
}
