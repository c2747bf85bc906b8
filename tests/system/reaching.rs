//! Calls that can reach nothing are free, and asked about as soon as their server could reach something.

use crate::client::{BOUND, Client};
use crate::consent::Next;
use crate::hostile;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};

/// A server that is contained in this way, with the policy that ships.
fn world(sandbox: &Value) -> World {
    World::with(|prepared| {
        hostile::install_contained(prepared, sandbox);
        std::fs::remove_file(prepared.home.policy().join("compiled-policy.json")).unwrap();
    })
}

/// Calls a tool that names nothing; the number of questions.
fn asks(world: &World, client: &mut Client) -> usize {
    client.call("echo", json!({ "n": 1, "text": "/etc/passwd" }));
    world.person.asked().len()
}

#[test]
fn nobody_is_asked_about_what_can_reach_nothing() {
    let world = world(&json!({}));
    let file = world.file("docs/plan.txt", "secret");
    let mut client = world.connect("hostile");
    for _ in 0..5 {
        client.call("echo", json!({ "n": 1, "text": "x" })).ok();
        client.plain("now").ok();
    }
    // It does what it likes behind that, and finds nothing.
    client.sneak(&file).refused("No such file");
    assert_eq!(world.person.asked().len(), 0);
    assert!(world.log().contains(r#""rule":"allow-what-reaches-nothing""#));
    // What names a path is asked about as ever.
    client.open(&file).refused("the user denied this call");
    assert_eq!(world.person.asked().len(), 1);
}

#[test]
fn an_entry_that_opens_anything_is_asked_about() {
    for open in [
        json!(false),
        json!({ "view": "host-read" }),
        json!({ "network": { "allowedDomains": ["a.example"] } }),
        json!({ "network": { "allowedDomains": [], "askUnknown": true } }),
        json!({ "filesystem": { "allowRead": ["~/docs"] } }),
        json!({ "filesystem": { "allowWrite": ["~/docs"] } }),
    ] {
        let world = World::with(|prepared| {
            std::fs::create_dir_all(prepared.home.person.join("docs")).unwrap();
            hostile::install_contained(prepared, &open);
            std::fs::remove_file(prepared.home.policy().join("compiled-policy.json")).unwrap();
        });
        let mut client = world.connect("hostile");
        assert_eq!(asks(&world, &mut client), 1, "{open}");
    }
}

#[test]
fn what_is_granted_makes_it_asked_about_until_it_is_taken_back() {
    let world = world(&json!({}));
    let file = world.file("docs/plan.txt", "secret");
    let mut client = world.connect("hostile");
    assert_eq!(asks(&world, &mut client), 0);
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Session));
    client.open(&file).ok();
    assert_eq!(world.person.asked().len(), 1);
    // The file is there for all of its tools now.
    assert_eq!(asks(&world, &mut client), 1);
    world.revoke_only_grant();
    eventually("nobody is asked again", BOUND, || asks(&world, &mut client) == 0);
}

#[test]
fn what_is_open_for_one_call_makes_the_others_asked_about() {
    let world = world(&json!({}));
    let file = world.file("docs/plan.txt", "secret");
    let mut client = world.connect("hostile");
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
    let lingers = client.begin_call("linger", json!({ "path": file }));
    eventually("the file is shown", std::time::Duration::from_secs(10), || !world.grants().is_empty());
    world.person.asked();
    assert_eq!(asks(&world, &mut client), 1);
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": lingers } });
    client.send(&cancelled);
    eventually("it is free again", std::time::Duration::from_secs(10), || asks(&world, &mut client) == 0);
}

#[test]
fn a_yes_that_could_not_work_is_not_asked_for_and_the_entry_that_would_help_is_named() {
    let fetches = |sandbox: Value| {
        World::with(move |prepared| {
            hostile::install_contained(prepared, &sandbox);
            let tool =
                json!({ "toolName": "now", "serverName": "hostile", "args": { "url": ["fetch-url"] } });
            let annotations = json!({ "servers": { "hostile": { "tools": [tool] } } });
            let policy = prepared.home.policy();
            std::fs::write(policy.join("tool-annotations.json"), annotations.to_string()).unwrap();
            std::fs::remove_file(policy.join("compiled-policy.json")).unwrap();
        })
    };
    let address = json!({ "url": "https://docs.example.org/a" });
    for shut in [json!({}), json!({ "network": false }), json!({ "network": { "allowedDomains": [] } })] {
        let world = fetches(shut);
        let outcome = world.connect("hostile").call("now", address.clone());
        let help = r#"write `"network": { "allowedDomains": ["docs.example.org"] }` into `sandbox`"#;
        assert!(outcome.refused("the server `hostile` has no network").contains(help), "{}", outcome.text);
        assert_eq!(world.person.asked().len(), 0);
        assert!(world.log().contains(r#""rule":"no-network""#));
    }
    // What could work is asked about, and so is an address that needs no network.
    for open in [json!({ "network": { "allowedDomains": [], "askUnknown": true } }), json!(false)] {
        let world = fetches(open);
        world.connect("hostile").call("now", address.clone()).refused("the user denied this call");
        assert_eq!(world.person.asked().len(), 1);
    }
    let world = fetches(json!({}));
    let data = json!({ "url": "data:text/plain,a" });
    world.connect("hostile").call("now", data).refused("the user denied this call");
    assert_eq!(world.person.asked().len(), 1);
}

#[test]
fn a_path_that_the_server_could_never_be_shown_is_not_asked_for_and_says_what_would_help() {
    let world = hostile::world();
    let file = world.file("docs/plan.txt", "plan");
    let at = |name: &str| world.path("docs").join(name);
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let mut client = world.connect("hostile");
    let special =
        "because it is a device, a socket or a pipe, which no sandboxed server can use; copy";
    for name in ["socket", "pipe"] {
        client.open(&at(name)).refused(special);
    }
    client.call("change", json!({ "path": at("pipe") })).refused(special);
    assert_eq!(world.person.asked().len(), 0);
    assert_eq!(world.log().matches(r#""rule":"out-of-reach""#).count(), 3);
    // What could work is asked about: a file beside them, and a link that leads there.
    std::os::unix::fs::symlink(&file, at("link")).unwrap();
    for path in [file, at("link")] {
        world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
        assert_eq!(client.open(&path).ok(), "plan");
    }
    assert_eq!(world.person.asked().len(), 2);
}
