//! Several servers behind one client entry, including broken and hanging ones.

use crate::client::{Client, TIMEOUT};
use crate::scripted::PRELUDE;
use crate::scripted_user::Next;
use crate::servers;
use crate::test_home::Prepared;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{Reply, Request};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Script of a server with 700 tools on several pages. The name of one tool is too long. Another tool returns the call
/// that it received.
const OURS: &str = r#"
LONG = "a_tool_with_a_name_that_is_longer_than_any_client_would_take_from_us"
ALL = ["echo", LONG] + ["t%d" % n for n in range(700)]
for m in messages():
    if m["method"] == "initialize":
        greet(m)
    elif m["method"] == "tools/list":
        begin = int(m.get("params", {}).get("cursor", 0))
        page = {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ALL[begin:begin + 100]]}
        if begin + 100 < len(ALL):
            page["nextCursor"] = str(begin + 100)
        say(id=m["id"], result=page)
    elif m["method"] == "tools/call":
        answer(m, m["params"]["name"])
    elif "id" in m:
        say(id=m["id"], error={"code": -32601, "message": "no"})
"#;

/// Script of a server that reads `initialize` and never answers.
const HANGS: &str = "for m in messages():\n    pass";

pub fn entry(script: &str) -> Value {
    json!({ "command": "/usr/bin/python3", "args": ["-c", format!("{PRELUDE}\n{script}")] })
}

/// Configures the filesystem server, the reference server, the server [`OURS`], a server that fails to start and one
/// that hangs.
fn install(prepared: &Prepared) {
    servers::install(prepared, "everything");
    edit(&prepared.home.config.join("mcp-servers.json"), |servers| {
        servers["filesystem"] = json!({ "command": "ironcurtain-filesystem" });
        servers["ours"] = entry(OURS);
        servers["broken"] = json!({ "command": "/usr/bin/false" });
        servers["hangs"] = entry(HANGS);
    });
    let mut tools: Vec<String> = (0..3).map(|n| format!("t{n}")).collect();
    tools.push("echo".into());
    tools.push(long());
    let tools: Vec<Value> = tools
        .into_iter()
        .map(|name| json!({ "toolName": name, "serverName": "ours", "comment": "", "args": {} }))
        .collect();
    edit(&prepared.home.policy().join("tool-annotations.json"), |all| {
        all["servers"]["ours"] = json!({ "tools": tools })
    });
}

fn long() -> String {
    "a_tool_with_a_name_that_is_longer_than_any_client_would_take_from_us".to_owned()
}

pub fn edit(file: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    change(&mut value);
    // Replaces the file atomically, as editors do.
    let beside = file.with_extension("new");
    std::fs::write(&beside, value.to_string()).unwrap();
    std::fs::rename(beside, file).unwrap();
}

fn world() -> World {
    World::with(install)
}

pub fn shim(world: &World, arguments: &[&str]) -> Client {
    let mut shim = Command::new(world.programs.join("ironcurtain-shim"));
    shim.args(arguments);
    Client::spawn(shim, &world.ours())
}

pub fn connect(world: &World, arguments: &[&str]) -> Client {
    let mut client = shim(world, arguments);
    client.handshake();
    client
}

