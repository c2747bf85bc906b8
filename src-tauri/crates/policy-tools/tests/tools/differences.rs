//! Tests the reported differences between two policies.

mod random;

use crate::scene::{Scene, policy};
use ironcurtain_policy::Annotations;
use ironcurtain_policy_tools::diff::{Difference, ProbeOutcome, diff};
use serde_json::{Value, json};

type Rules<'a> = &'a [(&'a str, Value, &'a str)];

fn compare(old: Rules<'_>, new: Rules<'_>) -> Difference {
    diff(&policy(old), &policy(new), &Scene::new(&[]).annotations)
}

/// Returns the changes for the tool `t` on the server `s`: the arguments and the old and new outcomes.
fn changes(tool: &Value, old: Rules<'_>, new: Rules<'_>) -> Vec<(Value, ProbeOutcome, ProbeOutcome)> {
    let mut tool = tool.clone();
    tool["toolName"] = json!("t");
    let file = json!({ "servers": { "s": { "tools": [tool] } } }).to_string();
    let annotations = Annotations::from_json(&file, "a").unwrap();
    let found = diff(&policy(old), &policy(new), &annotations);
    assert!(found.probes > 0, "{found:?}");
    found.decisions.into_iter().map(|c| (Value::Object(c.arguments), c.old.0, c.new.0)).collect()
}

fn within(role: &str, at: &str) -> Value {
    json!({ "paths": { "roles": [role], "within": at } })
}

#[test]
fn a_policy_does_not_differ_from_itself() {
    let rules = [("a", within("read-path", "/a"), "allow"), ("rest", json!({}), "escalate")];
    let same = compare(&rules, &rules);
    assert!(same.probes > 50, "{}", same.probes);
    assert_eq!(same, Difference { probes: same.probes, ..Difference::default() });
}

#[test]
fn a_wider_folder_is_looser_and_a_narrower_one_stricter() {
    let rules = |at: &str| [("a", within("read-path", at), "allow"), ("rest", json!({}), "escalate")];
    let wider = compare(&rules("/a/b"), &rules("/a"));
    assert_eq!((wider.changed, wider.added, wider.removed), (vec!["a".to_owned()], vec![], vec![]));
    let read = wider.decisions.iter().find(|change| change.tool == "read").unwrap();
    assert_eq!(read.old, (ProbeOutcome::Escalate, "rest".to_owned()));
    assert_eq!(read.new, (ProbeOutcome::Allow, "a".to_owned()));
    assert_eq!(read.arguments["path"], "/a");
    assert!(wider.decisions.iter().all(|change| change.is_looser()));
    let narrower = compare(&rules("/a"), &rules("/a/b"));
    assert!(!narrower.decisions.is_empty());
    assert!(narrower.decisions.iter().all(|change| !change.is_looser()));
}

