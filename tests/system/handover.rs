//! Hands over sessions from a headless daemon to a daemon that can ask the user.

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::scripted_user::{Next, ScriptedUser};
use crate::stateless;
use crate::test_home::TestHome;
use crate::world::{World, eventually, is_root, programs};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_daemon::{DaemonOptions, start};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

/// A daemon that denies every call that requires approval.
struct Headless(Child);

impl Headless {
    fn start(place: &TestHome) -> Self {
        let mut command = Command::new(programs().join("ironcurtain"));
        command.args(["daemon", "--ask", "deny"]).args(is_root().then_some("--allow-root"));
        command.env("IRONCURTAIN_HOME", place.ours()).env("HOME", &place.home.user_home);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let headless = Self(command.spawn().unwrap());
        eventually("the headless daemon listens", TIMEOUT, || {
            UnixStream::connect(&place.home.socket).is_ok()
        });
        headless
    }

    fn wait(mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }
}

impl Drop for Headless {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a daemon that can ask the user while the client is halfway through sending a message. The client then sends
/// the rest.
fn take_over_within_message(place: TestHome, headless: Headless, client: &mut Client) -> World {
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"met");
    let user = ScriptedUser::default();
    user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    let world = World::of(place, programs(), user);
    assert!(headless.wait().success());
    client.send_raw(b"hod\":\"ping\"}\n");
    assert_eq!(client.answer(77)["result"], json!({}));
    world
}

#[test]
fn session_moves_to_daemon_that_can_ask() {
    let place = TestHome::new(hostile::install);
    let report = place.file("docs/report.txt", "numbers");
    let headless = Headless::start(&place);
    let mut client = Client::connect(&programs(), &place.ours(), "hostile");
    client.open(&report).refused("it cannot ask you");
    let folder = only_session(&place).join("sandbox");
    client.run(&folder, "echo kept > kept").ok();

    let world = take_over_within_message(place, headless, &mut client);
    assert_eq!(client.open(&report).ok(), "numbers");
    assert_eq!(client.run(&folder, "cat kept").ok(), "kept\n");
    let sessions = world.sessions();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    assert_eq!(Path::new(&sessions[0].sandbox_dir), folder);
    for words in ["the app replaces the trusted process", "was moved", "continued its session"] {
        assert!(world.log().contains(words), "{words}: {}", world.log());
    }
    assert!(world.audit().intact, "{:?}", world.audit());
    client.hang_up();
    eventually("the session has ended", TIMEOUT, || world.sessions().is_empty());
}

#[test]
fn handover_answers_overdue_call_and_session_continues() {
    let place = TestHome::new(hostile::install);
    let headless = Headless::start(&place);
    let mut client = Client::connect(&programs(), &place.ours(), "hostile");
    let call = client.begin_call("slow", json!({}));
    eventually("the call is in flight", TIMEOUT, || log(&place).contains("\"slow\""));
    let world = World::of(place, programs(), ScriptedUser::default());
    assert!(headless.wait().success());
    client.outcome(call).refused("moved to its app while this call was in flight");
    client.plain("now").ok();
    drop(world);
}

#[test]
fn handover_keeps_stateless_client_and_ends_its_subscriptions() {
    let place = TestHome::new(hostile::install);
    let headless = Headless::start(&place);
    let mut client = Client::start(&programs(), &place.ours(), "hostile");
    let now = json!({ "name": "now", "arguments": {} });
    let first = stateless::request(&mut client, "tools/call", now.clone());
    assert_eq!(first["result"]["resultType"], "complete", "{first}");
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let listening = stateless::begin(&mut client, "subscriptions/listen", wanted);
    client.wait_for(|m| m["method"] == "notifications/subscriptions/acknowledged");
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"met");
    let world = World::of(place, programs(), ScriptedUser::default());
    assert!(headless.wait().success());
    let ended = client.answer(listening);
    assert_eq!(ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], listening, "{ended}");
    client.send_raw(b"hod\":\"tools/list\"}\n");
    assert_eq!(client.answer(77)["error"]["code"], -32602);
    let second = stateless::request(&mut client, "tools/call", now);
    assert_eq!(second["result"]["resultType"], "complete", "{second}");
    assert_eq!(world.sessions().len(), 1);
}

