//! Tests unannotated servers from npm and PyPI that open the user's files.

use crate::reference::{configure, entry};
use crate::scripted_user::{Next, paths};
use crate::world::{World, installed};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Creates a test environment with one server and the shipped policy. `entry` receives the user's home directory.
fn world(entry: impl FnOnce(&Path) -> Value) -> World {
    World::with(|prepared| configure(prepared, &json!({ "foreign": entry(&prepared.home.user_home) })))
}

#[test]
fn a_server_from_npm_reads_and_changes_a_file_after_one_answer_each() {
    let world = world(|home| {
        let mut entry = entry("server-memory");
        entry["env"] = json!({ "MEMORY_FILE_PATH": home.join("docs/graph.jsonl") });
        entry["access"] = json!("ask");
        entry
    });
    let ada = r#"{"type":"entity","name":"Ada","entityType":"person","observations":["was here"]}"#;
    let file = world.file("docs/graph.jsonl", ada);
    let mut client = world.connect("foreign");
    world.user.will(Next::Allow(Reach::AllTools, Lifetime::Session));
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    for _ in 0..2 {
        assert!(client.call("read_graph", json!({})).ok().contains("was here"));
    }
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    let bob = json!({ "name": "Bob", "entityType": "person", "observations": ["came later"] });
    client.call("create_entities", json!({ "entities": [bob] })).ok();
    assert!(std::fs::read_to_string(&file).unwrap().contains("came later"));
    let asked = world.user.asked();
    let tools: Vec<_> = asked.iter().map(|question| question.tool.as_deref().unwrap()).collect();
    // The server writes a temporary file and renames it. That raises one question about the file.
    assert_eq!((&tools[..2], tools.len()), (&["read_graph", "files/read"][..], 3), "{tools:?}");
    assert_eq!(paths(&asked[2]), [file.to_str().unwrap()]);
    assert_eq!((asked[1].server.as_str(), paths(&asked[1])), ("foreign", vec![file.to_str().unwrap()]));
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
