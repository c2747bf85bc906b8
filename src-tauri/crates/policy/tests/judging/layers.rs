//! Managed rules combined with user rules: the stricter decision applies, and grants older than a managed rule do not
//! satisfy it.

use crate::scene::{Scene, grant, policy};
use ironcurtain_policy::{Access, GrantKind, SettledBy, is_suspended, open_folders};
use serde_json::{Value, json};

/// Arrival time of the managed rules: the creation time of [`grant`] plus one.
const ARRIVED: u64 = 1001;

fn scene(managed: &[(&str, Value, &str)], user: &[(&str, Value, &str)]) -> Scene {
    let mut scene = Scene::new(user);
    scene.policy = scene.policy.clone().under(policy(managed), |_| ARRIVED);
    scene
}

fn docs(then: &'static str) -> (&'static str, Value, &'static str) {
    ("docs", json!({ "paths": { "roles": ["read-path"], "within": "/docs" } }), then)
}

fn all(then: &'static str) -> (&'static str, Value, &'static str) {
    ("all", json!({}), then)
}

fn read(scene: &Scene, path: &str) -> String {
    scene.says("filesystem", "read", &json!({ "path": path }))
}

#[test]
fn the_stricter_layer_decides() {
    for (managed, user, expected) in [
        ("deny", "allow", "deny managed:docs"),
        ("deny", "escalate", "deny managed:docs"),
        ("deny", "deny", "deny managed:docs"),
        ("escalate", "allow", "escalate managed:docs"),
        ("escalate", "escalate", "escalate managed:docs"),
        ("escalate", "deny", "deny all"),
        ("allow", "allow", "allow all"),
        ("allow", "escalate", "escalate all"),
        ("allow", "deny", "deny all"),
    ] {
        let scene = scene(&[docs(managed)], &[all(user)]);
        assert_eq!(read(&scene, "/docs/a"), expected, "{managed} over {user}");
        let other = read(&scene, "/other/a");
        assert_eq!(other, format!("{user} all"), "a managed rule must not decide about other values");
    }
}

#[test]
fn a_managed_rule_replaces_a_missing_rule() {
    assert_eq!(read(&scene(&[docs("allow")], &[]), "/docs/a"), "allow managed:docs");
    assert_eq!(read(&scene(&[docs("allow")], &[]), "/other/a"), "deny default-deny");
    assert_eq!(read(&scene(&[docs("escalate")], &[]), "/docs/a"), "escalate managed:docs");
}

#[test]
fn the_first_managed_rule_exempts_a_value_from_later_ones() {
    let scene = scene(&[docs("allow"), all("deny")], &[("mine", json!({}), "allow")]);
    assert_eq!(read(&scene, "/docs/a"), "allow mine");
    assert_eq!(read(&scene, "/other/a"), "deny managed:all");
}

#[test]
fn grants_satisfy_a_managed_rule_only_if_they_are_newer() {
    for (then, created_ms, expected) in [
        ("escalate", ARRIVED - 1, "escalate managed:docs"),
        ("escalate", ARRIVED, "escalate managed:docs"),
        ("escalate", ARRIVED + 1, "allow grant"),
        ("deny", ARRIVED + 1, "deny managed:docs"),
        ("allow", ARRIVED - 1, "allow grant"),
    ] {
        let mut scene = scene(&[docs(then)], &[all("escalate")]);
        let mut newest = grant("g", "/docs", GrantKind::Tree, &[Access::Read]);
        newest.created_ms = created_ms;
        // An older grant must not hide the newer one.
        let oldest = grant("old", "/docs", GrantKind::Tree, &[Access::Read]);
        scene.grants = vec![oldest, newest];
        assert_eq!(read(&scene, "/docs/a"), expected, "{then} at {created_ms}");
    }
}

#[test]
fn a_grant_satisfies_the_users_own_rule_at_any_age() {
    let mut scene = scene(&[], &[docs("escalate")]);
    scene.grants = vec![grant("g", "/docs", GrantKind::Tree, &[Access::Read])];
    assert_eq!(read(&scene, "/docs/a"), "allow grant");
}

#[test]
fn managed_rules_apply_in_the_session_folder() {
    let user = [all("escalate")];
    assert_eq!(read(&scene(&[], &user), "/box/a"), "allow structural-sandbox-allow");
    assert_eq!(read(&scene(&[all("deny")], &user), "/box/a"), "deny managed:all");
    assert_eq!(read(&scene(&[all("escalate")], &user), "/box/a"), "escalate managed:all");
    assert_eq!(read(&scene(&[all("allow")], &user), "/box/a"), "allow structural-sandbox-allow");
}

#[test]
fn explanation_names_the_layer() {
    let scene = scene(
        &[docs("allow"), ("net", json!({ "domains": { "roles": ["fetch-url"], "allowed": ["*"] } }), "deny")],
        &[all("escalate")],
    );
    let call = scene.call("filesystem", "read", &json!({ "path": "/docs/a" })).unwrap();
    let explained = scene.explain(&call);
    assert_eq!(explained.verdict.rule(), "all");
    let SettledBy::Rule { name, .. } = &explained.steps[0].settled_by else { panic!("{explained:?}") };
    assert_eq!(&**name, "all");
    assert_eq!(&*explained.steps[0].passed[0].0, "managed:net");
}

#[test]
fn a_folder_stays_mounted_only_if_both_layers_open_it() {
    let open = |managed: &[(&str, Value, &str)], user: &[(&str, Value, &str)]| {
        open_folders(&scene(managed, user).policy, "filesystem").len()
    };
    assert_eq!(open(&[], &[docs("allow")]), 1);
    assert_eq!(open(&[all("deny")], &[docs("allow")]), 0);
    assert_eq!(open(&[docs("escalate")], &[docs("allow")]), 0);
    assert_eq!(open(&[docs("allow")], &[]), 1);
    assert_eq!(open(&[docs("allow")], &[all("escalate")]), 0);
}

#[test]
fn a_grant_that_a_managed_rule_overrides_is_suspended() {
    let suspended = |managed: &[(&str, Value, &str)], path: &str, created_ms: u64| {
        let mut granted = grant("g", path, GrantKind::Tree, &[Access::Read]);
        granted.created_ms = created_ms;
        is_suspended(&scene(managed, &[all("escalate")]).policy, "filesystem", &granted)
    };
    assert!(suspended(&[docs("deny")], "/docs/a", ARRIVED + 1));
    assert!(suspended(&[docs("escalate")], "/docs", ARRIVED - 1));
    assert!(!suspended(&[docs("escalate")], "/docs", ARRIVED + 1));
    assert!(!suspended(&[docs("deny")], "/other", ARRIVED + 1));
    assert!(!suspended(&[docs("allow"), all("deny")], "/docs/a", ARRIVED - 1));
    assert!(suspended(&[docs("allow"), all("deny")], "/other", ARRIVED - 1));
    let of_tool = ("tool", json!({ "tool": ["read"] }), "deny");
    assert!(!suspended(&[of_tool], "/docs", ARRIVED - 1), "other tools may still use the path");
    assert!(!suspended(&[], "/docs", 0));
}
