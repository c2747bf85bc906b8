//! Tests managed settings, uncertain managed rules with grants, and the paths that managed rules close.

use crate::scene::{Scene, grant, path, policy};
use ironcurtain_policy::{
    Access, GrantKind, HostGrant, ProtectedPaths, ToolGrant, ToolScope, open_folders, restriction,
};
use serde_json::{Value, json};
use std::slice::from_ref;

/// Time at which the managed rules were first seen: the creation time of [`grant`] plus one.
const ARRIVED: u64 = 1001;

type Rules<'a> = &'a [(&'a str, Value, &'a str)];

fn scene(setting: Rules<'_>, bundle: Rules<'_>, user: Rules<'_>) -> Scene {
    let mut scene = Scene::new(user);
    let managed = policy(setting).into_settings_layer().append(policy(bundle));
    scene.policy = scene.policy.clone().with_managed(managed, |_| ARRIVED);
    scene
}

fn network(then: &'static str) -> (&'static str, Value, &'static str) {
    ("network", json!({ "roles": ["fetch-url"] }), then)
}

fn host(then: &'static str) -> (&'static str, Value, &'static str) {
    ("host", json!({ "domains": { "roles": ["fetch-url"], "allowed": ["a.example"] } }), then)
}

fn within(roles: &[&str], folder: &str) -> Value {
    json!({ "paths": { "roles": roles, "within": folder } })
}

fn all(then: &'static str) -> (&'static str, Value, &'static str) {
    ("all", json!({}), then)
}

const FILES: [&str; 3] = ["read-path", "write-path", "delete-path"];

#[test]
fn the_strictest_of_setting_bundle_and_user_decides() {
    for (setting, bundle, user, expected) in [
        (network("escalate"), host("deny"), all("allow"), "deny managed:host"),
        (network("escalate"), host("allow"), all("allow"), "escalate managed:network"),
        (network("escalate"), host("escalate"), all("allow"), "escalate managed:network"),
        (network("escalate"), all("deny"), all("allow"), "deny managed:all"),
        (network("escalate"), host("allow"), all("deny"), "deny all"),
        (network("deny"), host("allow"), all("allow"), "deny managed:network"),
        (network("deny"), host("escalate"), all("allow"), "deny managed:network"),
    ] {
        let scene = scene(from_ref(&setting), from_ref(&bundle), from_ref(&user));
        let verdict_text = scene.verdict_text("other", "get", &json!({ "url": "https://a.example/" }));
        assert_eq!(verdict_text, expected, "{setting:?}, {bundle:?}, {user:?}");
    }
    let asking = scene(&[network("escalate")], &[host("deny")], &[all("allow")]);
    let get = |url: &str| asking.verdict_text("other", "get", &json!({ "url": url }));
    assert_eq!(get("https://b.example/"), "escalate managed:network");
    assert_eq!(asking.verdict_text("filesystem", "read", &json!({ "path": "/docs/a" })), "allow all");
}

#[test]
fn a_host_grant_must_be_newer_than_the_rules_of_both_managed_layers() {
    let verdict_text = |since: (u64, u64), created_ms: u64| {
        let mut scene = Scene::new(&[all("allow")]);
        let managed =
            policy(&[network("escalate")]).into_settings_layer().append(policy(&[host("escalate")]));
        let since = |name: &str| if name == "network" { since.0 } else { since.1 };
        scene.policy = scene.policy.clone().with_managed(managed, |rule| since(rule.name()));
        let host = "a.example".to_owned();
        scene.hosts = vec![HostGrant { id: "g".to_owned(), created_ms, host, port: 443 }];
        scene.verdict_text("other", "get", &json!({ "url": "https://a.example/" }))
    };
    assert_eq!(verdict_text((10, 20), 15), "escalate managed:network");
    assert_eq!(verdict_text((20, 10), 15), "escalate managed:network");
    assert_eq!(verdict_text((10, 20), 21), "allow grant");
}

#[test]
fn an_older_grant_does_not_satisfy_an_uncertain_managed_rule() {
    // No user rule applies to the tool, so no layer decides with certainty.
    let secret = ("secret", within(&["read-path", "delete-path"], "/docs/secret"), "escalate");
    let moved = |managed: Rules<'_>, created_ms: u64| {
        let mut scene = scene(&[], managed, &[]);
        let every = [Access::Read, Access::Write, Access::Delete];
        scene.grants = vec![grant("g", "/docs", GrantKind::Tree, &every)];
        scene.grants[0].created_ms = created_ms;
        scene.verdict_text("filesystem", "delete", &json!({ "path": "/docs" }))
    };
    assert_eq!(moved(from_ref(&secret), ARRIVED), "deny default-deny");
    assert_eq!(moved(from_ref(&secret), ARRIVED + 1), "allow grant");
    assert_eq!(moved(&[], ARRIVED), "allow grant");

    // The domain condition holds for only one of the two addresses.
    let fetched = |managed: Rules<'_>, created_ms: u64| {
        let mut scene = scene(&[], managed, &[]);
        let granted =
            |host: &str| HostGrant { id: "g".to_owned(), created_ms, host: host.to_owned(), port: 443 };
        scene.hosts = vec![granted("a.example"), granted("b.example")];
        scene.verdict_text("other", "get", &json!({ "url": ["https://a.example/", "https://b.example/"] }))
    };
    assert_eq!(fetched(&[host("escalate")], ARRIVED), "deny default-deny");
    assert_eq!(fetched(&[host("escalate")], ARRIVED + 1), "allow grant+grant");

    // The list has a different spelling of the value.
    let address_to_send = |managed: Rules<'_>, created_ms: u64| {
        let mut scene = scene(&[], managed, &[]);
        let scope = ToolScope::All;
        scene.tools = vec![ToolGrant { id: "g".to_owned(), created_ms, scope }];
        scene.verdict_text("other", "repo", &json!({ "owner": "ann", "repo": "secret" }))
    };
    let listed = |roles: &[&str]| json!({ "lists": [{ "roles": roles, "allowed": ["ANN"], "matchType": "identifiers" }] });
    let listed = ("listed", listed(&["github-owner"]), "escalate");
    assert_eq!(address_to_send(from_ref(&listed), ARRIVED), "deny default-deny");
    assert_eq!(address_to_send(&[listed], ARRIVED + 1), "allow grant");
}