#[test]
fn every_differing_generated_call_is_counted() {
    let then = |then| [("all", json!({ "server": ["other"], "tool": ["save"] }), then)];
    let found = compare(&then("allow"), &then("deny"));
    let [change] = found.decisions.as_slice() else { panic!("{found:?}") };
    let without = compare(&then("allow"), &then("allow"));
    assert_eq!((change.old.0, change.new.0), (ProbeOutcome::Allow, ProbeOutcome::Deny));
    assert!(1 < change.probes && change.probes < found.probes, "{} of {}", change.probes, found.probes);
    assert_eq!((without.probes, without.decisions.len()), (found.probes, 0));
    // With a single tool, all probes differ.
    let alone = |then| policy(&[("all", json!({}), then)]);
    let tool = json!({ "toolName": "t", "args": { "path": ["read-path"], "url": ["fetch-url"] } });
    let file = json!({ "servers": { "s": { "tools": [tool] } } }).to_string();
    let found = diff(&alone("allow"), &alone("deny"), &Annotations::from_json(&file, "a").unwrap());
    assert_eq!(found.decisions.iter().map(|change| change.probes).collect::<Vec<_>>(), [found.probes]);
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

#[test]
fn values_from_lists_and_hosts_are_tried_for_every_role() {
    let list = |role: &str, entry: &str, how: &str| json!({ "lists": [{ "roles": [role], "allowed": [entry], "matchType": how }] });
    let host = |role: &str, entry: &str| json!({ "domains": { "roles": [role], "allowed": [entry] } });
    for (role, conditions, value) in [
        ("read-path", list("read-path", "/etc/one", "identifiers"), "/etc/one"),
        ("fetch-url", list("fetch-url", "https://a.example/x", "identifiers"), "https://a.example/x"),
        ("fetch-url", list("fetch-url", "a.example", "domains"), "https://a.example"),
        ("git-remote-url", host("git-remote-url", "a.example/o/r"), "https://a.example/o/r"),
        ("proxy-domain", list("proxy-domain", "a.example", "identifiers"), "a.example"),
        ("proxy-domain", host("proxy-domain", "*.a.example"), "a.example"),
        ("github-owner", host("github-owner", "acme"), "acme"),
        ("github-owner", list("github-owner", "acme", "domains"), "acme"),
    ] {
        let changes =
            changes(&json!({ "args": { "x": [role] } }), &[], &[("r", conditions.clone(), "allow")]);
        let expected = [(json!({ "x": value }), ProbeOutcome::Uncovered, ProbeOutcome::Allow)];
        assert_eq!(changes, expected, "{role} {conditions}");
    }
}

#[test]
fn arguments_are_omitted_repeated_and_tried_under_conditions() {
    let path = json!({ "args": { "path": ["read-path"] } });
    let (everywhere, any) = (within("read-path", "/"), json!({ "roles": ["read-path"] }));
    let left_out = changes(&path, &[("r", everywhere.clone(), "allow")], &[("r", any.clone(), "allow")]);
    assert_eq!(left_out, [(json!({}), ProbeOutcome::Uncovered, ProbeOutcome::Allow)]);
    let required = json!({ "args": { "path": ["read-path"] }, "inputSchema": { "properties": { "path": { "type": "string" } }, "required": ["path"] } });
    assert_eq!(changes(&required, &[("r", everywhere, "allow")], &[("r", any, "allow")]), []);

    let hosts = |allowed: &[&str]| json!({ "domains": { "roles": ["fetch-url"], "allowed": allowed } });
    let apart = [("a", hosts(&["a.example"]), "allow"), ("b", hosts(&["b.example"]), "allow")];
    let together = [("a", hosts(&["a.example", "b.example"]), "allow")];
    let both = json!({ "url": ["https://a.example", "https://b.example"] });
    let merged = changes(&json!({ "args": { "url": ["fetch-url"] } }), &apart, &together);
    assert_eq!(merged, [(both, ProbeOutcome::Uncovered, ProbeOutcome::Allow)]);

    let guarded = json!({ "args": { "mode": ["none"], "path": {
        "default": ["read-path"], "when": [{ "condition": { "arg": "mode", "equals": "x" }, "roles": ["read-path", "delete-path"] }]
    } } });
    let reads = ("reads", json!({ "roles": ["read-path"] }), "allow");
    let deletes = ("deletes", within("delete-path", "/home"), "allow");
    let under = changes(&guarded, std::slice::from_ref(&reads), &[reads.clone(), deletes]);
    assert_eq!(
        under,
        [(json!({ "mode": "x", "path": "/home" }), ProbeOutcome::Uncovered, ProbeOutcome::Allow)]
    );
}

#[test]
fn a_folder_that_contains_a_denied_path_is_tried() {
    let moves = json!({ "args": { "from": ["read-path", "delete-path"] } });
    let open =
        ("open", json!({ "paths": { "roles": ["read-path", "delete-path"], "within": "/a" } }), "allow");
    let closed = ("closed", within("delete-path", "/a"), "deny");
    let stricter = changes(&moves, std::slice::from_ref(&open), &[open.clone(), closed.clone()]);
    assert_eq!(stricter, [(json!({ "from": "/" }), ProbeOutcome::Uncovered, ProbeOutcome::Deny)]);
    // A call that only reads a folder does not affect the folder's contents.
    let reads = json!({ "args": { "from": ["read-path"] } });
    assert_eq!(changes(&reads, std::slice::from_ref(&open), &[open.clone(), closed]), []);
}

#[test]
fn a_parent_folder_differs_for_a_recursive_call() {
    let open = ("open", within("write-path", "/a"), "allow");
    let closed = ("closed", within("write-path", "/a"), "deny");
    let compared = |tool| changes(&tool, std::slice::from_ref(&open), &[open.clone(), closed.clone()]);
    let args = json!({ "to": ["write-path"], "recursive": ["none"] });
    let by_argument =
        [(json!({ "to": "/", "recursive": true }), ProbeOutcome::Uncovered, ProbeOutcome::Deny)];
    assert_eq!(compared(json!({ "args": args })), by_argument);
    let always = [(json!({ "to": "/" }), ProbeOutcome::Uncovered, ProbeOutcome::Deny)];
    assert_eq!(compared(json!({ "args": { "to": ["write-path"] }, "descends": true })), always);
    assert_eq!(compared(json!({ "args": { "to": ["write-path"] } })), []);
}

#[test]
fn a_removed_denial_is_looser_even_if_no_rule_allows() {
    let url = json!({ "args": { "url": ["fetch-url"] } });
    let deny = [("no-net", json!({ "roles": ["fetch-url"] }), "deny")];
    let freed = compare(&deny, &[]);
    assert!(!freed.decisions.is_empty() && freed.decisions.iter().all(is_freed));
    assert_eq!(changes(&url, &[], &deny)[0].2, ProbeOutcome::Deny);
}

fn is_freed(change: &ironcurtain_policy_tools::diff::DecisionChange) -> bool {
    let freed = (change.old.0, change.new.0) == (ProbeOutcome::Deny, ProbeOutcome::Uncovered);
    freed && change.is_looser() && change.new.1 == "default-deny"
}

#[test]
fn a_single_changed_rule_is_found_and_incomplete_results_are_reported() {
    let folders: Vec<String> = (0..200).map(|at| format!("/srv/p{at:03}")).collect();
    let rules = |last: &'static str| -> Vec<(&str, Value, &str)> {
        let then = |at: usize| if at == 199 { last } else { "escalate" };
        let deletes =
            folders.iter().enumerate().map(|(at, it)| (it.as_str(), within("delete-path", it), then(at)));
        deletes.chain([("rw", json!({ "roles": ["read-path", "write-path"] }), "allow")]).collect()
    };
    let found = compare(&rules("escalate"), &rules("allow"));
    let moved = found.decisions.iter().find(|change| change.tool == "move").unwrap();
    assert_eq!((moved.old.0, moved.new.0), (ProbeOutcome::Escalate, ProbeOutcome::Allow));
    assert_eq!(moved.arguments["source"], "/srv/p199");
    assert!(compare(&rules("allow"), &rules("allow")).decisions.is_empty());

    let both = |at: &str| json!({ "paths": { "roles": ["read-path"], "within": at } });
    let many: Vec<_> = folders.iter().map(|it| (it.as_str(), both(it), "escalate")).collect();
    let cut = compare(&many, &many[1..]);
    assert_eq!(cut.cut_short, ["filesystem/compare"]);
    assert!(cut.decisions.iter().any(|change| change.tool == "compare"));
}

