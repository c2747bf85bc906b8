//! Sessions are isolated from each other, and their resources are released when they end.

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::machine::descendants;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach, WithdrawalReason};
use ironcurtain_protocol::{Reply, Request};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const MISSING: &str = "os error 2)";

fn allow(world: &World, client: &mut Client, path: &Path, lifetime: Lifetime) {
    world.user.will(Next::Allow(Reach::Paths, lifetime));
    client.open(path).ok();
}

#[test]
fn sessions_are_isolated() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let (mut one, mut two) = (world.connect("hostile"), world.connect("hostile"));
    let sessions = world.sessions();
    assert_ne!(sessions[0].sandbox_dir, sessions[1].sandbox_dir);
    assert_ne!(sessions[0].server_pid, sessions[1].server_pid);
    let mine = PathBuf::from(&sessions[0].sandbox_dir).join("mine.txt");
    one.call("change", json!({ "path": mine })).ok();
    two.open(&mine).refused("structural-protected-path");
    two.sneak(&mine).refused(MISSING);
    two.scribble(&mine).refused("os error");
    allow(&world, &mut one, &secret, Lifetime::Session);
    world.user.asked();
    two.open(&secret).refused("the user denied this call");
    two.sneak(&secret).refused(MISSING);
    assert_eq!(one.sneak(&secret).ok(), "secret");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "scribbled");
}

#[test]
fn permanent_grant_applies_to_all_sessions_and_survives_restart() {
    let mut world = hostile::world();
    hostile::answers_before(&world);
    let secret = world.file("docs/secret.txt", "secret");
    let (mut one, mut two) = (world.connect("hostile"), world.connect("hostile"));
    allow(&world, &mut one, &secret, Lifetime::Always);
    assert_eq!(two.open(&secret).ok(), "secret");
    assert_eq!(two.sneak(&secret).ok(), "secret");
    assert_eq!(world.user.asked().len(), 1);
    one.hang_up();
    two.hang_up();
    world.restart();
    let mut three = world.connect("hostile");
    assert_eq!(three.open(&secret).ok(), "secret");
    assert_eq!(world.user.asked(), []);
    world.revoke_only_grant();
    three.sneak(&secret).refused(MISSING);
    world.restart();
    world.connect("hostile").open(&secret).refused("the user denied this call");
    assert!(world.audit().intact);
}

#[test]
fn ended_session_leaves_no_trace() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &secret, Lifetime::Session);
    world.user.will(Next::Ignore);
    client.begin_call("open", json!({ "path": world.file("docs/other.txt", "other") }));
    eventually("the question is asked", TIMEOUT, || world.user.count() == 2);
    let server = world.sessions()[0].server_pid.unwrap();
    let mut below = descendants(server);
    below.retain(crate::machine::Running::is_alive);
    let id = world.sessions()[0].id.clone();
    assert_eq!(world.request(Request::EndSession { session: id.clone() }), Reply::Done);
    assert!(client.wait_until_ended());
    eventually("the session ends", TIMEOUT, || world.sessions().is_empty() && world.grants().is_empty());
    eventually("the session's processes exit", TIMEOUT, || below.iter().all(|p| !p.is_alive()));
    eventually("the question is withdrawn", TIMEOUT, || world.user.withdrawn().len() == 1);
    let again = world.request(Request::EndSession { session: id });
    assert!(matches!(again, Reply::Failed { .. }), "{again:?}");
    assert!(world.log().contains("ended its session"));
}

#[test]
fn client_disconnect_leaves_no_trace() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &secret, Lifetime::Session);
    client.begin_call("slow", json!({}));
    client.plain("heard").ok();
    let below = descendants(world.sessions()[0].server_pid.unwrap());
    assert!(!below.is_empty());
    client.hang_up();
    eventually("the session ends", TIMEOUT, || world.sessions().is_empty() && world.grants().is_empty());
    eventually("the session's processes exit", TIMEOUT, || below.iter().all(|p| !p.is_alive()));
    let given_up =
        world.activity().into_iter().find(|e| e.tool.as_deref() == Some("slow") && e.event == "outcome");
    assert!(given_up.is_some_and(|e| e.summary.contains("The session ended before")));
}

/// Creates a test environment whose server saves a file, which is also returned, after its input was closed. `keys` extends
/// the server's entry.
fn world_with_saving_server(keys: impl FnOnce(&Path) -> Value) -> (World, PathBuf) {
    let world = World::with(|prepared| {
        hostile::install(prepared);
        let folder = prepared.home.user_home.join("docs");
        let mut entry = json!({ "command": hostile::program(), "env": { "SAVED": folder.join("saved") } });
        entry.as_object_mut().unwrap().extend(keys(&folder).as_object().unwrap().clone());
        let servers = json!({ "hostile": entry }).to_string();
        std::fs::write(prepared.home.config.join("mcp-servers.json"), servers).unwrap();
    });
    let saved = world.path("docs/saved");
    (world, saved)
}