/// Returns the tools on all pages, and the number of pages.
fn tools(client: &mut Client) -> (Vec<String>, usize) {
    let (mut all, mut pages, mut cursor) = (Vec::new(), 0, json!({}));
    loop {
        let page = client.request("tools/list", cursor);
        let list = page["result"]["tools"].as_array().unwrap_or_else(|| panic!("{page}"));
        all.extend(list.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        pages += 1;
        let Some(next) = page["result"].get("nextCursor") else { return (all, pages) };
        cursor = json!({ "cursor": next });
    }
}

pub fn lists(client: &mut Client, name: &str) -> bool {
    tools(client).0.iter().any(|tool| tool == name)
}

pub fn wait_for_list_change(client: &mut Client) {
    client.wait_for(|m| m["method"] == "notifications/tools/list_changed");
}

#[test]
fn broken_and_hanging_servers_do_not_delay_others() {
    let world = world();
    let report = world.file("docs/report.txt", "numbers");
    let began = Instant::now();
    let mut client = shim(&world, &[]);
    let greeted = client.handshake();
    assert_eq!(greeted["result"]["serverInfo"]["name"], "ironcurtain");
    let said = greeted["result"]["instructions"].as_str().unwrap();
    assert!(said.contains("`broken`, `everything`, `filesystem`, `hangs`, `ours`"), "{said}");
    eventually("every working server is listed", TIMEOUT, || {
        let (all, _) = tools(&mut client);
        ["everything__", "filesystem__", "ours__"]
            .iter()
            .all(|of| all.iter().any(|tool| tool.starts_with(of)))
    });
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let (all, pages) = tools(&mut client);
    assert!(pages > 1 && !all.iter().any(|tool| tool.starts_with("broken") || tool.starts_with("hangs")));
    assert!((0..700).all(|n| all.contains(&format!("ours__t{n}"))), "{all:?}");
    assert_eq!(client.call("everything__echo", json!({ "message": "hi" })).ok(), "Echo: hi");
    assert_eq!(client.call("ours__echo", json!({})).ok(), "echo");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.call("filesystem__read_text_file", json!({ "path": report })).ok(), "numbers");
    let question = world.user.asked().remove(0);
    assert_eq!((question.server.as_str(), question.tool.as_deref()), ("filesystem", Some("read_text_file")));
    // The calling agent, the client's log and the user all receive the reason.
    let why = client.call("broken__anything", json!({}));
    why.refused("the server `broken` is missing: the server `broken` is not running: exit status 1");
    let told =
        client.wait_for(|m| m["method"] == "notifications/message" && m["params"]["logger"] == "ironcurtain");
    assert!(told["params"]["data"].as_str().unwrap().contains("the server `broken` is missing"), "{told}");
    eventually("the user sees the reason", TIMEOUT, || {
        let trouble =
            world.sessions().into_iter().find(|session| session.server == "broken").unwrap().trouble;
        trouble.is_some_and(|why| why.contains("exit status 1"))
    });
    let sessions = world.sessions();
    assert_eq!(sessions.len(), 5);
    assert!(sessions.iter().all(|one| one.connection.is_some() && one.connection == sessions[0].connection));
    client.call("nothing__such", json!({})).refused("no tool is called `nothing__such`");
    client.call("ours__such", json!({})).refused("the server `ours` does not provide it");
    client.call("read_text_file", json!({ "path": report })).refused("no tool is called `read_text_file`");
    assert!(world.log().contains("no tool is called `nothing__such`"));
    client.hang_up();
    eventually("all sessions have ended", TIMEOUT, || world.sessions().is_empty());
    assert!(world.audit().intact);
}

#[test]
fn added_and_removed_servers_apply_at_once_and_late_server_appears() {
    let world = world();
    let entries = world.home.config.join("mcp-servers.json");
    let mut client = connect(&world, &[]);
    // Removing a server whose tools are not yet listed leaves the list unchanged.
    eventually("tools of both servers are listed", TIMEOUT, || {
        ["ours__echo", "everything__echo"].iter().all(|tool| lists(&mut client, tool))
    });
    let before = world.sessions().into_iter().find(|s| s.server == "ours").unwrap().id;

    edit(&entries, |servers| drop(servers.as_object_mut().unwrap().remove("everything")));
    wait_for_list_change(&mut client);
    eventually("the removed server's tools disappear", TIMEOUT, || !lists(&mut client, "everything__echo"));
    client
        .call("everything__echo", json!({ "message": "hi" }))
        .refused("no tool is called `everything__echo`");
    eventually("the removed server's session ends", TIMEOUT, || {
        world.sessions().iter().all(|s| s.server != "everything")
    });

    edit(&entries, |servers| servers["more"] = entry(OURS));
    eventually("the added server's tools are listed", TIMEOUT, || lists(&mut client, "more__echo"));
    client.call("more__echo", json!({})).refused("the tool `more/echo` has not been reviewed yet");

    // A broken server's tools appear once its entry is fixed or the server recovers.
    let flag = world.file("flag/none", "");
    let comes = format!("if not os.path.exists({:?}): sys.exit(1)\n{OURS}", flag.with_file_name("there"));
    edit(&entries, |servers| {
        servers["broken"] = entry(&comes);
        servers["broken"]["sandbox"] = json!({ "filesystem": { "allowRead": [flag.parent().unwrap()] } });
    });
    eventually("the server fails to start", TIMEOUT, || {
        world.sessions().iter().any(|s| {
            s.server == "broken" && s.trouble.is_some() && s.trouble.as_deref().unwrap().contains("status 1")
        })
    });
    std::fs::write(flag.with_file_name("there"), "").unwrap();
    eventually("the fixed server's tools are listed", TIMEOUT, || lists(&mut client, "broken__echo"));
    let after = world.sessions().into_iter().find(|s| s.server == "ours").unwrap().id;
    assert_eq!(before, after, "a server with an unchanged entry keeps running");
    client.call("ours__echo", json!({})).ok();
}