#[test]
fn a_difference_is_found_with_the_only_allowed_values_of_other_arguments() {
    let tool = json!({ "toolName": "t", "args": {
        "read": ["read-path"], "write": ["write-path"], "delete": ["delete-path"], "history": ["write-history"],
    } });
    let file = json!({ "servers": { "s": { "tools": [tool] } } }).to_string();
    let annotations = Annotations::from_json(&file, "a").unwrap();
    let folders: Vec<String> = (0..200).map(|at| format!("/srv/p{at:03}")).collect();
    let rules = |then: &'static str| {
        let reads = folders.iter().map(|it| (it.as_str(), within("read-path", it), "escalate"));
        let mut rules: Vec<_> = reads.chain([("changed", within("read-path", "/r"), then)]).collect();
        for (no, ok, role) in
            [("nw", "w", "write-path"), ("nd", "d", "delete-path"), ("nh", "h", "write-history")]
        {
            rules.push((no, within(role, "/no"), "escalate"));
            rules.push((ok, within(role, "/ok"), "allow"));
        }
        policy(&rules)
    };
    let found = diff(&rules("escalate"), &rules("allow"), &annotations);
    assert_eq!(found.cut_short, ["s/t"]);
    let [change] = found.decisions.as_slice() else { panic!("{found:?}") };
    let call = json!({ "read": "/r", "write": "/ok", "delete": "/ok", "history": "/ok" });
    assert_eq!(Value::Object(change.arguments.clone()), call);
    assert_eq!((change.old.0, change.new.0), (ProbeOutcome::Escalate, ProbeOutcome::Allow));
}

