//! Tests managed rules combined with user rules: the stricter decision applies, and grants older than a managed rule do
//! not satisfy it.

use crate::scene::{Scene, grant, path, policy};
use ironcurtain_policy::{
    Access, AllowedHosts, GrantKind, ProtectedPaths, StepBasis, Verdict, is_suspended, open_folders,
    restriction,
};
use serde_json::{Value, json};

/// Time at which the managed rules were first seen: the creation time of [`grant`] plus one.
const ARRIVED: u64 = 1001;

fn scene(managed: &[(&str, Value, &str)], user: &[(&str, Value, &str)]) -> Scene {
    let mut scene = Scene::new(user);
    scene.policy = scene.policy.clone().with_managed(policy(managed), |_| ARRIVED);
    scene
}

fn docs(then: &'static str) -> (&'static str, Value, &'static str) {
    ("docs", json!({ "paths": { "roles": ["read-path"], "within": "/docs" } }), then)
}

fn all(then: &'static str) -> (&'static str, Value, &'static str) {
    ("all", json!({}), then)
}

fn read(scene: &Scene, path: &str) -> String {
    scene.verdict_text("filesystem", "read", &json!({ "path": path }))
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
    let StepBasis::Rule { name, .. } = &explained.steps[0].basis else { panic!("{explained:?}") };
    assert_eq!(&**name, "all");
    assert_eq!(&*explained.steps[0].skipped_rules[0].0, "managed:net");
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

#[test]
fn an_uncertain_match_in_one_layer_still_requires_approval() {
    let evil =
        |then| ("evil", json!({ "domains": { "roles": ["fetch-url"], "allowed": ["evil.example"] } }), then);
    // No pattern matches this address with certainty.
    let verdict_text = |managed: &[(&str, Value, &str)], user: &[(&str, Value, &str)]| {
        scene(managed, user).verdict_text("other", "get", &json!({ "url": "ftp://evil.example/" }))
    };
    for (managed, user, expected) in [
        (vec![evil("escalate")], vec![all("allow")], "escalate managed:evil"),
        (vec![evil("escalate")], vec![all("deny")], "deny all"),
        (vec![all("allow")], vec![evil("escalate")], "escalate evil"),
        (vec![all("deny")], vec![evil("escalate")], "deny managed:all"),
        (vec![evil("escalate")], vec![], "deny default-deny"),
        (vec![evil("escalate")], vec![evil("escalate")], "deny default-deny"),
        (vec![evil("deny")], vec![all("allow")], "deny managed:evil"),
        (vec![evil("allow")], vec![all("allow")], "allow all"),
    ] {
        assert_eq!(verdict_text(&managed, &user), expected, "{managed:?} over {user:?}");
    }
    let known = scene(&[evil("escalate")], &[all("allow")]);
    assert_eq!(known.verdict_text("other", "get", &json!({ "url": "https://good.example/" })), "allow all");
}

#[test]
fn an_uncertain_match_applies_in_the_session_folder() {
    // The list condition holds for only one of the two values.
    let listed =
        json!({ "lists": [{ "roles": ["read-path"], "allowed": ["/box/a"], "matchType": "identifiers" }] });
    let scene = scene(&[("listed", listed, "escalate")], &[all("allow")]);
    let many = |paths: Value| scene.verdict_text("filesystem", "many", &json!({ "paths": paths }));
    assert_eq!(many(json!(["/box/a", "/box/b"])), "escalate managed:listed");
    assert_eq!(many(json!(["/box/b"])), "allow structural-sandbox-allow");
}

#[test]
fn a_managed_rule_is_named_even_if_another_check_requires_approval_of_the_same_value() {
    let mut scene = scene(&[all("escalate")], &[all("allow")]);
    scene.allowed_hosts = AllowedHosts::new(&[("other".to_owned(), vec!["good.example".to_owned()])].into());
    assert_eq!(
        scene.verdict_text("other", "get", &json!({ "url": "https://evil.example/" })),
        "escalate managed:all"
    );
    let call = scene.call("other", "get", &json!({ "url": "https://evil.example/" })).unwrap();
    let Verdict::Escalate(escalation) = scene.judge_call(&call) else { panic!("expected an escalation") };
    assert!(escalation.is_managed());
    assert_eq!(escalation.values.len(), 1);
}

#[test]
fn a_managed_rule_applies_to_the_list_of_allowed_folders() {
    let list = |managed: &[(&str, Value, &str)]| {
        scene(managed, &[all("escalate")]).verdict_text("filesystem", "list_allowed_directories", &json!({}))
    };
    assert_eq!(list(&[]), "allow structural-introspection-allow");
    assert_eq!(list(&[docs("deny")]), "allow structural-introspection-allow");
    assert_eq!(list(&[all("deny")]), "deny managed:all");
    assert_eq!(list(&[all("escalate")]), "escalate managed:all");
}

#[test]
fn a_denied_folder_is_protected_like_a_secret() {
    let files = |roles: &[&str], within: &str| json!({ "paths": { "roles": roles, "within": within } });
    let all_roles = ["read-path", "write-path", "delete-path"];
    let protected = |managed: &[(&str, Value, &str)]| {
        ProtectedPaths::default().with_managed(&scene(managed, &[all("deny")]).policy)
    };
    let docs = protected(&[("docs", files(&all_roles, "/docs"), "deny")]);
    assert_eq!(docs.paths(), [path("/docs")]);
    let rule = docs.denying_rule(&path("/docs/a"), false).unwrap();
    assert_eq!((&*rule.rule, &*rule.reason), ("managed:docs", "docs"));
    assert!(docs.denying_rule(&path("/"), false).is_none());
    assert!(docs.denying_rule(&path("/"), true).is_some());
    assert_eq!(docs.exposed_by(&path("/"), false), Some(&path("/docs")));
    assert_eq!(docs.exposed_by(&path("/other"), true), None);
    // A run profile that opens a login does not open a denied folder.
    assert_eq!(docs.without_client_files(&[path("/docs")], &[]).paths(), [path("/docs")]);
    // A rule that denies only changes makes the folder read-only.
    let kept = protected(&[("docs", files(&["write-path"], "/docs"), "deny")]);
    assert!(kept.paths().is_empty() && kept.exposed_by(&path("/docs"), true).is_some());
    assert_eq!(kept.exposed_by(&path("/docs"), false), None);
    for other in [
        vec![("docs", files(&all_roles, "/docs"), "escalate")],
        vec![(
            "tool",
            json!({ "tool": ["read"], "paths": { "roles": all_roles, "within": "/docs" } }),
            "deny",
        )],
        vec![
            ("public", files(&["read-path"], "/docs/public"), "allow"),
            ("docs", files(&["read-path"], "/docs"), "deny"),
        ],
        vec![all("allow"), ("docs", files(&all_roles, "/docs"), "deny")],
        vec![all("deny")],
    ] {
        assert_eq!(protected(&other), ProtectedPaths::default(), "{other:?}");
    }
    assert_eq!(
        ProtectedPaths::default().with_managed(&policy(&[("docs", files(&all_roles, "/docs"), "deny")])),
        ProtectedPaths::default()
    );
}

#[test]
fn a_denial_of_a_protected_folder_names_the_managed_rule() {
    let within = |roles: &[&str]| json!({ "paths": { "roles": roles, "within": "/docs/secret" } });
    let verdict_text = |roles: &[&str], tool: &str, arguments: Value| {
        let mut scene = scene(&[("secret", within(roles), "deny")], &[all("allow")]);
        scene.protected = ProtectedPaths::default().with_managed(&scene.policy);
        scene.verdict_text("filesystem", tool, &arguments)
    };
    let every = ["read-path", "write-path", "delete-path"];
    assert_eq!(verdict_text(&every, "read", json!({ "path": "/docs/secret/a" })), "deny managed:secret");
    assert_eq!(
        verdict_text(&every, "move", json!({ "source": "/docs", "destination": "/b" })),
        "deny managed:secret"
    );
    assert_eq!(verdict_text(&every, "read", json!({ "path": "/docs/a" })), "allow all");
    let written = ["write-path", "delete-path"];
    let write = json!({ "path": "/docs/secret/a", "content": "x" });
    assert_eq!(verdict_text(&written, "write", write), "deny managed:secret");
    assert_eq!(verdict_text(&written, "read", json!({ "path": "/docs/secret/a" })), "allow all");
}

#[test]
fn a_restriction_is_independent_of_the_users_rules_and_grants() {
    let restricted = |managed: &[(&str, Value, &str)]| {
        let mut scene = scene(managed, &[all("allow")]);
        scene.grants = vec![grant("g", "/docs", GrantKind::Tree, &[Access::Read])];
        let call = scene.call("filesystem", "read", &json!({ "path": "/docs/a" })).unwrap();
        restriction(&scene.policy, &scene.context(), &call).map(|rule| rule.rule.to_string())
    };
    assert_eq!(restricted(&[docs("deny")]).as_deref(), Some("managed:docs"));
    assert_eq!(restricted(&[docs("escalate")]).as_deref(), Some("managed:docs"));
    assert_eq!(restricted(&[docs("allow"), all("deny")]), None);
    assert_eq!(restricted(&[]), None);
}

#[test]
fn a_rule_about_a_part_of_a_granted_folder_suspends_the_grant() {
    let within = |path: &str| json!({ "paths": { "roles": ["read-path"], "within": path } });
    let suspended = |managed: &[(&str, Value, &str)], created_ms: u64| {
        let mut granted = grant("g", "/docs", GrantKind::Tree, &[Access::Read]);
        granted.created_ms = created_ms;
        is_suspended(&scene(managed, &[all("escalate")]).policy, "filesystem", &granted)
    };
    let secret = |then| ("secret", within("/docs/secret"), then);
    assert!(suspended(&[secret("deny")], ARRIVED + 1));
    assert!(suspended(&[secret("escalate")], ARRIVED));
    assert!(!suspended(&[secret("escalate")], ARRIVED + 1) && !suspended(&[secret("allow")], ARRIVED));
    assert!(suspended(&[secret("allow"), docs("deny")], ARRIVED));
    assert!(!suspended(&[docs("allow"), secret("deny")], ARRIVED), "the first rule exempts the whole folder");
    let of_other = (
        "other",
        json!({ "server": ["other"], "paths": { "roles": ["read-path"], "within": "/docs/x" } }),
        "deny",
    );
    assert!(!suspended(&[of_other], ARRIVED));
}

#[test]
fn rules_for_two_home_directories_stay_in_order() {
    let of = |home: &str| {
        let docs = json!({ "paths": { "roles": ["read-path"], "within": format!("{home}/docs") } });
        policy(&[("docs", docs, "deny"), all("allow")])
    };
    let both = of("/home/ann").with_variants(of("/home/eve"));
    let mut scene = Scene::new(&[all("allow")]);
    scene.policy = scene.policy.clone().with_managed(both, |_| ARRIVED);
    for home in ["/home/ann", "/home/eve"] {
        assert_eq!(read(&scene, &format!("{home}/docs/a")), "deny managed:docs");
    }
    assert_eq!(read(&scene, "/home/eve/a"), "allow all");
    assert_eq!(scene.policy.rules().len(), 4);
}
