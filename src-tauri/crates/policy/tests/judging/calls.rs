//! One refusal each, with the allowed twin beside it.

use crate::scene::{Scene, grant, path, policy};
use ironcurtain_policy::{
    Access, Asked, DynamicLists, Fact, Gates, GrantKind, Policy, Reason, Role, Subject, Verdict,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const ALLOW_ALL: &str = "all";

fn allow_all() -> Scene {
    Scene::new(&[(ALLOW_ALL, json!({}), "allow")])
}

#[test]
fn an_unknown_tool_is_refused_under_any_rule() {
    let scene = allow_all();
    assert_eq!(scene.says("filesystem", "nope", &json!({})), "deny structural-unknown-tool");
    assert_eq!(scene.says("nope", "read", &json!({ "path": "/a" })), "deny structural-unknown-tool");
    assert_eq!(scene.says("filesystem", "read", &json!({ "path": "/a" })), "allow all");
}

#[test]
fn an_unknown_argument_is_refused_under_any_rule() {
    let scene = allow_all();
    let extra = json!({ "path": "/a", "path2": "/b" });
    assert_eq!(scene.says("filesystem", "read", &extra), "deny structural-invalid-argument");
}

#[test]
fn a_path_that_is_not_a_text_or_a_flat_list_of_texts_is_refused() {
    let scene = allow_all();
    for odd in [
        json!(null),
        json!(1),
        json!(true),
        json!({}),
        json!([["/a"]]),
        json!(["/a", 1]),
        json!(["/a", null]),
    ] {
        let said = scene.says("filesystem", "many", &json!({ "paths": odd }));
        assert_eq!(said, "deny structural-invalid-argument", "{odd}");
    }
    assert_eq!(scene.says("filesystem", "many", &json!({ "paths": ["/a", "/b"] })), "allow all");
    assert_eq!(scene.says("filesystem", "many", &json!({ "paths": "/a" })), "allow all");
}

#[test]
fn an_identifier_or_an_address_that_is_not_text_is_refused() {
    let scene = allow_all();
    assert_eq!(scene.says("other", "repo", &json!({ "owner": 1 })), "deny structural-invalid-argument");
    assert_eq!(scene.says("other", "get", &json!({ "url": ["x", 1] })), "deny structural-invalid-argument");
}

#[test]
fn text_that_looks_like_a_path_is_left_alone_where_no_path_is_meant() {
    let mut scene = allow_all();
    scene.protected = vec![path("/secret")];
    let arguments = json!({ "path": "/a", "content": "/secret/key and ~/.ssh" });
    let call = scene.call("filesystem", "write", &arguments).unwrap();
    assert_eq!(Value::Object(call.transport_arguments().clone()), arguments);
    assert_eq!(scene.says("filesystem", "write", &arguments), "allow all");
}

#[test]
fn what_is_sent_is_what_was_resolved() {
    let scene = allow_all();
    let arguments = json!({ "paths": ["door/x", "b"] });
    let plan = scene.annotations.plan("filesystem", "many", arguments.as_object().unwrap()).unwrap();
    assert_eq!(plan.values()[1].raw.as_deref(), Some("b"));
    let call = plan.with_facts(vec![Fact::Path(path("/out/x")), Fact::Path(path("/box/b"))]).unwrap();
    assert_eq!(Value::Object(call.transport_arguments().clone()), json!({ "paths": ["/out/x", "/box/b"] }));
}

#[test]
fn facts_that_are_not_those_of_the_plan_are_refused() {
    let scene = allow_all();
    let plan = |arguments: Value| {
        scene.annotations.plan("filesystem", "read", arguments.as_object().unwrap()).unwrap()
    };
    for facts in [vec![], vec![Fact::Plain], vec![Fact::Verbatim], vec![Fact::Remotes(vec![])]] {
        let refused = plan(json!({ "path": "/a" })).with_facts(facts).unwrap_err();
        assert_eq!(refused.rule, "structural-invalid-argument");
    }
    assert!(plan(json!({ "path": "/a" })).with_facts(vec![Fact::Path(path("/a"))]).is_ok());
}

#[test]
fn a_protected_path_is_refused_whatever_is_granted_or_answered() {
    let mut scene = allow_all();
    scene.protected = vec![path("/home/ann/.ssh")];
    scene.grants = vec![grant("g", "/", GrantKind::Tree, &[Access::Read, Access::Write, Access::Delete])];
    for (tool, arguments) in [
        ("read", json!({ "path": "/home/ann/.ssh/id" })),
        ("read", json!({ "path": "/home/ann/.ssh" })),
        ("many", json!({ "paths": ["/a", "/home/ann/.ssh/id"] })),
        ("move", json!({ "source": "/a", "destination": "/home/ann/.ssh/id" })),
    ] {
        assert_eq!(
            scene.says("filesystem", tool, &arguments),
            "deny structural-protected-path",
            "{arguments}"
        );
    }
    assert_eq!(scene.says("filesystem", "read", &json!({ "path": "/home/ann/.sshd" })), "allow grant");
}

#[test]
fn what_goes_down_into_a_folder_is_refused_above_a_protected_path() {
    let mut scene = allow_all();
    scene.protected = vec![path("/home/ann/.ssh")];
    for (tool, arguments) in [
        ("search", json!({ "path": "/home/ann", "pattern": "id" })),
        ("search", json!({ "path": "/", "pattern": "id" })),
        ("delete", json!({ "path": "/home" })),
        ("move", json!({ "source": "/home/ann", "destination": "/a" })),
    ] {
        assert_eq!(
            scene.says("filesystem", tool, &arguments),
            "deny structural-protected-path",
            "{arguments}"
        );
    }
    assert_eq!(scene.says("filesystem", "read", &json!({ "path": "/home/ann" })), "allow all");
    assert_eq!(
        scene.says("filesystem", "search", &json!({ "path": "/home/bob", "pattern": "id" })),
        "allow all"
    );
}

#[test]
fn a_sandbox_in_a_protected_folder_is_open_and_its_neighbours_are_not() {
    let mut scene = Scene::new(&[]);
    scene.sandbox = Some(path("/state/sessions/1/sandbox"));
    scene.protected = vec![path("/state"), path("/state/sessions/1/sandbox/.keys")];
    let read = |at: &str| scene.says("filesystem", "read", &json!({ "path": at }));
    assert_eq!(read("/state/sessions/1/sandbox/a"), "allow structural-sandbox-allow");
    assert_eq!(read("/state/sessions/1/sandbox/.keys/k"), "deny structural-protected-path");
    assert_eq!(read("/state/sessions/1/session.log"), "deny structural-protected-path");
    assert_eq!(read("/state/sessions/2/sandbox/a"), "deny structural-protected-path");
    assert_eq!(read("/state/sessions/1/sandbox-twin"), "deny structural-protected-path");
}

#[test]
fn asking_for_the_open_folders_is_allowed_on_the_filesystem_server_alone() {
    let scene = Scene::new(&[]);
    let ask = |server: &str| scene.says(server, "list_allowed_directories", &json!({}));
    assert_eq!(ask("filesystem"), "allow structural-introspection-allow");
    assert_eq!(ask("other"), "deny default-deny");
    let plan = |arguments: Value| {
        scene.annotations.plan_recorded(
            "filesystem",
            "list_allowed_directories",
            arguments.as_object().unwrap(),
        )
    };
    let with_more = plan(json!({ "x": 1 })).unwrap().with_facts(vec![]).unwrap();
    assert_eq!(crate::scene::severity(&scene.judge_call(&with_more)), 2);
}

#[test]
fn the_sandbox_settles_only_roles_that_are_wholly_in_it_and_only_on_its_servers() {
    let mut scene = Scene::new(&[]);
    let said = |scene: &Scene, tool: &str, arguments: Value| scene.says("filesystem", tool, &arguments);
    assert_eq!(said(&scene, "read", json!({ "path": "/box/a" })), "allow structural-sandbox-allow");
    assert_eq!(said(&scene, "read", json!({ "path": "/boxes/a" })), "deny default-deny");
    assert_eq!(said(&scene, "many", json!({ "paths": ["/box/a", "/b"] })), "deny default-deny");
    assert_eq!(said(&scene, "move", json!({ "source": "/box/a", "destination": "/b" })), "deny default-deny");
    assert_eq!(scene.says("other", "read", &json!({ "path": "/box/a" })), "deny default-deny");
    scene.grants = vec![grant("g", "/b", GrantKind::File, &[Access::Read])];
    let mixed = said(&scene, "many", json!({ "paths": ["/box/a", "/b"] }));
    assert_eq!(mixed, "allow structural-sandbox-allow+grant");
}

#[test]
fn a_path_in_the_sandbox_is_judged_like_the_others_it_comes_with() {
    let scene = Scene::new(&[("b", json!({ "paths": { "roles": ["read-path"], "within": "/b" } }), "allow")]);
    let said = |paths: Value| scene.says("filesystem", "many", &json!({ "paths": paths }));
    assert_eq!(said(json!(["/box/a", "/b/x"])), "deny default-deny");
    assert_eq!(said(json!(["/box/a"])), "allow structural-sandbox-allow");
    assert_eq!(said(json!(["/b/x"])), "allow b");
}

#[test]
fn a_grant_covers_its_access_and_its_reach_and_nothing_else() {
    let mut scene = Scene::new(&[("ask", json!({}), "escalate")]);
    scene.grants = vec![
        grant("file", "/f", GrantKind::File, &[Access::Read]),
        grant("tree", "/t", GrantKind::Tree, &[Access::Read, Access::Write]),
    ];
    let said = |tool: &str, at: &str| scene.says("filesystem", tool, &json!({ "path": at }));
    assert_eq!(said("read", "/f"), "allow grant");
    assert_eq!(said("read", "/f/below"), "escalate ask");
    assert_eq!(said("write", "/f"), "escalate ask");
    assert_eq!(said("read", "/t/a/b"), "allow grant");
    assert_eq!(said("write", "/t/a"), "allow grant");
    assert_eq!(said("delete", "/t/a"), "escalate ask");
    assert_eq!(said("read", "/tt"), "escalate ask");
    let Verdict::Allow(permit) = scene.judge("filesystem", "read", &json!({ "path": "/t/a" })) else {
        panic!()
    };
    assert_eq!(permit.grants(), ["tree"]);
}

#[test]
fn a_deny_rule_holds_against_a_grant_and_against_an_answer() {
    let rules = [
        ("never", json!({ "paths": { "roles": ["read-path"], "within": "/t/secret" } }), "deny"),
        ("ask", json!({}), "escalate"),
    ];
    let mut scene = Scene::new(&rules);
    scene.grants = vec![grant("tree", "/t", GrantKind::Tree, &[Access::Read])];
    scene.approved = vec![asked(Role::ReadPath, "path", Subject::Path(path("/t/secret/k")))];
    assert_eq!(scene.says("filesystem", "read", &json!({ "path": "/t/secret/k" })), "deny never");
    assert_eq!(scene.says("filesystem", "read", &json!({ "path": "/t/open" })), "allow grant");
}

fn asked(role: Role, argument: &str, subject: Subject) -> Asked {
    let text = String::new;
    Asked { role: Some(role), argument: argument.to_owned(), subject, rule: text(), reason: text() }
}

#[test]
fn an_answer_lets_exactly_what_was_asked_through() {
    let mut scene = Scene::new(&[("ask", json!({}), "escalate")]);
    let arguments = json!({ "source": "/a", "destination": "/b" });
    let Verdict::Escalate(escalation) = scene.judge("filesystem", "move", &arguments) else { panic!() };
    let values: Vec<_> = escalation
        .values
        .iter()
        .map(|asked| (asked.role.unwrap(), asked.argument.as_str(), asked.subject.to_string()))
        .collect();
    assert_eq!(
        values,
        [
            (Role::ReadPath, "source", "/a".to_owned()),
            (Role::DeletePath, "source", "/a".to_owned()),
            (Role::WritePath, "destination", "/b".to_owned()),
        ]
    );
    scene.approved = escalation.values;
    assert_eq!(scene.says("filesystem", "move", &arguments), "allow ask");
    let swapped = json!({ "source": "/c", "destination": "/b" });
    assert_eq!(scene.says("filesystem", "move", &swapped), "escalate ask");
    scene.approved.pop();
    assert_eq!(scene.says("filesystem", "move", &arguments), "escalate ask");
}

#[test]
fn a_tool_without_resources_is_asked_about_as_a_whole() {
    let mut scene = Scene::new(&[("ask", json!({ "tool": ["mail"] }), "escalate")]);
    let arguments = json!({ "to": "bob@example.com", "body": "hi" });
    let Verdict::Escalate(escalation) = scene.judge("other", "mail", &arguments) else { panic!() };
    assert_eq!(escalation.values.len(), 1);
    assert_eq!((escalation.values[0].role, &escalation.values[0].subject), (None, &Subject::Call));
    scene.approved = escalation.values;
    assert_eq!(scene.says("other", "mail", &arguments), "allow ask");
}

#[test]
fn a_tool_without_resources_is_covered_by_rules_whose_conditions_it_meets() {
    let said = |conditions: Value| {
        let scene = Scene::new(&[("r", conditions, "allow")]);
        scene.says("other", "mail", &json!({ "to": "bob@example.com", "body": "hi" }))
    };
    assert_eq!(said(json!({ "roles": ["read-path", "email-body"] })), "allow r");
    assert_eq!(said(json!({ "roles": ["read-path"] })), "deny default-deny");
    assert_eq!(said(json!({ "paths": { "roles": ["read-path"], "within": "/" } })), "deny default-deny");
    assert_eq!(said(json!({ "domains": { "roles": ["fetch-url"], "allowed": ["*"] } })), "deny default-deny");
    assert_eq!(said(json!({ "lists": [] })), "allow r");
}

#[test]
fn a_rule_with_no_lists_in_it_speaks_about_every_role() {
    let scene = Scene::new(&[("r", json!({ "lists": [] }), "allow")]);
    assert_eq!(scene.says("filesystem", "read", &json!({ "path": "/a" })), "allow r");
}

#[test]
fn a_yes_is_for_one_argument() {
    let mut scene = Scene::new(&[("ask", json!({}), "escalate")]);
    scene.approved = vec![asked(Role::ReadPath, "left", Subject::Path(path("/a")))];
    let said = |arguments: Value| scene.says("filesystem", "compare", &arguments);
    assert_eq!(said(json!({ "left": "/a" })), "allow ask");
    assert_eq!(said(json!({ "left": "/a", "right": "/a" })), "escalate ask");
}

#[test]
fn what_a_gate_and_a_rule_ask_about_is_asked_once() {
    let mut scene = Scene::new(&[("ask", json!({}), "escalate")]);
    scene.gates = Gates::new(&BTreeMap::from([("other".to_owned(), vec![])]));
    let Verdict::Escalate(escalation) = scene.judge("other", "get", &json!({ "url": "https://a.org/" }))
    else {
        panic!()
    };
    let rules: Vec<&str> = escalation.values.iter().map(|asked| asked.rule.as_str()).collect();
    assert_eq!(rules, ["structural-domain-escalate"]);
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
    let said = |paths: Value| scene.says("filesystem", "many", &json!({ "paths": paths }));
    assert_eq!(said(json!(["/a/x", "/a/y"])), "allow a");
    assert_eq!(said(json!(["/a/x", "/e/y"])), "escalate e");
    assert_eq!(said(json!(["/e/x", "/d/y"])), "deny d");
    assert_eq!(said(json!(["/a/x", "/z"])), "deny default-deny");
    assert_eq!(said(json!(["/a/late/x"])), "allow a");
}

#[test]
fn a_rule_speaks_only_about_the_roles_of_its_conditions() {
    let scene = Scene::new(&[
        ("reads", json!({ "roles": ["read-path"] }), "allow"),
        ("writes", json!({ "paths": { "roles": ["write-path"], "within": "/w" } }), "allow"),
    ]);
    assert_eq!(scene.says("filesystem", "read", &json!({ "path": "/a" })), "allow reads");
    assert_eq!(scene.says("filesystem", "write", &json!({ "path": "/w/a" })), "allow writes");
    assert_eq!(scene.says("filesystem", "write", &json!({ "path": "/a" })), "deny default-deny");
    let moved = json!({ "source": "/w/a", "destination": "/w/b" });
    assert_eq!(scene.says("filesystem", "move", &moved), "deny default-deny");
}

#[test]
fn within_the_root_covers_every_path_and_no_absent_one() {
    let root = json!({ "paths": { "roles": ["read-path"], "within": "/" } });
    let scene = Scene::new(&[("root", root, "allow")]);
    assert_eq!(scene.says("filesystem", "read", &json!({ "path": "/any/where" })), "allow root");
    assert_eq!(scene.says("filesystem", "read", &json!({ "path": "/" })), "allow root");
    assert_eq!(scene.says("filesystem", "read", &json!({})), "deny default-deny");
}

#[test]
fn roles_under_a_condition_are_strict_about_its_value() {
    let scene = Scene::new(&[("reads", json!({ "roles": ["read-path"] }), "allow")]);
    let said = |dry: Value| scene.says("other", "edit", &json!({ "path": "/a", "dry": dry }));
    assert_eq!(said(json!(true)), "allow reads");
    for other in [json!("true"), json!(1), json!(null), json!(false), json!([true])] {
        assert_eq!(said(other), "deny default-deny");
    }
}

#[test]
fn an_address_outside_the_gate_is_asked_about_and_only_a_deny_rule_is_stronger() {
    let gates = Gates::new(&BTreeMap::from([("other".to_owned(), vec!["ok.org".to_owned()])]));
    let evil = json!({ "url": "https://evil.net/x" });
    let with = |rules: &[(&str, Value, &str)]| {
        let mut scene = Scene::new(rules);
        scene.gates = gates.clone();
        scene
    };
    let open = with(&[("all", json!({}), "allow")]);
    assert_eq!(open.says("other", "get", &evil), "escalate structural-domain-escalate");
    assert_eq!(open.says("other", "get", &json!({ "url": "https://ok.org/x" })), "allow all");
    assert_eq!(
        open.says("other", "get", &json!({ "url": "not a url" })),
        "escalate structural-domain-escalate"
    );
    let shut = with(&[("no", json!({ "roles": ["fetch-url"] }), "deny")]);
    assert_eq!(shut.says("other", "get", &evil), "deny no");
    let save = json!({ "url": "https://evil.net/x", "path": "/a" });
    assert_eq!(
        with(&[("no", json!({ "roles": ["write-path"] }), "deny")]).says("other", "save", &save),
        "deny no"
    );
    let mut uncovered = with(&[]);
    assert_eq!(uncovered.says("other", "get", &evil), "escalate structural-domain-escalate");
    let Verdict::Escalate(escalation) = uncovered.judge("other", "get", &evil) else { panic!() };
    uncovered.approved = escalation.values;
    assert_eq!(uncovered.says("other", "get", &evil), "deny default-deny");
}

#[test]
fn every_address_of_a_remote_must_be_covered() {
    let scene = Scene::new(&[
        ("reads", json!({ "roles": ["read-path"] }), "allow"),
        ("hub", json!({ "domains": { "roles": ["git-remote-url"], "allowed": ["github.com"] } }), "allow"),
    ]);
    let said = |urls: &[&str]| {
        let arguments = json!({ "path": "/r", "remote": "origin" });
        let plan = scene.annotations.plan("other", "push", arguments.as_object().unwrap()).unwrap();
        let urls = urls.iter().map(|url| (*url).to_owned()).collect();
        let call = plan.with_facts(vec![Fact::Path(path("/r")), Fact::Remotes(urls)]).unwrap();
        assert_eq!(call.transport_arguments()["remote"], "origin");
        crate::scene::severity(&scene.judge_call(&call))
    };
    assert_eq!(said(&["https://github.com/a/b.git"]), 0);
    assert_eq!(said(&["https://github.com/a/b.git", "https://evil.net/a"]), 2);
    assert_eq!(said(&[]), 2);
    let web = json!({ "domains": { "roles": ["fetch-url"], "allowed": ["*"] } });
    let scene = Scene::new(&[("web", web, "allow"), ("reads", json!({ "roles": ["read-path"] }), "allow")]);
    let push = json!({ "path": "/r", "remote": "https://github.com/a/b" });
    assert_eq!(scene.says("other", "push", &push), "deny default-deny");
}

#[test]
fn a_remote_that_git_does_not_know_does_not_slip_past_the_gate() {
    let mut scene = Scene::new(&[("all", json!({}), "allow")]);
    scene.gates = Gates::new(&BTreeMap::from([("other".to_owned(), vec!["*".to_owned()])]));
    let said = |remote: Option<&str>| {
        let arguments = json!({ "path": "/r", "remote": remote });
        let plan = scene.annotations.plan("other", "push", arguments.as_object().unwrap()).unwrap();
        let call = plan.with_facts(vec![Fact::Path(path("/r")), Fact::Remotes(vec![])]).unwrap();
        crate::scene::severity(&scene.judge_call(&call))
    };
    assert_eq!(said(Some("nowhere")), 1);
    assert_eq!(said(None), 0);
}

#[test]
fn a_host_that_is_opened_is_compared_like_any_host() {
    let evil = json!({ "domains": { "roles": ["proxy-domain"], "allowed": ["*.evil.net"] } });
    let scene = Scene::new(&[("evil", evil, "deny"), ("all", json!({}), "allow")]);
    assert_eq!(scene.says("other", "open", &json!({ "host": "A.Evil.net" })), "deny evil");
    assert_eq!(scene.says("other", "open", &json!({ "host": "ok.org" })), "allow all");
}

#[test]
fn a_list_must_cover_every_value_in_the_form_it_has() {
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
    scene.policy = crate::scene::load(&file, &lists);
    let said = |to: Value| scene.says("other", "mail", &json!({ "to": to, "body": "x" }));
    assert_eq!(said(json!("A@X.org")), "allow friends");
    assert_eq!(said(json!(["a@x.org", "c@x.org"])), "allow friends");
    for other in [
        json!("b@x.org"),
        json!(["a@x.org", "z@x.org"]),
        json!(["a@x.org", { "email": "z@x.org" }]),
        json!([]),
    ] {
        assert_eq!(said(other.clone()), "deny default-deny", "{other}");
    }
    assert_eq!(scene.says("other", "mail", &json!({ "body": "x" })), "deny default-deny");
}

#[test]
fn an_identifier_is_sent_and_compared_in_lower_case() {
    let owners = json!([{ "roles": ["github-owner"], "allowed": ["acme"], "matchType": "identifiers" }]);
    let scene = Scene::new(&[
        ("acme", json!({ "lists": owners }), "allow"),
        ("repos", json!({ "roles": ["github-repo"] }), "allow"),
    ]);
    let call = scene.call("other", "repo", &json!({ "owner": "ACME", "repo": "App" })).unwrap();
    assert_eq!(Value::Object(call.transport_arguments().clone()), json!({ "owner": "acme", "repo": "app" }));
    assert_eq!(scene.says("other", "repo", &json!({ "owner": "ACME", "repo": "App" })), "allow acme+repos");
    assert_eq!(scene.says("other", "repo", &json!({ "owner": "acme2", "repo": "App" })), "deny default-deny");
}

#[test]
fn a_permit_tells_every_reason_once() {
    let scene = Scene::new(&[("reads", json!({ "roles": ["read-path"] }), "allow")]);
    let Verdict::Allow(permit) = scene.judge("filesystem", "many", &json!({ "paths": ["/a", "/b"] })) else {
        panic!()
    };
    assert_eq!(permit.reasons(), [Reason { rule: "reads".to_owned(), reason: "reads".to_owned() }]);
    assert_eq!(permit.grants(), [""; 0]);
}

#[test]
fn a_policy_follows_a_folder_that_moves() {
    let mut moving: Policy =
        policy(&[("w", json!({ "paths": { "roles": ["read-path"], "within": "~/in" } }), "allow")]);
    assert!(!moving.refresh(&crate::scene::spelled).unwrap());
    assert!(moving.refresh(&|_| Ok(path("/elsewhere"))).unwrap());
    assert_eq!(moving.rules()[0].within(), Some(&path("/elsewhere")));
    assert!(moving.refresh(&|_| Err("gone".to_owned())).is_err());
    assert_eq!(moving.rules()[0].within(), Some(&path("/elsewhere")));
}