#[test]
fn untried_pairs_of_hosts_are_reported() {
    let tool = json!({ "toolName": "t", "args": { "url": ["fetch-url"] } });
    let file = json!({ "servers": { "s": { "tools": [tool] } } }).to_string();
    let annotations = Annotations::from_json(&file, "a").unwrap();
    let cut_short = |hosts: usize| {
        let hosts: Vec<String> = (0..hosts).map(|at| format!("h{at}.example")).collect();
        let rules = [("h", json!({ "domains": { "roles": ["fetch-url"], "allowed": hosts } }), "allow")];
        diff(&policy(&rules), &policy(&rules), &annotations).cut_short
    };
    // With three values that no rule mentions, 25 hosts make 375 pairs and 26 hosts make 403.
    assert_eq!((cut_short(25), cut_short(26)), (vec![], vec!["s/t".to_owned()]));
}

#[test]
fn an_unjudged_argument_is_omitted_from_reports() {
    let tool = json!({ "args": { "path": ["read-path"], "note": ["none"] } });
    let changes = changes(&tool, &[], &[("r", within("read-path", "/a"), "allow")]);
    assert_eq!(changes, [(json!({ "path": "/a" }), ProbeOutcome::Uncovered, ProbeOutcome::Allow)]);
}

#[test]
fn generated_paths_respect_the_tools_enumeration() {
    let tool = json!({
        "args": { "path": ["read-path"] },
        "inputSchema": { "properties": { "path": { "enum": ["/b/file", "/a/file"] } } },
    });
    let changes = changes(&tool, &[], &[("r", within("read-path", "/a"), "allow")]);
    assert_eq!(changes, [(json!({ "path": "/a/file" }), ProbeOutcome::Uncovered, ProbeOutcome::Allow)]);
}

#[test]
fn reported_calls_match_the_tools_schema() {
    let tool = json!({
        "args": { "paths": ["read-path"], "depth": ["none"], "options": ["none"] },
        "inputSchema": { "type": "object", "additionalProperties": false, "required": ["paths", "depth", "options"], "properties": {
            "paths": { "type": "array", "items": { "type": "string" } }, "depth": { "type": "integer" },
            "options": { "type": "object", "required": ["how"], "properties": { "how": { "enum": ["fast", "slow"] } } },
        } },
    });
    let changes = changes(&tool, &[], &[("r", within("read-path", "/a"), "allow")]);
    let call = json!({ "paths": ["/a"], "depth": 1, "options": { "how": "fast" } });
    assert_eq!(changes, [(call, ProbeOutcome::Uncovered, ProbeOutcome::Allow)]);
    let mut none = tool;
    none["inputSchema"]["required"] = json!(["paths", "unheard"]);
    none["toolName"] = json!("t");
    let file = json!({ "servers": { "s": { "tools": [none] } } }).to_string();
    let found = diff(&policy(&[]), &policy(&[]), &Annotations::from_json(&file, "a").unwrap());
    assert_eq!((found.probes, found.cut_short), (0, vec!["s/t".to_owned()]));
}

#[test]
fn loosening_for_a_server_without_network_is_reported_as_such() {
    let asks = ("rest", json!({}), "escalate");
    let free = ("shut", json!({ "reaches": "nothing" }), "allow");
    let found = compare(std::slice::from_ref(&asks), &[free, asks.clone()]);
    let mail: Vec<_> = found.decisions.iter().filter(|change| change.tool == "mail").collect();
    let [change] = mail.as_slice() else { panic!("{mail:?}") };
    assert!(change.reaches_nothing && change.is_looser());
    assert_eq!((change.old.0, change.new.0), (ProbeOutcome::Escalate, ProbeOutcome::Allow));
    assert!(
        found.decisions.iter().all(|change| change.reaches_nothing && change.arguments.get("url").is_none())
    );
    assert_eq!(compare(std::slice::from_ref(&asks), std::slice::from_ref(&asks)).decisions, []);
}
