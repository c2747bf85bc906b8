//! Access requests from an agent in a run: the built-in server asks the user and allows nothing by itself.

use crate::client::{Client, TIMEOUT};
use crate::run_sessions::{in_run, in_run_with};
use crate::scripted_user::{Next, paths};
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::fs::{read_to_string, write};

fn world() -> World {
    let world = World::new();
    world.file("project/own", "own");
    world.file("docs/notes", "my notes");
    world.file(".ssh/id", "my key");
    world
}

/// Connects an agent to the built-in server. For each file `N.go` in the project, the run writes the content of the
/// notes, or the error, to `N.out`.
fn connect(world: &World) -> Client {
    let read = "for n in 1 2; do until [ -e $n.go ]; do sleep 0.02; done; cat ~/docs/notes > $n.tmp 2>&1; mv $n.tmp $n.out; done";
    let shim = programs().join("ironcurtain-shim");
    let script = format!("({read}) < /dev/null > /dev/null & exec {} --server ironcurtain", shim.display());
    let mut client = Client::spawn(in_run(world, &script), &world.ours());
    client.handshake();
    client
}

/// Makes a program of the run read the notes now. Returns the content or the error.
fn read_notes(world: &World, number: u8) -> String {
    write(world.path(&format!("project/{number}.go")), "").unwrap();
    let out = world.path(&format!("project/{number}.out"));
    eventually("the program has read the notes", TIMEOUT, || out.exists());
    read_to_string(out).unwrap()
}

fn listed(client: &mut Client) -> Value {
    serde_json::from_str(client.call("list_access", json!({})).ok()).unwrap()
}

#[test]
fn a_requested_path_is_granted_listed_and_released() {
    let world = world();
    let mut client = connect(&world);
    let names = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> =
        names.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["request_access", "list_access", "release_access"]);
    let notes = world.path("docs/notes");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    let why = "to summarize\u{202e} them";
    let said = client.call("request_access", json!({ "path": notes, "why": why }));
    assert_eq!(said.ok(), format!("You may read {}.", notes.display()));
    let asked = world.user.asked();
    assert_eq!((asked.len(), asked[0].server.as_str()), (1, "run:sh"));
    assert_eq!(paths(&asked[0]), [notes.to_str().unwrap()]);
    let claim = ("reason given by the agent".to_owned(), "to summarize\\u{202e} them".to_owned());
    assert!(asked[0].with.contains(&claim), "{:?}", asked[0].with);
    assert!(asked[0].offers.iter().all(|offer| !offer.lifetimes.contains(&Lifetime::Once)));
    assert_eq!(read_notes(&world, 1), "my notes");
    // Access that has already been granted raises no further question.
    client.call("request_access", json!({ "path": notes, "why": "again" })).ok();
    assert_eq!(world.user.count(), 0);
    let listed = listed(&mut client);
    let paths = listed["paths"].as_array().unwrap();
    assert_eq!(paths[0], json!({ "path": world.path("project"), "access": ["read", "write", "delete"] }));
    let grant = paths.iter().find(|one| one["path"] == json!(notes)).unwrap();
    assert_eq!(grant["access"], json!(["read"]));
    assert_eq!(client.call("release_access", json!({ "grant": grant["grant"] })).ok(), "Released.");
    assert!(world.grants().iter().all(|grant| grant.path != notes.to_str().unwrap()));
    assert!(read_notes(&world, 2).contains("Permission denied"));
    assert!(world.log().contains("the agent released a grant of its run"));
}

#[test]
fn a_request_gets_no_more_than_the_user_allows() {
    let world = world();
    // The user grants permanent access, which this run can use but does not own.
    let mut client = connect(&world);
    let notes = world.path("docs/notes");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Always));
    client.call("request_access", json!({ "path": notes, "why": "reading" })).ok();
    let standing = world.grants().into_iter().find(|grant| grant.path == notes.to_str().unwrap()).unwrap();
    assert!(
        listed(&mut client)["paths"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one == &json!({ "path": notes, "access": ["read"] }))
    );
    let refused = client.call("release_access", json!({ "grant": standing.id }));
    refused.refused("this run has no grant");
    assert!(world.grants().iter().any(|grant| grant.id == standing.id));
    world.user.asked();
    // A read grant does not cover changes, which need a separate question.
    let change = json!({ "path": notes, "access": "write", "why": "tidying" });
    client.call("request_access", change).refused("DENIED: the user denied it");
    assert_eq!(world.user.asked().len(), 1);
    for (arguments, because) in [
        (json!({ "path": world.path(".ssh/id"), "why": "keys" }), "DENIED: denied without a question"),
        (json!({ "host": "10.0.0.1:443", "why": "x" }), "name a public host"),
        (json!({ "host": "router:443", "why": "x" }), "name a public host"),
        (json!({ "host": "localhost", "why": "x" }), "name a public host"),
        (json!({ "host": "a b", "why": "x" }), "name a public host"),
        (json!({ "path": notes }), "missing field `why`"),
        (json!({ "path": notes, "why": " " }), "`why` must have"),
        (json!({ "path": notes, "why": "x".repeat(301) }), "`why` must have"),
        (json!({ "path": notes, "host": "example.com", "why": "x" }), "pass either"),
        (json!({ "path": notes, "why": "x", "lifetime": "always" }), "unknown field"),
    ] {
        client.call("request_access", arguments).refused(because);
    }
    client.call("allow", json!({})).refused("unknown tool `allow`");
    assert_eq!(world.user.count(), 0);
}

