//! What is said when one policy takes the place of another.

use crate::scene::{Scene, path, policy};
use ironcurtain_policy::Decision;
use ironcurtain_policy::diff::{Difference, diff};
use serde_json::{Value, json};

fn compare(old: &[(&str, Value, &str)], new: &[(&str, Value, &str)]) -> Difference {
    let scene = Scene::new(&[]);
    diff(&policy(old), &policy(new), &scene.annotations, &path("/home/ann"))
}

fn within(role: &str, at: &str) -> Value {
    json!({ "paths": { "roles": [role], "within": at } })
}

#[test]
fn a_policy_does_not_differ_from_itself() {
    let rules = [("a", within("read-path", "/a"), "allow"), ("rest", json!({}), "escalate")];
    let same = compare(&rules, &rules);
    assert!(same.probes > 100, "{}", same.probes);
    assert_eq!(same, Difference { probes: same.probes, ..Difference::default() });
}

#[test]
fn a_wider_folder_is_looser_and_a_narrower_one_stricter() {
    let rules = |at: &str| [("a", within("read-path", at), "allow"), ("rest", json!({}), "escalate")];
    let wider = compare(&rules("/a/b"), &rules("/a"));
    assert_eq!((wider.changed, wider.added, wider.removed), (vec!["a".to_owned()], vec![], vec![]));
    let read = wider.decisions.iter().find(|change| change.tool == "read").unwrap();
    assert_eq!(read.old, (Decision::Escalate, "rest".to_owned()));
    assert_eq!(read.new, (Decision::Allow, "a".to_owned()));
    assert_eq!(read.arguments["path"], "/a");
    assert!(wider.decisions.iter().all(|change| change.is_looser()));
    let narrower = compare(&rules("/a"), &rules("/a/b"));
    assert!(!narrower.decisions.is_empty());
    assert!(narrower.decisions.iter().all(|change| !change.is_looser()));
}

#[test]
fn order_hosts_and_conditions_make_a_difference() {
    let (deny, allow) =
        (("d", within("read-path", "/a/b"), "deny"), ("a", within("read-path", "/a"), "allow"));
    let moved = compare(&[deny.clone(), allow.clone()], &[allow, deny]);
    assert!(moved.reordered && moved.changed.is_empty());
    assert!(moved.decisions.iter().any(|change| change.is_looser() && change.tool == "read"));

    let hosts = |allowed: &str| {
        [("h", json!({ "domains": { "roles": ["fetch-url"], "allowed": [allowed] } }), "allow")]
    };
    let below = compare(&hosts("d.org"), &hosts("*.d.org"));
    let change = &below.decisions[0];
    assert_eq!((change.tool.as_str(), &change.arguments["url"]), ("get", &json!("https://below.d.org")));

    let dry = compare(&[], &[("dry", json!({ "roles": ["read-path"], "tool": ["edit"] }), "allow")]);
    assert_eq!(dry.added, ["dry"]);
    assert_eq!(dry.decisions[0].arguments["dry"], true);
}