#[test]
fn server_can_save_its_state_when_its_client_disconnects_but_not_when_the_user_ends_the_session() {
    let (world, saved) =
        world_with_saving_server(|folder| json!({ "sandbox": { "filesystem": { "allowWrite": [folder] } } }));
    let mut client = world.connect("hostile");
    client.plain("heard").ok();
    let id = world.sessions()[0].id.clone();
    let below = descendants(world.sessions()[0].server_pid.unwrap());
    assert!(!below.is_empty());
    assert_eq!(world.request(Request::EndSession { session: id }), Reply::Done);
    eventually("the session's processes exit", TIMEOUT, || below.iter().all(|p| !p.is_alive()));
    assert!(!saved.exists());
    assert!(client.wait_until_ended());
    let mut client = world.connect("hostile");
    client.plain("heard").ok();
    client.hang_up();
    eventually("the session ends", TIMEOUT, || world.sessions().is_empty());
    assert_eq!(std::fs::read_to_string(&saved).unwrap(), "saved");
}

#[test]
fn access_that_a_server_wants_after_its_client_has_disconnected_is_denied_without_a_question() {
    let (world, saved) = world_with_saving_server(|_| json!({ "access": "ask" }));
    let mut client = world.connect("hostile");
    client.plain("heard").ok();
    client.hang_up();
    eventually("the session ends", TIMEOUT, || world.sessions().is_empty());
    assert!(!saved.exists());
    assert_eq!(world.user.asked(), []);
    assert!(world.log().contains("\"by\":\"paused\""), "{}", world.log());
}

#[test]
fn concurrent_calls_keep_their_order() {
    let world = hostile::world();
    let mut client = world.start("hostile");
    let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    client.request("initialize", greeting);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    // These calls are sent before the server has started.
    let calls: Vec<u64> = (0..50).map(|n| client.begin_call("echo", json!({ "n": n }))).collect();
    let mut answered = Vec::new();
    while answered.len() < calls.len() {
        answered.push(client.wait_for(|m| m.get("id").is_some())["id"].as_u64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, calls);
    let mut decisions: Vec<_> = world.activity().into_iter().filter(|e| e.event == "decision").collect();
    decisions.sort_by_key(|e| e.seq);
    let ids: Vec<u64> = world
        .log()
        .lines()
        .filter_map(|l| serde_json::from_str::<Value>(l).ok())
        .filter(|e| e["event"] == "decision")
        .filter_map(|e| e["requestId"].as_str()?.parse().ok())
        .collect();
    assert_eq!(ids, calls);
}

#[test]
fn twenty_concurrent_questions_are_all_answered() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let files: Vec<PathBuf> =
        (0..20).map(|n| world.file(&format!("docs/{n}/x.txt"), &n.to_string())).collect();
    for n in 0..20 {
        world.user.will(if n % 2 == 0 { Next::Allow(Reach::Paths, Lifetime::Once) } else { Next::Deny });
    }
    let calls: Vec<u64> = files.iter().map(|f| client.begin_call("open", json!({ "path": f }))).collect();
    let outcomes: Vec<_> = calls.into_iter().map(|call| client.outcome(call)).collect();
    assert_eq!(world.user.asked().len(), 20);
    assert_eq!(outcomes.iter().filter(|o| !o.is_error).count(), 10, "{outcomes:?}");
    for (n, outcome) in outcomes.iter().enumerate().filter(|(_, o)| !o.is_error) {
        assert_eq!(outcome.text, n.to_string());
    }
    for file in &files {
        eventually("the file is unmounted", TIMEOUT, || client.sneak(file).text.contains(MISSING));
    }
}

#[test]
fn one_answer_resolves_every_covered_question() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let files: Vec<PathBuf> = (0..6).map(|n| world.file(&format!("docs/{n}.txt"), &n.to_string())).collect();
    let other = world.file("other/x.txt", "other");
    for _ in 0..6 {
        world.user.will(Next::Ignore);
    }
    let waiting: Vec<u64> =
        files[1..].iter().chain([&other]).map(|f| client.begin_call("open", json!({ "path": f }))).collect();
    eventually("six questions are open", TIMEOUT, || world.user.count() == 6);
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    assert_eq!(client.open(&files[0]).ok(), "0");
    for (n, call) in waiting.iter().take(5).enumerate() {
        assert_eq!(client.outcome(*call).ok(), (n + 1).to_string());
    }
    assert_eq!(world.user.withdrawn(), [WithdrawalReason::Settled; 5]);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": waiting[5] } }));
    eventually("the last session ends", TIMEOUT, || {
        world.user.withdrawn().last() == Some(&WithdrawalReason::Cancelled)
    });
    client.sneak(&other).refused(MISSING);
}

#[test]
fn autostart_files_left_by_server_are_quarantined_and_listed() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let below = world.sandbox().join("below");
    let left = below.join(".mcp.json");
    std::fs::create_dir(&below).unwrap();
    client.scribble(&below.join("plain")).ok();
    client.run(&below, r#"echo '{"mcpServers":{"x":{"command":"sh"}}}' > .mcp.json"#).ok();
    client.hang_up();
    let about = || world.activity().into_iter().filter(|e| e.event == "quarantine").collect::<Vec<_>>();
    eventually("the quarantine is recorded", TIMEOUT, || !about().is_empty());
    let found = about();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].paths, [left.to_str().unwrap()]);
    assert!(found[0].summary.contains("was moved to"), "{found:?}");
    assert!(!left.exists() && below.join("plain").exists());
}