#[test]
fn a_requested_host_or_service_is_granted() {
    let world = world();
    let mut client = connect(&world);
    for host in ["example.com:443", "localhost:5432"] {
        world.user.will(Next::Allow(Reach::Host, Lifetime::Session));
        let said = client.call("request_access", json!({ "host": host, "why": "the documentation" }));
        assert_eq!(said.ok(), format!("You may connect to {host}."));
        let asked = world.user.asked();
        assert!(asked[0].with.iter().any(|(_, text)| text == "the documentation"));
        assert!(world.grants().iter().any(|grant| grant.path == host && grant.server == "run:sh"));
    }
    client
        .call("request_access", json!({ "host": "other.example.com", "why": "x" }))
        .refused("the user denied it");
}

#[test]
fn a_cancelled_request_withdraws_its_question() {
    let world = world();
    let mut client = connect(&world);
    world.user.will(Next::Ignore);
    let call = client.begin_call("request_access", json!({ "path": world.path("docs/notes"), "why": "x" }));
    eventually("the user is asked", TIMEOUT, || world.user.count() == 1);
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } });
    client.send(&cancelled);
    eventually("the question is withdrawn", TIMEOUT, || world.user.withdrawn().len() == 1);
    assert!(world.grants().is_empty());
    // The connection is still open.
    listed(&mut client);
}

#[test]
fn denied_requests_are_recorded() {
    let world = world();
    let script = format!("{} --server ironcurtain", programs().join("ironcurtain-shim").display());
    let mut client = Client::spawn(in_run_with(&world, &["--quiet", "--deny"], &script), &world.ours());
    client.handshake();
    let (key, notes) = (world.path(".ssh/id"), world.path("docs/notes"));
    client.call("request_access", json!({ "path": key, "why": "x" })).refused("denied without a question");
    client.call("request_access", json!({ "path": notes, "why": "x" })).refused("`--deny`");
    client.call("request_access", json!({ "host": "example.com:443", "why": "x" })).refused("`--deny`");
    let log = world.log();
    let denied = |what: &str, why: &str| {
        let is_it = |line: &&str| line.contains("\"deny\"") && line.contains(what) && line.contains(why);
        log.lines().filter(is_it).count()
    };
    assert_eq!(denied(key.to_str().unwrap(), "protected"), 1, "{log}");
    assert_eq!(denied(notes.to_str().unwrap(), "`--deny`"), 1, "{log}");
    assert_eq!(denied("example.com", "`--deny`"), 1, "{log}");
    assert_eq!(world.user.count(), 0);
}

#[test]
fn a_cancelled_release_is_recorded_only_if_it_revokes() {
    let world = world();
    let mut client = connect(&world);
    let released = || world.log().matches("the agent released a grant of its run").count();
    for number in 0..8 {
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
        let path = world.file(&format!("docs/{number}"), "x");
        client.call("request_access", json!({ "path": path, "why": "x" })).ok();
    }
    let grants = world.grants();
    let (last, others) = grants.split_last().unwrap();
    for grant in others {
        let call = client.begin_call("release_access", json!({ "grant": grant.id }));
        let cancelled =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } });
        client.send(&cancelled);
    }
    // The log is written in order.
    client.call("release_access", json!({ "grant": last.id })).ok();
    eventually("what is recorded is revoked", TIMEOUT, || released() == grants.len() - world.grants().len());
}

#[test]
fn the_built_in_server_exists_only_in_runs() {
    let world = world();
    let mut client = world.start("ironcurtain");
    let answer = client.request("initialize", json!({}));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("no server is named `ironcurtain`"), "{answer}");
}