#[test]
fn daemon_that_can_ask_is_not_replaced() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let second = start(
        DaemonOptions { home: world.home.clone(), programs: programs(), allow_root: is_root() },
        Arc::new(ScriptedUser::default()),
    );
    let refused = tokio::runtime::Runtime::new().unwrap().block_on(second).err().unwrap();
    assert!(refused.is_already_running(), "{refused}");
    client.plain("now").ok();
    assert!(!world.log().contains("replaces the trusted process"));
}

#[test]
fn moved_session_opens_only_with_its_ticket() {
    let world = hostile::world();
    let _client = world.connect("hostile");
    let session = only_session_of(&world.home.sessions());
    let live = session.file_name().unwrap().to_str().unwrap();
    for ticket in [format!("{live}.x"), "../../x.y".to_owned(), String::new(), ".".to_owned(), "x".to_owned()]
    {
        let shim = json!({ "server": "hostile", "label": null, "stdio": "relayed", "resume": ticket });
        let mut stream = UnixStream::connect(&world.home.socket).unwrap();
        writeln!(stream, "{}", json!({ "version": 1, "purpose": { "session": shim } })).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        assert!(answer.contains("this session has expired"), "{ticket}: {answer}");
    }
    assert_eq!(world.sessions().len(), 1);
}

/// Returns the folder of the only session.
fn only_session(place: &TestHome) -> PathBuf {
    only_session_of(&place.home.sessions())
}

fn only_session_of(sessions: &Path) -> PathBuf {
    let all: Vec<PathBuf> = std::fs::read_dir(sessions).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

fn log(place: &TestHome) -> String {
    std::fs::read_to_string(place.home.audit().join("audit.jsonl")).unwrap()
}

#[test]
fn handover_keeps_every_session_of_aggregated_connection() {
    let place = TestHome::new(|prepared| {
        hostile::install(prepared);
        let servers = prepared.home.config.join("mcp-servers.json");
        let mut all: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&servers).unwrap()).unwrap();
        all["filesystem"] = json!({ "command": "ironcurtain-filesystem" });
        all["broken"] = json!({ "command": "/usr/bin/false" });
        std::fs::write(&servers, all.to_string()).unwrap();
    });
    let report = place.file("docs/report.txt", "numbers");
    let headless = Headless::start(&place);
    let shim = Command::new(programs().join("ironcurtain-shim"));
    let mut client = Client::spawn(shim, &place.ours());
    client.handshake();
    eventually("the first server's tools are listed", TIMEOUT, || {
        !client.call("hostile__now", json!({})).is_error
    });
    let all = |client: &mut Client| client.request("tools/list", json!({})).to_string();
    eventually("the second server's tools are listed", TIMEOUT, || all(&mut client).contains("filesystem__"));
    client.call("hostile__open", json!({ "path": report })).refused("it cannot ask you");
    let folders = |place: &TestHome| {
        std::fs::read_dir(place.home.sessions())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
    let before = folders(&place);

    let world = take_over_within_message(place, headless, &mut client);
    assert_eq!(client.call("hostile__open", json!({ "path": report })).ok(), "numbers");
    let sessions = world.sessions();
    let went_on = |server: &str| {
        let session = sessions.iter().find(|session| session.server == server).unwrap();
        before.iter().any(|folder| Path::new(&session.sandbox_dir).starts_with(folder))
    };
    assert!(went_on("hostile") && went_on("filesystem"), "{sessions:?}");
    assert!(world.audit().intact, "{:?}", world.audit());
    client.hang_up();
    eventually("the sessions have ended", TIMEOUT, || world.sessions().is_empty());
}
