//! Settings of the organization that restrict which servers start, and how.

use super::{Organization, refusal_of};
use crate::client::{Client, TIMEOUT};
use crate::containment;
use crate::hostile;
use crate::scripted_user::ScriptedUser;
use crate::test_home::TestHome;
use crate::world::{World, eventually, programs};
use ironcurtain_testkit::namespace::{is_inside, run_inside};
use serde_json::{Value, json};
use std::path::PathBuf;

#[test]
fn only_allowed_and_sandboxed_servers_start() {
    if !is_inside() {
        let test = "managed::server_settings::only_allowed_and_sandboxed_servers_start";
        return run_inside(test, &["--mount"]);
    }
    let organization = Organization::new();
    organization.manages_settings(&json!({}));
    let home = TestHome::new(|prepared| {
        hostile::install_as(prepared, &["hostile", "other", "free"]);
        let file = prepared.home.config.join("mcp-servers.json");
        let mut servers: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        servers["free"]["sandbox"] = false.into();
        std::fs::write(&file, servers.to_string()).unwrap();
    });
    let world = World::of(home, programs(), ScriptedUser::default());
    let program = hostile::program();
    let free = "Example requires a sandbox, and the server's entry has `\"sandbox\": false`";
    let other = "Example does not allow this server";
    for (settings, refused) in [
        (json!({}), [None, None, None]),
        (json!({ "allowedServers": [{ "name": "hostile" }] }), [None, Some(other), Some(other)]),
        (json!({ "allowedServers": [{ "package": program }] }), [None, None, None]),
        (json!({ "allowedServers": [] }), [Some(other); 3]),
        (json!({ "forbidUnsandboxed": true }), [None, None, Some(free)]),
        (json!({ "enforceSandbox": true }), [None, None, None]),
    ] {
        organization.manages_settings(&settings);
        let expected = |server: &str, why: Option<&str>| {
            why.map_or_else(String::new, |why| format!("the server `{server}` is not running: {why}"))
        };
        for (server, why) in ["hostile", "other", "free"].into_iter().zip(refused) {
            let what = format!("{settings} applies to {server}");
            eventually(&what, TIMEOUT, || refusal_of(&world, server) == expected(server, why));
        }
    }
    eventually("the sessions of the checks end", TIMEOUT, || world.sessions().is_empty());
    let _client = world.connect("free");
    assert_eq!(world.sessions().iter().filter(|session| session.server == "free").count(), 1);
    // A session whose server is no longer allowed ends.
    organization.manages_settings(&json!({ "forbidUnsandboxed": true }));
    eventually("the session ends", TIMEOUT, || world.sessions().is_empty());
}

#[test]
fn sandbox_cannot_be_made_optional() {
    if !is_inside() {
        let test = "managed::server_settings::sandbox_cannot_be_made_optional";
        return run_inside(test, &["--mount"]);
    }
    let organization = Organization::new();
    organization.manages_settings(&json!({}));
    let home = TestHome::new(|prepared| {
        hostile::install(prepared);
        let config = json!({ "sandboxPolicy": "warn" });
        std::fs::write(prepared.home.config.join("config.json"), config.to_string()).unwrap();
    });
    // No sandbox can be created without the program for it.
    let world = World::of(home, PathBuf::from("/nonexistent"), ScriptedUser::default());
    let start = || Client::start(&programs(), &world.ours(), "hostile");
    let mut client = start();
    client.handshake();
    client.plain("now").ok();
    assert!(!world.sessions()[0].sandboxed);
    client.hang_up();
    organization.manages_settings(&json!({ "enforceSandbox": true }));
    eventually("the setting applies", TIMEOUT, || {
        let why = containment::refusal(&mut start());
        why.contains("the server requires a sandbox, but this machine cannot create one")
            && why.ends_with("; Example does not let servers start without one")
    });
}
