//! Updates of an installed package.

use super::registry::{Package, Registry};
use super::{folders, install, json_of, run, tell, world};
use crate::scripted_user::Next;
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_daemon::{GrantRequest, GrantTarget};
use ironcurtain_policy::{Access, AccessSet};
use serde_json::{Value, json};
use std::process::Command;

fn newer(registry: &Registry) {
    let package = Package { description: "Does more.", more: &["extra"], ..Package::default() };
    registry.npm("tiny", "1.1.0", &package);
}

#[test]
fn update_shows_tool_changes_and_applies_after_approval() {
    let registry = Registry::new();
    registry.npm("tiny", "1.0.0", &Package { description: "Does it.", ..Package::default() });
    let world = world(&registry, &["-y", "tiny@1.0.0", "--keep"]);
    install(&world.home, "tiny");
    assert_eq!(run(&world.home, &["update", "tiny"]).unwrap(), "`tiny` is already at version 1.0.0.\n");
    newer(&registry);
    let file = world.home.config.join("mcp-servers.json");
    let before = std::fs::read_to_string(&file).unwrap();
    let shown = json_of(&world.home, &["update", "tiny"]);
    let (from, to) = (&shown["from"], &shown["to"]);
    assert_eq!((from, to, &shown["taken"]), (&json!("1.0.0"), &json!("1.1.0"), &json!(false)));
    let tools: Vec<_> =
        shown["tools"].as_array().unwrap().iter().map(|tool| (&tool["name"], &tool["change"])).collect();
    let other = json!("other");
    let expected = [("change", &other), ("extra", &json!("new")), ("reach", &other), ("version", &other)];
    assert_eq!(tools, expected.map(|(name, change)| (json!(name), change)).each_ref().map(|(n, c)| (n, *c)));
    let refused = run(&world.home, &["update", "tiny"]).unwrap_err();
    assert!(refused.contains("no terminal to confirm on"), "{refused}");
    assert_eq!(
        (std::fs::read_to_string(&file).unwrap(), folders(&world.home)),
        (before.clone(), vec!["tiny/1.0.0".to_owned()])
    );

    let mut running = world.connect("tiny");
    assert_eq!(tell(&world, &mut running, "version", json!({})), "1.0.0");
    let taken = run(&world.home, &["update", "tiny", "--yes"]).unwrap();
    for words in
        ["version: new description: Does more.", "extra: NEW, refused until it is annotated", "Updated."]
    {
        assert!(taken.contains(words), "{words} in\n{taken}");
    }
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        before.replace(
            "[\"-y\",\"tiny@1.0.0\",\"--keep\"]",
            "[\n      \"-y\",\n      \"tiny@1.1.0\",\n      \"--keep\"\n    ]"
        )
    );
    assert_eq!(
        tell(&world, &mut running, "version", json!({})),
        "1.0.0",
        "a running session keeps its version"
    );
    assert_eq!(folders(&world.home), ["tiny/1.0.0", "tiny/1.1.0"]);
    running.hang_up();
    crate::world::eventually("the old version is no longer in use", crate::client::TIMEOUT, || {
        assert_eq!(run(&world.home, &["update", "tiny"]).unwrap(), "`tiny` is already at version 1.1.0.\n");
        folders(&world.home) == ["tiny/1.1.0"]
    });
    // State stored under the server's name now belongs to the new version.
    let mut updated = world.connect("tiny");
    assert_eq!(tell(&world, &mut updated, "version", json!({})), "1.1.0");
    updated.hang_up();
    // Vendors' snippets wrap the entries in `mcpServers`. The update changes only the version.
    registry.npm("tiny", "1.2.0", &Package::default());
    let plain = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{{ \"mcpServers\": {plain} }}")).unwrap();
    assert!(run(&world.home, &["update", "tiny", "--yes"]).unwrap().contains("Updated."));
    let all: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((&all["mcpServers"]["tiny"]["args"][1], all.get("tiny")), (&json!("tiny@1.2.0"), None));
}

