//! Compares the tools in the catalog with those that the servers list.

use super::{add_from, installed, python, world};
use crate::client::Client;
use crate::world::World;
use ironcurtain_admin::catalog::{Catalog, Source};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Maximum time for a server to list its tools. A working server needs far less.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Each tool's argument names.
type Tools = BTreeMap<String, BTreeSet<String>>;

/// Waits until the server lists `count` tools for a client with all capabilities, and returns them. Some servers add
/// tools that need a client capability shortly after initialization.
fn real(world: &World, id: &str, count: usize) -> Tools {
    let mut client = world.start(id);
    let task = json!({ "sampling": { "createMessage": {} }, "elicitation": { "create": {} } });
    let capabilities = json!({
        "roots": { "listChanged": true }, "sampling": {}, "elicitation": { "form": {}, "url": {} },
        "tasks": { "list": {}, "cancel": {}, "requests": task },
    });
    client.handshake_with(&capabilities);
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let tools = listed(&mut client);
        if tools.len() >= count || Instant::now() > deadline {
            return tools;
        }
    }
}

fn listed(client: &mut Client) -> Tools {
    let answer = client.request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), keys(&tool["inputSchema"]["properties"])))
        .collect()
}

fn keys(object: &Value) -> BTreeSet<String> {
    object.as_object().into_iter().flat_map(serde_json::Map::keys).cloned().collect()
}

/// Returns a server's tools according to the catalog, and the names of the tools that the catalog omits.
fn said(catalog: &Catalog, id: &str) -> (Tools, BTreeSet<String>) {
    let known = catalog.find(id).unwrap();
    let said = known.annotations(id).unwrap().unwrap_or_default();
    let tools = said["tools"].as_array().into_iter().flatten();
    let tools = tools.map(|tool| (tool["toolName"].as_str().unwrap().to_owned(), keys(&tool["args"])));
    (tools.collect(), known.left_out.keys().cloned().collect())
}

fn agrees(id: &str) {
    let (mut said, left_out) = said(&Catalog::shipped().unwrap(), id);
    let mut real = real(&world(id), id, said.len() + left_out.len());
    for tool in &left_out {
        assert!(real.remove(tool).is_some(), "`{id}` has no `{tool}` to leave out");
        assert_eq!(said.remove(tool), None, "`{tool}` is both annotated and left out");
    }
    assert_eq!(said, real, "`{id}`: the annotated tools differ from the real ones");
}

#[test]
fn installed_server_tools_are_annotated_or_left_out() {
    for id in
        ["filesystem", "filesystem-reference", "everything", "memory", "sequential-thinking", "git", "time"]
    {
        agrees(id);
    }
}

#[test]
fn third_party_server_tools_are_annotated_or_left_out() {
    for id in [
        "fetch",
        "sqlite",
        "playwright",
        "context7",
        "notion",
        "arxiv",
        "duckduckgo",
        "brave-search",
        "slack",
        "github",
        "obsidian",
    ] {
        agrees(id);
    }
}

#[test]
fn catalog_has_twenty_servers_with_annotated_tools() {
    let catalog = Catalog::shipped().unwrap();
    assert_eq!(catalog.iter().count(), 20);
    for known in catalog.iter() {
        assert!(known.annotations("x").unwrap().is_some(), "{}", known.id);
    }
}

#[test]
fn catalog_pins_the_reviewed_version() {
    // These servers are too large to install in a test. Their versions were reviewed manually.
    let by_hand = ["desktop-commander", "markitdown"];
    for known in Catalog::shipped().unwrap().iter() {
        if by_hand.contains(&&*known.id) {
            continue;
        }
        let there = match &known.source {
            Source::Npm { package, version, program } => {
                let dir = installed("npm").join("node_modules").join(package);
                let text = std::fs::read_to_string(dir.join("package.json")).unwrap();
                let about: Value = serde_json::from_str(&text).unwrap();
                about["version"] == json!(version) && dir.join(program).is_file()
            }
            Source::Pypi { package, version, module, script, .. } => {
                let name = package.replace('-', "_");
                let dir = installed(python(package));
                let program = script.as_ref().map(|script| dir.join("bin").join(script));
                let program = program.or(module.as_ref().map(|module| dir.join(module)));
                dir.join(format!("{name}-{version}.dist-info")).is_dir() && program.unwrap().exists()
            }
            Source::Own { .. } => true,
        };
        assert!(there, "`{}` differs from the version installed for the tests", known.id);
    }
}

#[test]
fn several_catalog_servers_can_be_added() {
    let catalog = Catalog::shipped().unwrap();
    let world = World::with(|prepared| {
        for id in ["everything", "sequential-thinking", "time"] {
            add_from(&prepared.home, id, &catalog);
        }
    });
    for (id, tool) in
        [("everything", "echo"), ("sequential-thinking", "sequentialthinking"), ("time", "convert_time")]
    {
        assert!(listed(&mut world.connect(id)).contains_key(tool));
    }
    assert!(listed(&mut world.connect("filesystem")).contains_key("read_text_file"));
}
