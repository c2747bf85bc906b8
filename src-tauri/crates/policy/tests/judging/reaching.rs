//! Tests rules for calls without resources on servers that reach nothing.

use crate::scene::{Scene, spelled};
use ironcurtain_policy::{DynamicLists, Mismatch, Policy, ServerReach};
use serde_json::{Value, json};

/// Creates a scene for a server with this reach. It has a rule for calls without resources on servers that reach
/// nothing, and a rule that requires approval for all other calls.
fn scene(then: &str, reach: ServerReach) -> Scene {
    let rules = [("shut", json!({ "reaches": "nothing" }), then), ("ask", json!({}), "escalate")];
    Scene { reach, ..Scene::new(&rules) }
}

fn mail() -> Value {
    json!({ "to": "bob@example.com", "body": "hi" })
}

#[test]
fn call_without_resources_is_allowed_only_on_server_without_reach() {
    let verdict_text = |reach| scene("allow", reach).verdict_text("other", "mail", &mail());
    assert_eq!(verdict_text(ServerReach::Nothing), "allow shut");
    assert_eq!(verdict_text(ServerReach::Something), "escalate ask");
    assert_eq!(verdict_text(ServerReach::Unknown), "escalate ask");
}

#[test]
fn call_with_resource_asks_regardless_of_reach() {
    let scene = scene("allow", ServerReach::Nothing);
    for (server, tool, arguments) in [
        ("filesystem", "read", json!({ "path": "/a" })),
        ("other", "get", json!({ "url": "https://a.org" })),
        ("other", "repo", json!({ "owner": "a", "repo": "b" })),
        ("other", "open", json!({ "host": "a.org" })),
        ("filesystem", "many", json!({ "paths": ["/box/a", "/b"] })),
    ] {
        assert_eq!(scene.verdict_text(server, tool, &arguments), "escalate ask", "{tool}");
    }
    // A value in the session sandbox does not allow the other values.
    let compare = json!({ "left": "/box/a", "right": "/b" });
    assert_eq!(scene.verdict_text("filesystem", "compare", &compare), "escalate ask");
    // The tool accepts a path, but this call has none.
    assert_eq!(scene.verdict_text("filesystem", "list", &json!({ "recursive": true })), "allow shut");
}

#[test]
fn denying_or_asking_rule_applies_if_the_reach_is_unknown() {
    let verdict_text = |then: &str, reach| {
        let rules = [("shut", json!({ "reaches": "nothing" }), then), ("rest", json!({}), "allow")];
        Scene { reach, ..Scene::new(&rules) }.verdict_text("other", "mail", &mail())
    };
    for then in ["deny", "escalate"] {
        assert_eq!(verdict_text(then, ServerReach::Nothing), format!("{then} shut"));
        assert_eq!(verdict_text(then, ServerReach::Unknown), format!("{then} shut"));
        assert_eq!(verdict_text(then, ServerReach::Something), "allow rest");
    }
}

#[test]
fn a_rule_that_denies_the_tool_is_stronger() {
    let deny = ("no", json!({ "tool": ["mail"] }), "deny");
    let free = ("shut", json!({ "reaches": "nothing" }), "allow");
    let scene = Scene { reach: ServerReach::Nothing, ..Scene::new(&[deny, free]) };
    assert_eq!(scene.verdict_text("other", "mail", &mail()), "deny no");
}

#[test]
fn explanation_reports_that_the_reach_prevented_a_match() {
    let passed = |reach, tool: &str, arguments: &Value| {
        let scene = scene("allow", reach);
        let call = scene.call("other", tool, arguments).unwrap();
        scene.explain(&call).steps[0].skipped_rules.clone()
    };
    let in_the_way = [("shut".into(), Mismatch::MayReach)];
    assert_eq!(passed(ServerReach::Something, "mail", &mail()), in_the_way);
    assert_eq!(passed(ServerReach::Nothing, "get", &json!({ "url": "https://a.org" })), in_the_way);
    assert_eq!(passed(ServerReach::Nothing, "mail", &mail()), []);
}

#[test]
fn impossible_values_reject_the_file() {
    let load = |conditions: Value| {
        let file = json!({ "rules": [{ "name": "r", "if": conditions, "then": "allow" }] }).to_string();
        let loaded = Policy::from_json(&file, "p", &spelled, &DynamicLists::default());
        loaded.map(|_| ()).map_err(|error| error.to_string())
    };
    load(json!({ "reaches": "nothing", "server": ["other"], "roles": ["none"] })).unwrap();
    let with = |field: &str, value: Value| load(json!({ "reaches": "nothing", field: value })).unwrap_err();
    let folder = with("paths", json!({ "roles": ["read-path"], "within": "/a" }));
    assert!(folder.contains("if.reaches") && folder.contains("remove `paths`"), "{folder}");
    let hosts = with("domains", json!({ "roles": ["fetch-url"], "allowed": ["*"] }));
    assert!(hosts.contains("remove `paths` and `domains`"), "{hosts}");
    for other in [json!("everything"), json!(""), json!(true), json!(null), json!(["nothing"])] {
        let refused = load(json!({ "reaches": other })).unwrap_err();
        assert!(refused.contains("if.reaches"), "{refused}");
    }
}
