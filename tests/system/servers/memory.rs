//! The memory server.

use super::{free, install, world};
use crate::client::Client;
use crate::world::World;
use serde_json::{Value, json};
use std::path::Path;

fn remember(world: &World, client: &mut Client, name: &str) -> crate::client::Outcome {
    let entity = json!({ "name": name, "entityType": "person", "observations": ["was here"] });
    free(world, client, "create_entities", json!({ "entities": [entity] }))
}

#[test]
fn memory_server_data_survives_session_and_daemon_restart() {
    let mut world = world("memory");
    let file = world.home.server_data("memory").join("memory.jsonl");
    let mut client = world.connect("memory");
    remember(&world, &mut client, "Ada").ok();
    client.hang_up();
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"Ada\""));
    world.restart();
    let mut client = world.connect("memory");
    let graph = free(&world, &mut client, "read_graph", json!({}));
    assert!(graph.ok().contains("was here"), "{}", graph.text);
}

#[test]
fn memory_server_writes_only_to_its_data_folder() {
    let elsewhere = |home: &Path| home.join("elsewhere/memory.jsonl");
    let world = World::with(|prepared| {
        install(prepared, "memory");
        let file = prepared.home.config.join("mcp-servers.json");
        let mut servers: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let target = elsewhere(&prepared.home.user_home);
        std::fs::create_dir(target.parent().unwrap()).unwrap();
        servers["memory"]["env"]["MEMORY_FILE_PATH"] = json!(target);
        std::fs::write(file, servers.to_string()).unwrap();
    });
    let mut client = world.connect("memory");
    let refused = remember(&world, &mut client, "Ada");
    refused.refused(&format!("'{}", elsewhere(&world.home.user_home).display()));
    assert!(!elsewhere(&world.home.user_home).exists());
}
