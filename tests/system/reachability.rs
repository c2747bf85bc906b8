//! Calls to a server that can access nothing are allowed. They require approval as soon as the server gains access to
//! anything.

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};

/// Creates a test environment with the shipped policy and a server that has these `sandbox` settings.
fn world(sandbox: &Value) -> World {
    World::with(|prepared| {
        hostile::install_contained(prepared, sandbox);
        std::fs::remove_file(prepared.home.policy().join("compiled-policy.json")).unwrap();
    })
}

/// Calls a tool without naming a resource. Returns the number of questions.
fn count_questions(world: &World, client: &mut Client) -> usize {
    client.call("echo", json!({ "n": 1, "text": "/etc/passwd" }));
    world.user.asked().len()
}

#[test]
fn calls_that_reach_nothing_need_no_approval() {
    let world = world(&json!({}));
    let file = world.file("docs/plan.txt", "secret");
    let mut client = world.connect("hostile");
    for _ in 0..5 {
        client.call("echo", json!({ "n": 1, "text": "x" })).ok();
        client.plain("now").ok();
    }
    // The tools whose arguments are not checked have no access either.
    client.sneak(&file).refused("No such file");
    assert_eq!(world.user.asked().len(), 0);
    assert!(world.log().contains(r#""rule":"allow-what-reaches-nothing""#));
    // A call that contains a path still requires approval.
    client.open(&file).refused("the user denied this call");
    assert_eq!(world.user.asked().len(), 1);
}

#[test]
fn server_with_any_access_requires_approval() {
    for open in [
        json!(false),
        json!({ "view": "host-read" }),
        json!({ "network": { "allowedDomains": ["a.example"] } }),
        json!({ "network": { "allowedDomains": [], "askUnknown": true } }),
        json!({ "filesystem": { "allowRead": ["~/docs"] } }),
        json!({ "filesystem": { "allowWrite": ["~/docs"] } }),
    ] {
        let world = World::with(|prepared| {
            std::fs::create_dir_all(prepared.home.user_home.join("docs")).unwrap();
            hostile::install_contained(prepared, &open);
            std::fs::remove_file(prepared.home.policy().join("compiled-policy.json")).unwrap();
        });
        let mut client = world.connect("hostile");
        assert_eq!(count_questions(&world, &mut client), 1, "{open}");
    }
}

#[test]
fn granted_access_requires_approval_until_revoked() {
    let world = world(&json!({}));
    let file = world.file("docs/plan.txt", "secret");
    let mut client = world.connect("hostile");
    assert_eq!(count_questions(&world, &mut client), 0);
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    client.open(&file).ok();
    assert_eq!(world.user.asked().len(), 1);
    // The file is now mounted, and all of the server's tools can read it.
    assert_eq!(count_questions(&world, &mut client), 1);
    world.revoke_only_grant();
    eventually("no question is asked any more", TIMEOUT, || count_questions(&world, &mut client) == 0);
}

#[test]
fn one_call_grant_makes_concurrent_calls_ask() {
    let world = world(&json!({}));
    let file = world.file("docs/plan.txt", "secret");
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    let lingers = client.begin_call("linger", json!({ "path": file }));
    eventually("the file is mounted", std::time::Duration::from_secs(10), || !world.grants().is_empty());
    world.user.asked();
    assert_eq!(count_questions(&world, &mut client), 1);
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": lingers } });
    client.send(&cancelled);
    eventually("the call is free again", std::time::Duration::from_secs(10), || {
        count_questions(&world, &mut client) == 0
    });
}

#[test]
fn impossible_network_call_is_refused_and_names_the_missing_entry() {
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
        assert_eq!(world.user.asked().len(), 0);
        assert!(world.log().contains(r#""rule":"no-network""#));
    }
    // A call that could succeed requires approval. So does a URL that needs no network.
    for open in [json!({ "network": { "allowedDomains": [], "askUnknown": true } }), json!(false)] {
        let world = fetches(open);
        world.connect("hostile").call("now", address.clone()).refused("the user denied this call");
        assert_eq!(world.user.asked().len(), 1);
    }
    let world = fetches(json!({}));
    let data = json!({ "url": "data:text/plain,a" });
    world.connect("hostile").call("now", data).refused("the user denied this call");
    assert_eq!(world.user.asked().len(), 1);
}

#[test]
fn unmountable_path_is_refused_with_advice() {
    let world = hostile::world();
    let file = world.file("docs/plan.txt", "plan");
    let at = |name: &str| world.path("docs").join(name);
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let mut client = world.connect("hostile");
    let special = "because it is a device, a socket or a pipe, which no sandboxed server can use; copy";
    for name in ["socket", "pipe"] {
        client.open(&at(name)).refused(special);
    }
    client.call("change", json!({ "path": at("pipe") })).refused(special);
    assert_eq!(world.user.asked().len(), 0);
    assert_eq!(world.log().matches(r#""rule":"out-of-reach""#).count(), 3);
    // A call that could succeed requires approval, whether it names a file in the same folder or a symlink to that
    // file.
    std::os::unix::fs::symlink(&file, at("link")).unwrap();
    for path in [file, at("link")] {
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        assert_eq!(client.open(&path).ok(), "plan");
    }
    assert_eq!(world.user.asked().len(), 2);
}
