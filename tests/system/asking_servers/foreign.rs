//! Servers from npm and PyPI, without annotations, that open files of the user.

use crate::reference::{configure, modules};
use crate::scripted_user::Next;
use crate::world::{World, installed};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Creates a world with one server and the shipped policy. `entry` receives the user's home directory.
fn world(entry: impl FnOnce(&Path) -> Value) -> World {
    World::with(|prepared| configure(prepared, &json!({ "foreign": entry(&prepared.home.person) })))
}

#[test]
fn a_server_from_npm_reads_notes_after_one_answer() {
    let world = world(|home| {
        let script = modules().join("mcp-obsidian/dist/index.js");
        let sandbox = json!({ "filesystem": { "allowRead": [modules()] } });
        json!({ "command": "node", "args": [script, home.join("vault")], "sandbox": sandbox, "access": "ask" })
    });
    world.file("vault/.obsidian/app.json", "{}");
    world.file("vault/today.md", "water the plants");
    world.file("vault/plans.md", "paint the fence");
    let mut client = world.connect("foreign");
    world.user.will(Next::Allow(Reach::AllTools, Lifetime::Session));
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    let read = |name: &str| json!({ "paths": [name] });
    assert!(client.call("read_notes", read("today.md")).ok().contains("water the plants"));
    assert!(client.call("read_notes", read("plans.md")).ok().contains("paint the fence"));
    let asked = world.user.asked();
    assert_eq!(
        asked.iter().map(|question| question.tool.as_deref().unwrap()).collect::<Vec<_>>(),
        ["read_notes", "read_file"]
    );
    assert_eq!(asked[1].server, "foreign");
    assert_eq!(world.grants().len(), 2);
}

#[test]
fn a_server_from_pypi_reads_a_repository_after_one_answer() {
    let world = world(|_| {
        let packages = installed("pypi");
        json!({
            "command": "/usr/bin/python3",
            "args": ["-m", "mcp_server_git"],
            "env": { "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1" },
            "sandbox": { "filesystem": { "allowRead": [packages] } },
            "access": "ask",
        })
    });
    let repository = world.path("app");
    let script =
        "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m 'paint the fence'";
    std::fs::create_dir(&repository).unwrap();
    let made = Command::new("sh").args(["-ec", script]).current_dir(&repository).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut client = world.connect("foreign");
    world.user.will(Next::Allow(Reach::AllTools, Lifetime::Session));
    world.user.will(Next::Allow(Reach::ProjectToRead, Lifetime::Session));
    let log = json!({ "repo_path": repository });
    assert!(client.call("git_log", log.clone()).ok().contains("paint the fence"));
    assert_eq!(world.user.asked().len(), 2);
    assert!(client.call("git_log", log).ok().contains("paint the fence"));
    assert_eq!(world.user.count(), 0);
}
