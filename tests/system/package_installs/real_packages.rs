//! Packages from the registries configured on this machine.

use super::{install, json_of, refusal, run, tell};
use crate::test_home::Prepared;
use crate::world::World;
use ironcurtain_admin::catalog::{AddRequest, Catalog, add};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;

/// Creates a test environment with a catalog server whose package is not installed.
fn world(id: &str) -> World {
    World::with(|prepared: &Prepared| {
        let catalog = Catalog::shipped().unwrap();
        let known = catalog.find(id).unwrap();
        let adding = AddRequest { known, name: id, from: None, settings: &BTreeMap::new(), replace: false };
        add(&prepared.home, adding).unwrap();
    })
}

#[test]
fn npm_server_works_offline_only_after_install() {
    let world = world("memory");
    let message = refusal(&world, "memory");
    assert!(message.contains("is not installed; run `ironcurtain servers install memory`"), "{message}");
    let listed = run(&world.home, &["list"]).unwrap();
    assert!(listed.contains("NOT READY: its package `@modelcontextprotocol/server-memory@"), "{listed}");
    let folder = install(&world.home, "memory");
    let package = json_of(&world.home, &["list"])["servers"][1]["package"].clone();
    assert_eq!(package["state"], json!("installed"));
    let version = package["version"].as_str().unwrap();
    assert!(run(&world.home, &["list"]).unwrap().contains(&format!("npx  version {version}")));
    let integrity = json_of(&world.home, &["install", "memory"])["integrity"].clone();
    assert!(integrity.as_str().unwrap().starts_with("sha512-"), "{integrity}");
    let again = run(&world.home, &["install", "memory"]).unwrap();
    assert!(again.contains("is already installed and unchanged"), "{again}");
    let entry = std::fs::read_to_string(world.home.config.join("mcp-servers.json")).unwrap();
    assert!(entry.contains("\"npx\"") && !entry.contains(folder.to_str().unwrap()), "{entry}");

    let mut client = world.connect("memory");
    let ada = json!({ "name": "Ada", "entityType": "person", "observations": ["was here"] });
    tell(&world, &mut client, "create_entities", json!({ "entities": [ada] }));
    assert!(tell(&world, &mut client, "read_graph", json!({})).contains("was here"));
}

#[test]
fn pypi_server_is_installed_into_its_own_environment() {
    let world = world("time");
    let message = refusal(&world, "time");
    assert!(message.contains("is not installed; run `ironcurtain servers install time`"), "{message}");
    let folder = install(&world.home, "time");
    let integrity = json_of(&world.home, &["install", "time"])["integrity"].clone();
    assert!(integrity.as_str().unwrap().starts_with("sha256:"), "{integrity}");
    let mut client = world.connect("time");
    let now = tell(&world, &mut client, "get_current_time", json!({ "timezone": "Europe/Berlin" }));
    assert_eq!(serde_json::from_str::<Value>(&now).unwrap()["timezone"], json!("Europe/Berlin"));
    let script = std::fs::metadata(folder.join("venv/bin/mcp-server-time")).unwrap();
    assert_eq!(script.mode() & 0o7777, 0o555);
    drop(client);
    let package = json_of(&world.home, &["list"])["servers"][1]["package"].clone();
    assert_eq!(package["state"], json!("installed"), "{package}");
}
