//! Containment of servers: messages to the agent, machines without sandbox support, and `srt`.

use crate::client::Client;
use crate::hostile;
use crate::machine::Machine;
use crate::reference::modules;
use crate::scripted_user::Next;
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

#[test]
fn failure_caused_by_sandbox_is_marked_and_recorded() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    client.open(&secret).ok();
    let said = client.scribble(&secret).refused("os error 30)").to_owned();
    assert!(said.starts_with("[SANDBOX BLOCKED] "), "{said}");
    let missing = client.sneak(&world.path("docs/none")).refused("os error 2)").to_owned();
    assert!(!missing.contains("SANDBOX"), "{missing}");
    eventually("the failure is recorded", Duration::from_secs(5), || {
        let entries: Vec<Value> = world.log().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let ends: Vec<_> = entries.iter().filter(|e| e["result"] == "blocked by the sandbox").collect();
        let [end] = ends[..] else { return false };
        entries.iter().any(|decision| decision["seq"] == end["of"] && decision["sandboxed"] == true)
    });
}

#[test]
fn unsandboxed_server_failures_are_not_marked() {
    let world = World::with(|w| {
        hostile::install(w);
        let servers = json!({ "hostile": { "command": hostile::program(), "sandbox": false } });
        std::fs::write(w.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
    });
    let mut client = world.connect("hostile");
    let said = client.scribble("/proc/version".as_ref()).refused("os error").to_owned();
    assert!(!said.contains("SANDBOX"), "{said}");
    assert!(world.log().contains(r#""sandboxed":false"#));
}

#[test]
fn unsandboxed_server_dies_with_the_daemon() {
    let mut machine = Machine::new(|w| {
        hostile::install(w);
        let servers = json!({ "hostile": { "command": hostile::program(), "sandbox": false } });
        std::fs::write(w.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
    });
    machine.start();
    let mut client = machine.connect();
    client.plain("now").ok();
    let below = machine.kill();
    machine.assert_clean(&below);
}

/// Returns a copy of the programs, and a path. While a file exists at that path, the next sandbox fails to start.
fn failing_once() -> (TempDir, PathBuf) {
    let ours = tempfile::tempdir().unwrap();
    for name in ["ironcurtain-shim", "ironcurtain-filesystem", "ironcurtain"] {
        symlink(programs().join(name), ours.path().join(name)).unwrap();
    }
    let (fails, sandbox) = (ours.path().join("fails"), ours.path().join("ironcurtain-sandbox"));
    let real = programs().join("ironcurtain-sandbox");
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/containment/failing_once.c");
    let mut make = Command::new("cc");
    make.args(["-O1", "-Wall", "-Werror"]);
    make.arg(format!("-DFAILS=\"{}\"", fails.display())).arg(format!("-DREAL=\"{}\"", real.display()));
    assert!(make.arg("-o").arg(&sandbox).arg(source).status().unwrap().success());
    (ours, fails)
}

#[test]
fn server_takes_calls_after_first_process_fails_during_grant() {
    let (ours, fails) = failing_once();
    let world = World::with_programs(ours.path().to_path_buf(), hostile::install);
    hostile::answers_before(&world);
    let note = world.file("docs/note.txt", "note");
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Always));
    client.open(&note).ok();
    client.hang_up();
    eventually("the session ends", Duration::from_secs(10), || world.sessions().is_empty());
    std::fs::write(&fails, "").unwrap();
    let mut client = world.connect("hostile");
    assert_eq!(client.open(&note).ok(), "note");
    assert!(!fails.exists(), "no process failed");
    assert_eq!(world.sessions()[0].restarts, 0, "the server was started once");
}

#[test]
fn srt_sandboxes_server_when_configured() {
    let ours = with_srt();
    let world = World::with_programs(ours.path().to_path_buf(), |w| {
        hostile::install(w);
        std::fs::write(w.home.config.join("config.json"), r#"{"sandboxBackend":"srt"}"#).unwrap();
    });
    let file = world.file("docs/file.txt", "content");
    let key = world.file(".ssh/id", "key");
    let mut client = world.connect("hostile");
    assert_eq!(client.sneak(&file).ok(), "content");
    client.sneak(&key).refused("os error");
    client.sneak(&world.home.config.join("config.json")).refused("os error");
    assert!(client.scribble(&file).refused("os error 30)").starts_with("[SANDBOX BLOCKED] "));
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    client.call("change", json!({ "path": file })).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "scribbled");
    client.scribble(&file).ok();
    world.revoke_only_grant();
    client.scribble(&file).refused("os error 30)");
    let files = world.home.srt();
    assert_eq!(std::fs::read_dir(&files).unwrap().count(), 2, "folders of the session and of the trial run");
    client.hang_up();
    eventually("the session's files are removed", Duration::from_secs(5), || {
        std::fs::read_dir(&files).unwrap().count() == 1
    });
}

#[test]
fn missing_srt_stops_server_start_and_says_how_to_install_it() {
    let world = World::with_programs("/nonexistent".into(), |w| {
        hostile::install(w);
        std::fs::write(w.home.config.join("config.json"), r#"{"sandboxBackend":"srt"}"#).unwrap();
    });
    let mut client = Client::start(&programs(), &world.ours(), "hostile");
    let message = refusal(&mut client);
    let command = "npm install -g @anthropic-ai/sandbox-runtime";
    assert!(message.contains("`srt` is not installed") && message.contains(command), "{message}");
}

#[test]
fn machine_without_sandbox_support_runs_servers_only_after_opt_out() {
    for policy in ["enforce", "warn"] {
        let world = World::with_programs("/nonexistent".into(), |w| {
            hostile::install(w);
            let config = json!({ "sandboxPolicy": policy });
            std::fs::write(w.home.config.join("config.json"), config.to_string()).unwrap();
        });
        let mut client = Client::start(&programs(), &world.ours(), "hostile");
        if policy == "enforce" {
            let message = refusal(&mut client);
            assert!(message.contains("`sandboxPolicy` is `enforce`"), "{message}");
            continue;
        }
        client.handshake();
        client.plain("now").ok();
        assert!(!world.sessions()[0].sandboxed);
        assert!(!world.log().contains(r#""sandboxed":true"#));
    }
}

/// Returns the error message for a server that is not started.
pub(crate) fn refusal(client: &mut Client) -> String {
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    client.request("initialize", params)["error"]["message"].as_str().unwrap().to_owned()
}

/// Returns a folder with IronCurtain's programs and `srt` from npm.
fn with_srt() -> TempDir {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    for name in ["ironcurtain-shim", "ironcurtain-sandbox", "ironcurtain-filesystem", "ironcurtain"] {
        symlink(programs().join(name), dir.path().join(name)).unwrap();
    }
    let srt = modules().join(".bin/srt").canonicalize().expect("run `cargo xtask test`");
    symlink(srt, dir.path().join("srt")).unwrap();
    dir
}

#[test]
fn program_below_tmp_is_visible_and_its_siblings_are_not() {
    let beside = tempfile::tempdir_in("/tmp").unwrap();
    let program = beside.path().join("hostile-server");
    std::fs::copy(hostile::program(), &program).unwrap();
    let other = beside.path().join("other");
    std::fs::write(&other, "other").unwrap();
    for view in ["roots", "host-read"] {
        let world = World::with(|w| {
            hostile::install(w);
            let servers = json!({ "hostile": { "command": program, "sandbox": { "view": view } } });
            std::fs::write(w.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
        });
        let mut client = world.connect("hostile");
        client.plain("now").ok();
        client.call("clutch", json!({ "where": program })).ok();
        client.sneak(&other).refused("os error 2)");
        client.scribble(&program).refused("os error 30)");
    }
}