#[test]
fn a_managed_rule_applies_to_the_list_of_allowed_folders_even_if_a_user_rule_is_stricter() {
    let list = |managed: Rules<'_>, user: Rules<'_>| {
        scene(&[], managed, user).verdict_text("filesystem", "list_allowed_directories", &json!({}))
    };
    assert_eq!(list(&[all("escalate")], &[all("deny")]), "deny all");
    assert_eq!(list(&[], &[all("deny")]), "allow structural-introspection-allow");
}

#[test]
fn a_restriction_by_a_setting_is_a_restriction() {
    let restricted = |setting: Rules<'_>, bundle: Rules<'_>| {
        let scene = scene(setting, bundle, &[all("allow")]);
        let call = scene.call("other", "get", &json!({ "url": "https://a.example/" })).unwrap();
        restriction(&scene.policy, &scene.context(), &call).map(|rule| rule.rule.to_string())
    };
    assert_eq!(restricted(&[network("escalate")], &[host("allow")]).as_deref(), Some("managed:network"));
    assert_eq!(restricted(&[network("escalate")], &[host("deny")]).as_deref(), Some("managed:host"));
    assert_eq!(restricted(&[], &[host("allow")]), None);
}

#[test]
fn an_earlier_rule_that_cannot_open_files_to_all_servers_does_not_show_a_denied_folder() {
    let secret = || ("secret", within(&FILES, "/docs/secret"), "deny");
    let closed = |earlier: &(&str, Value, &str)| {
        let policy = scene(&[network("escalate")], &[earlier.clone(), secret()], &[all("deny")]).policy;
        let protected = ProtectedPaths::default().with_managed(&policy);
        protected.paths() == [path("/docs/secret")]
    };
    let with = |mut condition: Value, key: &str, names: &[&str]| {
        condition[key] = json!(names);
        condition
    };
    for earlier in [
        ("server", json!({ "server": ["github"] }), "escalate"),
        ("tool", json!({ "tool": ["get_time"] }), "allow"),
        ("named", with(within(&FILES, "/docs"), "server", &["other"]), "allow"),
        ("reader", with(within(&FILES, "/docs"), "tool", &["read"]), "allow"),
        ("connections", json!({ "roles": ["fetch-url"] }), "escalate"),
        host("escalate"),
        ("elsewhere", within(&FILES, "/other"), "allow"),
    ] {
        assert!(closed(&earlier), "{earlier:?}");
    }
    for earlier in [
        all("allow"),
        ("files", json!({ "roles": FILES }), "escalate"),
        ("public", within(&FILES, "/docs/secret/public"), "allow"),
    ] {
        assert!(!closed(&earlier), "{earlier:?}");
    }
}

#[test]
fn a_setting_about_connections_does_not_close_open_folders() {
    let open = |setting: Rules<'_>, user: Rules<'_>| {
        open_folders(&scene(setting, &[], user).policy, "filesystem").len()
    };
    let docs = ("docs", within(&["read-path"], "/docs"), "allow");
    let setting = ("network", json!({ "roles": ["fetch-url"], "tool": ["network/connect"] }), "deny");
    assert_eq!(open(&[setting], from_ref(&docs)), 1);
    assert_eq!(open(&[all("deny")], &[docs]), 0);
}

#[test]
fn a_denial_names_the_rule_only_if_the_rule_closes_the_path() {
    let verdict_text = |roles: &[&str], tool: &str, arguments: Value| {
        let mut scene = scene(&[], &[("inner", within(roles, "/keys/x"), "deny")], &[all("allow")]);
        scene.protected = ProtectedPaths::from_iter([path("/keys")]).with_managed(&scene.policy);
        scene.verdict_text("filesystem", tool, &arguments)
    };
    let built_in = "deny structural-protected-path";
    assert_eq!(verdict_text(&FILES, "read", json!({ "path": "/keys" })), built_in);
    assert_eq!(verdict_text(&FILES, "read", json!({ "path": "/keys/y" })), built_in);
    assert_eq!(verdict_text(&FILES, "delete", json!({ "path": "/keys" })), built_in);
    assert_eq!(verdict_text(&FILES, "read", json!({ "path": "/keys/x/a" })), "deny managed:inner");
    let written = ["write-path", "delete-path"];
    assert_eq!(verdict_text(&written, "read", json!({ "path": "/keys/x" })), built_in);
    assert_eq!(
        verdict_text(&written, "write", json!({ "path": "/keys/x", "content": "c" })),
        "deny managed:inner"
    );
    let kept = scene(&[], &[("keys", within(&written, "/keys"), "deny")], &[all("allow")]).policy;
    let kept = ProtectedPaths::from_iter([path("/keys")]).with_managed(&kept);
    assert_eq!(kept.denying_rule(&path("/keys"), true), None);
}
