//! Adds each server of the catalog and runs it in the sandbox that the catalog defines.
//!
//! - Each test checks that the server works and that one specific action is refused.

mod everything;
mod git;
mod memory;
mod playwright;
mod sqlite;
mod thinking;
mod time;
mod tools;

use crate::client::{Client, Outcome};
use crate::scripted_user::Next;
use crate::test_home::Prepared;
use crate::world::{World, installed};
use ironcurtain_admin::catalog::{AddRequest, Catalog, Source, add};
use ironcurtain_config::home::Home;
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::Value;
use std::collections::BTreeMap;

/// Creates a test environment with one catalog server.
pub fn world(id: &str) -> World {
    World::with(|prepared| install(prepared, id))
}

pub fn install(prepared: &Prepared, id: &str) {
    add_from(&prepared.home, id, &Catalog::shipped().unwrap());
}

/// Adds a server as `ironcurtain servers add ID --from DIR` does.
fn add_from(home: &Home, id: &str, catalog: &Catalog) {
    let known = catalog.find(id).unwrap();
    let from = match &known.source {
        Source::Npm { .. } => Some(installed("npm")),
        Source::Pypi { package, .. } => Some(installed(python(package))),
        Source::Own { .. } => None,
    };
    let person = &home.user_home;
    let settings = known.settings.keys().map(|name| {
        let value = match name.as_str() {
            "browser" => "/usr/bin/chromium-headless-shell".into(),
            folder => {
                std::fs::create_dir_all(person.join(folder)).unwrap();
                person.join(folder).display().to_string()
            }
        };
        (name.clone(), value)
    });
    let settings: BTreeMap<_, _> = settings.collect();
    // The filesystem server is already configured.
    let adding = AddRequest { known, name: id, from: from.as_deref(), settings: &settings, replace: true };
    add(home, adding).unwrap();
    let file = home.config.join("mcp-servers.json");
    let text = std::fs::read_to_string(&file).unwrap();
    // The server checks the key only at the first call that uses it.
    std::fs::write(&file, text.replace(&format!("keyring:{id}"), "xoxb-no-key")).unwrap();
}

/// Returns the name of the folder in `target` that contains a server's Python packages.
fn python(package: &str) -> &'static str {
    match package {
        "mcp-server-sqlite" | "arxiv-mcp-server" => "pypi-mcp1",
        _ => "pypi",
    }
}

/// Calls a tool, which the user allows once.
pub fn allowed(world: &World, client: &mut Client, tool: &str, arguments: Value) -> Outcome {
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    let outcome = client.call(tool, arguments);
    assert_eq!(world.user.asked().len(), 1, "`{tool}` did not ask: {outcome:?}");
    outcome
}

/// Calls a tool that can access nothing and therefore needs no approval.
pub fn free(world: &World, client: &mut Client, tool: &str, arguments: Value) -> Outcome {
    let outcome = client.call(tool, arguments);
    assert_eq!(world.user.asked().len(), 0, "`{tool}` asked: {outcome:?}");
    outcome
}