#[test]
fn permissions_survive_reinstall_and_update() {
    let registry = Registry::new();
    registry.npm("tiny", "1.0.0", &Package::default());
    let world = world(&registry, &["tiny@1.0.0"]);
    let folder = install(&world.home, "tiny");
    let plan = world.file("plans/next", "x");
    let client = world.connect("tiny");
    let key = std::env::current_exe().unwrap().canonicalize().unwrap().display().to_string();
    let read = GrantTarget::Files { path: plan, access: AccessSet::only(Access::Read) };
    let gift = GrantRequest { client: key, server: "tiny".into(), what: read, lifetime: Lifetime::Always };
    world.wait(world.daemon.grant(gift)).unwrap();
    client.hang_up();
    let applies = |version: &str| {
        // The server now has network access, so its tools require approval.
        world.user.will(Next::AllowFirst(vec![Reach::Request, Reach::Tool]));
        let mut client = world.connect("tiny");
        assert_eq!(client.call("version", json!({})).ok(), version);
        client.hang_up();
        let marks: Vec<_> = world.grants().into_iter().map(|grant| (grant.suspended, grant.uses)).collect();
        assert_eq!(marks, [(None, 0)]);
    };
    // A damaged package is not started. Reinstalling it yields the same archive.
    // The folders of a package are not writable.
    assert!(Command::new("chmod").args(["-R", "u+w"]).arg(&folder).status().unwrap().success());
    std::fs::remove_dir_all(&folder).unwrap();
    install(&world.home, "tiny");
    applies("1.0.0");
    newer(&registry);
    assert!(run(&world.home, &["update", "tiny", "--yes"]).unwrap().contains("Updated."));
    crate::world::eventually("the new version is in force", crate::client::TIMEOUT, || {
        let mut client = world.start("tiny");
        let about = json!({ "name": "t", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about });
        let answer = client.request("initialize", params);
        client.hang_up();
        answer["result"].is_object()
    });
    applies("1.1.0");
}

#[test]
fn unversioned_entry_is_unchanged_and_version_can_be_given() {
    let registry = Registry::new();
    registry.npm("tiny", "1.0.0", &Package::default());
    newer(&registry);
    let mut world = world(&registry, &["tiny"]);
    install(&world.home, "tiny");
    let file = world.home.config.join("mcp-servers.json");
    let before = std::fs::read_to_string(&file).unwrap();
    let odd = run(&world.home, &["update", "tiny", "--to", "file:/x", "--yes"]).unwrap_err();
    assert!(odd.contains("`file:/x` is not a version"), "{odd}");
    run(&world.home, &["update", "tiny", "--to", "1.0.0", "--yes"]).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    let package: Value = json_of(&world.home, &["list"])["servers"][0]["package"].clone();
    assert_eq!((&package["state"], &package["version"]), (&json!("installed"), &json!("1.0.0")));
    // The next installation removes versions that no entry uses.
    world.restart();
    assert_eq!(folders(&world.home), ["tiny/1.0.0"]);
    assert_eq!(tell(&world, &mut world.connect("tiny"), "version", json!({})), "1.0.0");
}

#[test]
fn version_that_fails_to_start_can_be_replaced_but_not_installed() {
    let registry = Registry::new();
    registry.npm("tiny", "1.0.0", &Package { broken: true, ..Package::default() });
    let world = world(&registry, &["tiny"]);
    install(&world.home, "tiny");
    newer(&registry);
    let taken = run(&world.home, &["update", "tiny", "--yes"]).unwrap();
    for words in [
        "NOT COMPARED, so review each of its tools: failed to inspect version 1.0.0",
        "a part is missing",
        "extra: Does more.",
        "Updated.",
    ] {
        assert!(taken.contains(words), "{words} in\n{taken}");
    }
    assert_eq!(tell(&world, &mut world.connect("tiny"), "version", json!({})), "1.1.0");

    registry.npm("tiny", "1.2.0", &Package { broken: true, ..Package::default() });
    let refused = run(&world.home, &["update", "tiny", "--yes"]).unwrap_err();
    assert!(refused.contains("failed to inspect version 1.2.0"), "{refused}");
    let package: Value = json_of(&world.home, &["list"])["servers"][0]["package"].clone();
    assert_eq!(package["version"], json!("1.1.0"));
}
