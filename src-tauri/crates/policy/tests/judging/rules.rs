//! Tests which rule decides a value.

use crate::scene::{Scene, fields, load, path, severity};
use ironcurtain_policy::{DynamicLists, Fact};
use serde_json::{Value, json};

#[test]
fn a_tool_without_resources_is_covered_by_rules_whose_conditions_it_meets() {
    let verdict = |conditions: Value| {
        let scene = Scene::new(&[("r", conditions, "allow")]);
        scene.verdict_text("other", "mail", &json!({ "to": "bob@example.com", "body": "hi" }))
    };
    assert_eq!(verdict(json!({ "roles": ["read-path", "email-body"] })), "allow r");
    assert_eq!(verdict(json!({ "roles": ["read-path"] })), "deny default-deny");
    assert_eq!(verdict(json!({ "paths": { "roles": ["read-path"], "within": "/" } })), "deny default-deny");
    assert_eq!(
        verdict(json!({ "domains": { "roles": ["fetch-url"], "allowed": ["*"] } })),
        "deny default-deny"
    );
    assert_eq!(verdict(json!({ "lists": [] })), "allow r");
}

#[test]
fn rule_with_an_empty_lists_condition_applies_to_every_role() {
    let scene = Scene::new(&[("r", json!({ "lists": [] }), "allow")]);
    assert_eq!(scene.verdict_text("filesystem", "read", &json!({ "path": "/a" })), "allow r");
}

#[test]
fn each_value_is_discharged_by_the_first_rule_that_covers_it() {
    let within = |at: &str| json!({ "paths": { "roles": ["read-path"], "within": at } });
    let scene = Scene::new(&[
        ("d", within("/d"), "deny"),
        ("e", within("/e"), "escalate"),
        ("a", within("/a"), "allow"),
        ("late", within("/a/late"), "deny"),
    ]);
    let verdict = |paths: Value| scene.verdict_text("filesystem", "many", &json!({ "paths": paths }));
    assert_eq!(verdict(json!(["/a/x", "/a/y"])), "allow a");
    assert_eq!(verdict(json!(["/a/x", "/e/y"])), "escalate e");
    assert_eq!(verdict(json!(["/e/x", "/d/y"])), "deny d");
    assert_eq!(verdict(json!(["/a/x", "/z"])), "deny default-deny");
    assert_eq!(verdict(json!(["/a/late/x"])), "allow a");
}

#[test]
fn rule_applies_only_to_the_roles_of_its_conditions() {
    let scene = Scene::new(&[
        ("reads", json!({ "roles": ["read-path"] }), "allow"),
        ("writes", json!({ "paths": { "roles": ["write-path"], "within": "/w" } }), "allow"),
    ]);
    assert_eq!(scene.verdict_text("filesystem", "read", &json!({ "path": "/a" })), "allow reads");
    assert_eq!(scene.verdict_text("filesystem", "write", &json!({ "path": "/w/a" })), "allow writes");
    assert_eq!(scene.verdict_text("filesystem", "write", &json!({ "path": "/a" })), "deny default-deny");
    let moved = json!({ "source": "/w/a", "destination": "/w/b" });
    assert_eq!(scene.verdict_text("filesystem", "move", &moved), "deny default-deny");
}

#[test]
fn condition_within_the_root_covers_every_path_but_no_missing_value() {
    let root = json!({ "paths": { "roles": ["read-path"], "within": "/" } });
    let scene = Scene::new(&[("root", root, "allow")]);
    assert_eq!(scene.verdict_text("filesystem", "read", &json!({ "path": "/any/where" })), "allow root");
    assert_eq!(scene.verdict_text("filesystem", "read", &json!({ "path": "/" })), "allow root");
    assert_eq!(scene.verdict_text("filesystem", "read", &json!({})), "deny default-deny");
}

#[test]
fn every_address_of_a_remote_must_be_covered() {
    let scene = Scene::new(&[
        ("reads", json!({ "roles": ["read-path"] }), "allow"),
        ("hub", json!({ "domains": { "roles": ["git-remote-url"], "allowed": ["github.com"] } }), "allow"),
    ]);
    let verdict = |urls: &[&str]| {
        let arguments = fields(&json!({ "path": "/r", "remote": "origin" }));
        let plan = scene.annotations.plan("other", "push", &arguments).unwrap();
        let urls = urls.iter().map(|url| (*url).to_owned()).collect();
        let call = plan.resolve(vec![Fact::Path(path("/r")), Fact::Remotes(urls)]).unwrap();
        assert_eq!(call.transport_arguments()["remote"], "origin");
        severity(&scene.judge_call(&call))
    };
    assert_eq!(verdict(&["https://github.com/a/b.git"]), 0);
    assert_eq!(verdict(&["https://github.com/a/b.git", "https://evil.net/a"]), 2);
    assert_eq!(verdict(&[]), 2);
    let web = json!({ "domains": { "roles": ["fetch-url"], "allowed": ["*"] } });
    let scene = Scene::new(&[("web", web, "allow"), ("reads", json!({ "roles": ["read-path"] }), "allow")]);
    let push = json!({ "path": "/r", "remote": "https://github.com/a/b" });
    assert_eq!(scene.verdict_text("other", "push", &push), "deny default-deny");
}

#[test]
fn a_host_that_is_opened_is_compared_like_any_host() {
    let evil = json!({ "domains": { "roles": ["proxy-domain"], "allowed": ["*.evil.net"] } });
    let scene = Scene::new(&[("evil", evil, "deny"), ("all", json!({}), "allow")]);
    assert_eq!(scene.verdict_text("other", "open", &json!({ "host": "A.Evil.net" })), "deny evil");
    assert_eq!(scene.verdict_text("other", "open", &json!({ "host": "ok.org" })), "allow all");
}

#[test]
fn list_must_cover_every_value_by_its_match_type() {
    let lists = DynamicLists::from_json(
        &json!({ "lists": { "friends": {
            "values": ["a@x.org", "b@x.org"], "manualAdditions": ["C@x.org"], "manualRemovals": ["b@x.org"]
        } } })
        .to_string(),
        "lists.json",
    )
    .unwrap();
    let friends = json!([{ "roles": ["email-address"], "allowed": ["@friends"], "matchType": "emails" }]);
    let file = json!({ "rules": [{ "name": "friends", "if": { "lists": friends }, "then": "allow" }] });
    let mut scene = Scene::new(&[]);
    scene.policy = load(&file, &lists);
    let verdict = |to: Value| scene.verdict_text("other", "mail", &json!({ "to": to, "body": "x" }));
    assert_eq!(verdict(json!("A@X.org")), "allow friends");
    assert_eq!(verdict(json!(["a@x.org", "c@x.org"])), "allow friends");
    for other in [
        json!("b@x.org"),
        json!(["a@x.org", "z@x.org"]),
        json!(["a@x.org", { "email": "z@x.org" }]),
        json!([]),
    ] {
        assert_eq!(verdict(other.clone()), "deny default-deny", "{other}");
    }
    assert_eq!(scene.verdict_text("other", "mail", &json!({ "body": "x" })), "deny default-deny");
}
