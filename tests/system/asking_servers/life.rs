//! Tests denials, limits, restarts and kills of servers with `"access": "ask"`.

use super::{TIMEOUT, at, install, world};
use crate::client::Client;
use crate::machine::{Machine, Running, descendants};
use crate::scripted_user::Next;
use crate::test_home::TestHome;
use crate::world::{World, eventually, is_root, programs};
use ironcurtain_config::home::Home;
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_daemon::{GrantRequest, GrantTarget};
use ironcurtain_policy::{Access, AccessSet};
use ironcurtain_protocol::Request;
use serde_json::json;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const DENIED: &str = "PermissionError: Permission denied";

/// Returns the content of all session logs.
fn logs(home: &Home) -> String {
    let sessions = std::fs::read_dir(home.sessions()).unwrap().flatten();
    let logs = sessions.map(|session| std::fs::read_to_string(session.path().join("session.log")));
    logs.map(Result::unwrap_or_default).collect()
}

/// Starts a call and leaves its question unanswered. Returns the call's id, the supervisor's descendants, and the file.
fn waiting(world: &World, client: &mut Client) -> (u64, Vec<Running>, PathBuf) {
    let notes = world.file("notes.txt", "my notes");
    world.user.will(Next::Ignore);
    let call = client.begin_call("sneak", at(&notes));
    eventually("the user is asked", TIMEOUT, || world.questions().waiting.len() == 1);
    let supervisor = world.sessions()[0].server_pid.unwrap();
    (call, descendants(supervisor), notes)
}

#[test]
fn a_denial_holds_and_the_limit_on_questions_applies() {
    let world = World::with(|prepared| {
        install(prepared, json!({}));
        let limit = r#"{ "questionsPerMinute": 2, "denialHoldsSeconds": 0 }"#;
        std::fs::write(prepared.home.config.join("config.json"), limit).unwrap();
    });
    let [a, b, c] = ["x/a", "y/b", "z/c"].map(|name| world.file(name, name));
    let mut client = world.connect("hostile");
    assert_eq!(client.call("sneak", at(&a)).ok(), DENIED);
    assert_eq!(client.call("sneak", at(&a)).ok(), DENIED);
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.call("sneak", at(&b)).ok(), "y/b");
    assert_eq!(world.user.asked().len(), 2);
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.call("sneak", at(&c)).ok(), DENIED);
    assert_eq!(world.user.count(), 0);
    eventually("the log says why", TIMEOUT, || logs(&world.home).contains("too many questions"));
}

#[test]
fn a_daemon_without_a_display_denies_and_says_why() {
    let place = TestHome::new(|prepared| install(prepared, json!({})));
    let notes = place.file("notes.txt", "my notes");
    let root: &[&str] = if is_root() { &["--allow-root"] } else { &[] };
    let mut command = Command::new(programs().join("ironcurtain"));
    command.arg("daemon").args(root).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env("IRONCURTAIN_HOME", place.ours()).env("HOME", &place.home.user_home);
    let mut daemon = command.spawn().unwrap();
    eventually("the daemon listens", TIMEOUT, || UnixStream::connect(&place.home.socket).is_ok());
    let mut client = Client::connect(&programs(), &place.ours(), "hostile");
    assert_eq!(client.call("sneak", at(&notes)).ok(), DENIED);
    let why = format!("the server was denied `{}`: IronCurtain runs without a display", notes.display());
    eventually("the log says why", TIMEOUT, || logs(&place.home).contains(&why));
    client.hang_up();
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn a_permanent_grant_survives_a_restart() {
    let mut world = world(json!({}));
    let notes = world.file("notes.txt", "my notes");
    let connected = world.connect("hostile");
    let client = std::env::current_exe().unwrap().canonicalize().unwrap().display().to_string();
    let what = GrantTarget::Files { path: notes.clone(), access: AccessSet::only(Access::Read) };
    let request = GrantRequest { client, server: "hostile".into(), what, lifetime: Lifetime::Always };
    world.wait(world.daemon.grant(request)).unwrap();
    connected.hang_up();
    world.restart();
    let mut client = world.connect("hostile");
    assert_eq!(client.call("sneak", at(&notes)).ok(), "my notes");
    assert_eq!(world.user.count(), 0);
    world.revoke_only_grant();
    assert_eq!(client.call("sneak", at(&notes)).ok(), DENIED);
    assert_eq!(world.user.asked().len(), 1);
}

#[test]
fn a_server_that_is_killed_while_it_waits_leaves_nothing() {
    let world = world(json!({}));
    let mut client = world.connect("hostile");
    let (call, below, notes) = waiting(&world, &mut client);
    let server = below.iter().find(|one| one.command_line().contains("python3")).unwrap();
    server.kill();
    client.outcome(call).refused("the server stopped before it answered");
    eventually("everything has exited", TIMEOUT, || below.iter().all(|one| !one.is_alive()));
    eventually("the question is withdrawn", TIMEOUT, || world.user.withdrawn().len() == 1);
    // The next call restarts the server.
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.call("sneak", at(&notes)).ok(), "my notes");
}

#[test]
fn a_session_that_ends_while_its_server_waits_leaves_nothing() {
    let world = world(json!({}));
    let mut client = world.connect("hostile");
    let (_, below, _) = waiting(&world, &mut client);
    let session = world.sessions()[0].id.clone();
    world.request(Request::EndSession { session });
    eventually("everything has exited", TIMEOUT, || below.iter().all(|one| !one.is_alive()));
    eventually("the question is withdrawn", TIMEOUT, || world.user.withdrawn().len() == 1);
}

#[test]
fn a_paused_server_opens_no_further_files() {
    let world = world(json!({}));
    let [a, b] = ["docs/a", "docs/b"].map(|name| world.file(name, name));
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    assert_eq!(client.call("sneak", at(&a)).ok(), "docs/a");
    let script = format!("until [ -e go ]; do sleep 0.05; done; cat {} >said 2>&1; mv said out", b.display());
    let waits = format!("bool(__import__('subprocess').Popen(['sh', '-c', {script:?}], stdin=-3))");
    let mut opens = |is_paused: bool| {
        assert_eq!(client.call("run", super::eval(&waits)).ok(), "True");
        let session = world.sessions()[0].id.clone();
        if is_paused {
            world.request(Request::Pause { session: session.clone() });
        }
        let at = |name: &str| world.sandbox().join(name);
        std::fs::write(at("go"), "").unwrap();
        eventually("the program has ended", TIMEOUT, || at("out").exists());
        world.request(Request::Resume { session });
        std::fs::remove_file(at("go")).unwrap();
        let said = std::fs::read_to_string(at("out")).unwrap();
        std::fs::remove_file(at("out")).unwrap();
        said
    };
    assert!(opens(true).contains("Permission denied"));
    assert_eq!(opens(false), "docs/b");
    assert_eq!(world.user.asked().len(), 1);
}

#[test]
fn a_daemon_that_is_killed_while_a_server_waits_leaves_nothing() {
    let mut machine = Machine::new(|prepared| install(prepared, json!({})));
    let notes = machine.file("notes.txt", "my notes");
    machine.start();
    let mut client = machine.connect();
    client.begin_call("sneak", at(&notes));
    machine.wait_for_output("Your answer: ");
    let below = machine.kill();
    assert!(client.wait_until_ended(), "the client is not told");
    machine.assert_clean(&below);
    machine.start();
    machine.verify();
    let mut client = machine.connect();
    let call = client.begin_call("sneak", at(&notes));
    machine.wait_for_output("Your answer: ");
    machine.types("1");
    assert_eq!(client.outcome(call).ok(), "my notes");
}