#[test]
fn question_about_one_server_does_not_block_others() {
    let world = world();
    let report = world.file("docs/report.txt", "numbers");
    let mut client = connect(&world, &[]);
    eventually("tools of both servers are listed", TIMEOUT, || {
        let (all, _) = tools(&mut client);
        ["ours__echo", "filesystem__read_text_file"].iter().all(|tool| all.iter().any(|name| name == tool))
    });
    world.user.will(Next::Ignore);
    let asked = client.begin_call("filesystem__read_text_file", json!({ "path": report }));
    eventually("the question is asked", TIMEOUT, || world.user.count() == 1);
    assert_eq!(client.call("ours__echo", json!({})).ok(), "echo");
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": asked } }),
    );
    eventually("the question is withdrawn", TIMEOUT, || world.user.withdrawn().len() == 1);
    assert_eq!(client.call("ours__t1", json!({})).ok(), "t1");
}

#[test]
fn overlong_or_colliding_tool_name_maps_to_one_tool() {
    let world = World::with(|prepared| {
        install(prepared);
        edit(&prepared.home.config.join("mcp-servers.json"), |servers| {
            for gone in ["everything", "broken", "hangs", "filesystem"] {
                servers.as_object_mut().unwrap().remove(gone);
            }
            // The names `a.b` and `a_b` produce the same tool name prefix.
            servers["a.b"] = entry(OURS);
            servers["a_b"] = entry(OURS);
        });
        edit(&prepared.home.policy().join("tool-annotations.json"), |all| {
            for server in ["a.b", "a_b"] {
                let text = all["servers"]["ours"].to_string().replace("\"ours\"", &format!("\"{server}\""));
                all["servers"][server] = serde_json::from_str(&text).unwrap();
            }
        });
    });
    let mut client = connect(&world, &[]);
    let named = |all: &[String], begins: &str| -> Vec<String> {
        all.iter().filter(|name| name.starts_with(begins)).cloned().collect()
    };
    let mut all = Vec::new();
    eventually("all tools are listed", TIMEOUT, || {
        all = tools(&mut client).0;
        all.len() == 3 * 702
    });
    let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
    assert!(distinct.len() == all.len() && all.iter().all(|name| name.len() <= 60));
    let long_one = named(&all, "ours__a_tool_with_a_name");
    assert_eq!(client.call(&long_one[0], json!({})).ok(), long());
    let both = named(&all, "a_b__echo");
    assert_eq!(both.len(), 2, "{both:?}");
    for name in both {
        assert_eq!(client.call(&name, json!({})).ok(), "echo");
    }
    for server in ["a.b", "a_b"] {
        let session = world.sessions().into_iter().find(|s| s.server == server).unwrap();
        assert_eq!(session.allowed, 1, "{server}");
    }
}

#[test]
fn profile_selects_servers_and_unknown_profile_lists_the_known_ones() {
    let world = World::with(|prepared| {
        install(prepared);
        let profiles = json!({ "profiles": { "work": ["ours", "nothing"], "play": ["everything"] } });
        std::fs::write(prepared.home.config.join("config.json"), profiles.to_string()).unwrap();
    });
    let mut client = connect(&world, &["--profile", "work"]);
    eventually("tools of `ours` are listed", TIMEOUT, || lists(&mut client, "ours__echo"));
    let (all, _) = tools(&mut client);
    assert!(all.iter().all(|name| name.starts_with("ours__")));
    assert_eq!(world.sessions().len(), 1);
    edit(&world.home.config.join("config.json"), |config| config["profiles"]["work"] = json!(["filesystem"]));
    wait_for_list_change(&mut client);
    eventually("tools of the other server are listed", TIMEOUT, || {
        lists(&mut client, "filesystem__read_file")
    });
    assert!(!lists(&mut client, "ours__echo"));
    client.hang_up();
    let mut refused = shim(&world, &["--profile", "wrok"]);
    let answer = refused.request("initialize", json!({}));
    let told = answer["error"]["message"].as_str().unwrap();
    assert!(told.contains("no profile is named `wrok`; existing profiles: `play`, `work`"), "{told}");
    // With `--server`, tool names have no prefix.
    let mut one = connect(&world, &["--server", "ours"]);
    assert!(lists(&mut one, "echo") && !lists(&mut one, "ours__echo"));
}

