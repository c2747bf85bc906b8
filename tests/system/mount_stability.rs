//! Permanently allowed files stay readable while other calls change the mounts: reading an existing file never fails,
//! and no listing is empty.

use crate::client::Client;
use crate::reference::Files;
use crate::scripted_user::Next;
use crate::world::World;
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Number of times that each test mounts and unmounts paths.
const ROUNDS: usize = 12;

/// Number of checks after each change, in addition to one check during the change.
const LOOKS: usize = 6;

#[test]
fn rule_folders_stay_accessible_while_embedded_server_writes() {
    check_during_writes(Files::Embedded);
}

#[test]
fn rule_folders_stay_accessible_while_reference_server_writes() {
    check_during_writes(Files::Reference);
}

#[test]
fn grant_stays_accessible_while_other_grants_change() {
    let world = open_world(Files::Embedded);
    let (kept, deep) = (world.file("kept/file", "content"), world.file("other/deep/file", "deep"));
    let mut client = world.connect("filesystem");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    client.read(&kept).ok();
    let standing = world.grants()[0].id.clone();
    let server = world.sessions()[0].server_pid;
    let seen =
        [Look::Read(kept.clone()), Look::Read(world.path("open/file")), Look::List(world.path("open"))];
    for round in 0..ROUNDS {
        // The new file's folder is mounted, and existing grants inside the folder are mounted on top of it.
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        let new = json!({ "path": kept.with_file_name(format!("new-{round}")), "content": "new" });
        check_during(&mut client, &seen, "write_file", new);
        world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
        check_during(&mut client, &seen, "read_text_file", json!({ "path": deep }));
        let grants = world.grants();
        let other = grants.iter().find(|grant| grant.id != standing).unwrap();
        let asked = client.begin_call("read_text_file", json!({ "path": kept }));
        world.request(ironcurtain_protocol::Request::Revoke { grant: other.id.clone() });
        assert_eq!(client.outcome(asked).ok(), "content");
        look(&mut client, &seen);
    }
    assert_eq!(world.sessions()[0].server_pid, server, "the server was restarted");
    client.read(&deep).refused("the user denied this call");
}

fn check_during_writes(files: Files) {
    let world = open_world(files);
    let at = |name: &str| world.path("open").join(name);
    let mut client = world.connect("filesystem");
    client.read(&at("file")).ok();
    let server = world.sessions()[0].server_pid;
    let seen =
        [Look::Read(at("file")), Look::List(at("")), Look::Read(at("below/file")), Look::List(at("below"))];
    for round in 0..ROUNDS {
        let name = |of: &str| at(&format!("{of}-{round}"));
        let changes = [
            ("write_file", json!({ "path": name("new"), "content": "new" })),
            ("create_directory", json!({ "path": name("folder") })),
            ("move_file", json!({ "source": name("new"), "destination": name("moved") })),
            ("write_file", json!({ "path": at(&format!("below/new-{round}")), "content": "new" })),
            ("write_file", json!({ "path": name("moved"), "content": "newer" })),
        ];
        for (tool, arguments) in changes {
            check_during(&mut client, &seen, tool, arguments);
        }
        assert_eq!(std::fs::read_to_string(name("moved")).unwrap(), "newer");
    }
    assert_eq!(world.sessions()[0].server_pid, server, "the server was restarted");
    // The mounts match the rules, so a path without a rule is refused.
    client.read(&world.file("elsewhere/file", "content")).refused("the user denied this call");
}

/// A check that a path is visible.
enum Look {
    /// Reads a file whose content must be `content`.
    Read(PathBuf),
    /// Lists a folder that must contain `file`.
    List(PathBuf),
}

/// Runs all checks while a call is pending and while its mounts are being removed.
#[track_caller]
fn check_during(client: &mut Client, seen: &[Look], tool: &str, arguments: Value) {
    let change = client.begin_call(tool, arguments);
    look(client, seen);
    client.outcome(change).ok();
    (0..LOOKS).for_each(|_| look(client, seen));
}

#[track_caller]
fn look(client: &mut Client, seen: &[Look]) {
    let ask = |look: &Look| match look {
        Look::Read(path) => client.begin_call("read_text_file", json!({ "path": path })),
        Look::List(path) => client.begin_call("list_directory", json!({ "path": path })),
    };
    let asked: Vec<u64> = seen.iter().map(ask).collect();
    for (look, id) in seen.iter().zip(asked) {
        let outcome = client.outcome(id);
        match look {
            Look::Read(_) => assert_eq!(outcome.ok(), "content"),
            Look::List(path) => {
                let names: Vec<&str> = outcome.ok().lines().collect();
                assert!(names.contains(&"[FILE] file"), "{}: {names:?}", path.display());
            }
        }
    }
}

/// Creates a test environment with separate rules for reading and for writing and deleting in the folder `open`.
fn open_world(files: Files) -> World {
    files.world(|w| {
        std::fs::create_dir_all(w.home.user_home.join("open/below")).unwrap();
        for file in ["open/file", "open/below/file"] {
            std::fs::write(w.home.user_home.join(file), "content").unwrap();
        }
        let rule = |name: &str, condition: Value, then: &str| json!({ "name": name, "description": name, "principle": name, "if": condition, "then": then, "reason": name });
        let opens = |roles: &[&str]| json!({ "paths": { "roles": roles, "within": w.home.user_home.join("open") } });
        let policy = json!({ "schemaVersion": 1, "rules": [
            rule("read", opens(&["read-path"]), "allow"),
            rule("write", opens(&["write-path", "delete-path"]), "allow"),
            rule("ask", json!({}), "escalate"),
        ] });
        std::fs::write(w.home.policy().join("compiled-policy.json"), policy.to_string()).unwrap();
    })
}