#[test]
fn aggregated_server_can_use_elicitation_progress_and_tasks() {
    let world = World::with(|prepared| {
        install(prepared);
        allow_all(prepared);
    });
    let mut client = shim(&world, &[]);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": { "name": "c", "version": "1" } });
    let greeted = client.request("initialize", params);
    assert_eq!(greeted["result"]["protocolVersion"], "2025-11-25");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let asks = "everything__trigger-elicitation-request";
    eventually("the server's tools are listed", TIMEOUT, || lists(&mut client, asks));
    let call = client.begin_call(asks, json!({}));
    let asked = client.wait_for(|m| m["method"] == "elicitation/create");
    assert!(asked["params"]["message"].as_str().unwrap().starts_with("everything: "), "{asked}");
    // A response that matches no request to this client is ignored.
    client.send(&json!({ "jsonrpc": "2.0", "id": 0, "result": { "action": "decline" } }));
    let result = json!({ "action": "accept", "content": { "name": "Ann" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
    assert!(client.outcome(call).ok().contains("Ann"));

    let long = json!({ "name": "everything__trigger-long-running-operation", "arguments": { "duration": 1, "steps": 2 }, "_meta": { "progressToken": "mine" } });
    let call = client.begin("tools/call", long);
    let told = client.wait_for(|m| m["method"] == "notifications/progress");
    assert_eq!(told["params"]["progressToken"], "mine");
    client.outcome(call).ok();

    let research = json!({ "name": "everything__simulate-research-query", "arguments": { "topic": "x" }, "task": { "ttl": 60_000 } });
    let made = client.request("tools/call", research);
    let task = json!({ "taskId": made["result"]["task"]["taskId"] });
    assert!(client.request("tasks/get", task.clone())["result"]["status"].is_string());
    assert!(client.request("tasks/result", task)["result"]["content"].is_array());
    let unknown = client.request("tasks/get", json!({ "taskId": "none" }));
    assert_eq!(unknown["error"]["message"], "no task of this session is called `none`");

    let read = client.request("resources/read", json!({ "uri": "demo://resource/dynamic/text/1" }));
    assert!(read["result"]["contents"].is_array(), "{read}");
    let file =
        client.request("resources/read", json!({ "uri": "demo://resource/static/document/features.md" }));
    assert!(file["result"]["contents"].is_array(), "{file}");
    let prompt = client.request("prompts/get", json!({ "name": "everything__simple-prompt" }));
    assert!(prompt["result"]["messages"].is_array(), "{prompt}");
    let of = json!({ "type": "ref/prompt", "name": "everything__completable-prompt" });
    let completed = client.request(
        "completion/complete",
        json!({ "ref": of, "argument": { "name": "department", "value": "S" } }),
    );
    assert!(
        completed["result"]["completion"]["values"].as_array().unwrap().contains(&json!("Sales")),
        "{completed}"
    );
    client.request("logging/setLevel", json!({ "level": "debug" }));
    client.call("everything__toggle-simulated-logging", json!({})).ok();
    let logged =
        client.wait_for(|m| m["method"] == "notifications/message" && m["params"]["logger"] != "ironcurtain");
    assert!(logged["params"]["logger"].as_str().unwrap().starts_with("everything"), "{logged}");
}

#[test]
fn ending_the_last_server_session_closes_the_connection() {
    let world = World::with(|prepared| {
        install(prepared);
        let profiles = json!({ "profiles": { "two": ["ours", "filesystem"] } });
        std::fs::write(prepared.home.config.join("config.json"), profiles.to_string()).unwrap();
    });
    let mut client = connect(&world, &["--profile", "two"]);
    eventually("tools of both servers are listed", TIMEOUT, || {
        lists(&mut client, "ours__echo") && lists(&mut client, "filesystem__read_file")
    });
    let end = |server: &str| {
        let session = world.sessions().into_iter().find(|s| s.server == server).unwrap().id;
        assert_eq!(world.request(Request::EndSession { session }), Reply::Done);
    };
    end("filesystem");
    wait_for_list_change(&mut client);
    eventually("the ended server's tools disappear", TIMEOUT, || {
        !lists(&mut client, "filesystem__read_file")
    });
    client
        .call("filesystem__read_file", json!({}))
        .refused("the session with the server `filesystem` was closed");
    client.call("ours__echo", json!({})).ok();
    end("ours");
    assert!(client.wait_until_ended());
}

/// Writes a policy that allows every call.
fn allow_all(prepared: &Prepared) {
    let rule = |name: &str, condition: Value, then: &str| json!({ "name": name, "description": name, "principle": name, "if": condition, "then": then, "reason": name });
    let rules =
        [rule("all", json!({ "server": ["everything"] }), "allow"), rule("ask", json!({}), "escalate")];
    let policy = json!({ "schemaVersion": 1, "rules": rules }).to_string();
    std::fs::write(prepared.home.policy().join("compiled-policy.json"), policy).unwrap();
}
