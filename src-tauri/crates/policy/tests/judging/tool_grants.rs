//! Tests which calls tool grants cover, and which similar calls they do not cover.

use crate::scene::Scene;
use ironcurtain_policy::{BoundValue, Role, ToolGrant, ToolScope, ToolUse};
use serde_json::{Value, json};

/// Creates a scene in which every call requires approval and the tool use of this call is granted.
fn granting(tool: &str, arguments: &Value) -> Scene {
    let mut scene = Scene::new(&[("ask", json!({}), "escalate")]);
    let tool = ToolUse::from_call(&scene.call("other", tool, arguments).unwrap()).unwrap();
    scene.tools = vec![ToolGrant { id: "g".to_owned(), created_ms: 1000, scope: ToolScope::Use(tool) }];
    scene
}

fn repo(owner: &str, repo: &str) -> Value {
    json!({ "owner": owner, "repo": repo })
}

#[test]
fn tool_grant_covers_bound_values_and_any_values_without_a_role() {
    let scene = granting("repo", &repo("provos", "ironcurtain"));
    assert_eq!(scene.verdict_text("other", "repo", &repo("provos", "ironcurtain")), "allow grant");
    // These names are case-insensitive.
    assert_eq!(scene.verdict_text("other", "repo", &repo("Provos", "IronCurtain")), "allow grant");
    for other in
        [repo("provos", "other"), repo("evil", "ironcurtain"), json!({ "owner": "provos" }), json!({})]
    {
        assert_eq!(scene.verdict_text("other", "repo", &other), "escalate ask", "{other}");
    }
    // A grant for one tool does not cover another tool.
    let mail = json!({ "to": "bob@example.com", "body": "hi" });
    assert_eq!(scene.verdict_text("other", "mail", &mail), "escalate ask");
}

#[test]
fn tool_use_is_bound_to_every_value_with_a_role() {
    let mail = |to: &str, body: &str| json!({ "to": to, "body": body });
    let scene = granting("mail", &mail("bob@example.com", "hi"));
    assert_eq!(scene.verdict_text("other", "mail", &mail("bob@example.com", "hi")), "allow grant");
    for other in [mail("eve@example.com", "hi"), mail("bob@example.com", "the plan"), json!({ "body": "hi" })]
    {
        assert_eq!(scene.verdict_text("other", "mail", &other), "escalate ask", "{other}");
    }
}

#[test]
fn calls_with_paths_addresses_or_hosts_have_no_tool_use() {
    let scene = Scene::new(&[("ask", json!({}), "escalate")]);
    for (server, tool, arguments) in [
        ("filesystem", "read", json!({ "path": "/a" })),
        ("other", "get", json!({ "url": "https://a.org" })),
        ("other", "open", json!({ "host": "a.org" })),
        ("other", "push", json!({ "path": "/a", "remote": "origin" })),
    ] {
        let call = scene.call(server, tool, &arguments).unwrap();
        assert_eq!(ToolUse::from_call(&call), None, "{tool}");
    }
    // A value that is not a string cannot be compared with later calls.
    let call = scene.call("other", "mail", &json!({ "to": { "name": "bob" }, "body": "hi" })).unwrap();
    assert_eq!(ToolUse::from_call(&call), None);
    // A tool grant without bound values does not cover a call that names a path.
    let list = scene.call("filesystem", "list", &json!({ "recursive": true })).unwrap();
    let tools = vec![ToolGrant {
        id: "g".to_owned(),
        created_ms: 1000,
        scope: ToolScope::Use(ToolUse::from_call(&list).unwrap()),
    }];
    let scene = Scene { tools, ..scene };
    assert_eq!(scene.verdict_text("filesystem", "list", &json!({ "recursive": true })), "allow grant");
    assert_eq!(
        scene.verdict_text("filesystem", "list", &json!({ "path": "/a", "recursive": true })),
        "escalate ask"
    );
}

#[test]
fn a_grant_of_all_tools_covers_no_path_and_no_other_request() {
    let with = |scope: ToolScope| Scene {
        tools: vec![ToolGrant { id: "g".to_owned(), created_ms: 1000, scope }],
        ..Scene::new(&[("ask", json!({}), "escalate")])
    };
    let all = with(ToolScope::All);
    assert_eq!(all.verdict_text("other", "repo", &repo("evil", "ironcurtain")), "allow grant");
    assert_eq!(all.verdict_text("filesystem", "list", &json!({ "recursive": true })), "allow grant");
    let path = json!({ "path": "/a", "recursive": true });
    assert_eq!(all.verdict_text("filesystem", "list", &path), "escalate ask");
    assert_eq!(all.verdict_text("other", "resources/read", &json!({ "uri": "notes://1" })), "escalate ask");
    let one = with(ToolScope::Tool("repo".to_owned()));
    assert_eq!(one.verdict_text("other", "repo", &repo("evil", "ironcurtain")), "allow grant");
    assert_eq!(
        one.verdict_text("other", "mail", &json!({ "to": "bob@example.com", "body": "hi" })),
        "escalate ask"
    );
    let denied = Scene { policy: crate::scene::policy(&[("no", json!({}), "deny")]), ..all };
    assert_eq!(denied.verdict_text("other", "repo", &repo("evil", "ironcurtain")), "deny no");
}

#[test]
fn a_grant_of_reading_tools_follows_the_annotation() {
    let mut scene = Scene::new(&[("ask", json!({}), "escalate")]);
    scene.tools = vec![ToolGrant { id: "g".to_owned(), created_ms: 1000, scope: ToolScope::ReadOnly }];
    assert_eq!(scene.verdict_text("other", "look", &json!({ "query": "a" })), "allow grant");
    assert_eq!(scene.verdict_text("other", "look", &json!({ "query": "a", "path": "/a" })), "escalate ask");
    assert_eq!(scene.verdict_text("other", "repo", &repo("provos", "ironcurtain")), "escalate ask");
}

#[test]
fn deny_rule_overrides_it() {
    let mut scene = granting("repo", &repo("provos", "ironcurtain"));
    let deny = [("no", json!({ "tool": ["repo"] }), "deny"), ("ask", json!({}), "escalate")];
    scene.policy = crate::scene::policy(&deny);
    assert_eq!(scene.verdict_text("other", "repo", &repo("provos", "ironcurtain")), "deny no");
    let one = json!({ "lists": [{ "roles": ["github-owner"], "allowed": ["provos"], "matchType": "identifiers" }] });
    scene.policy = crate::scene::policy(&[("one", one, "deny"), ("ask", json!({}), "escalate")]);
    assert_eq!(scene.verdict_text("other", "repo", &repo("provos", "ironcurtain")), "deny one");
    scene = Scene { tools: Vec::new(), ..granting("mail", &json!({ "to": "b@c.d", "body": "" })) };
    assert_eq!(scene.verdict_text("other", "mail", &json!({ "to": "b@c.d", "body": "" })), "escalate ask");
}

#[test]
fn an_explanation_names_the_grant() {
    for (tool, arguments) in
        [("repo", repo("a", "b")), ("mail", json!({ "to": "b@c.d", "body": "" })), ("get", json!({}))]
    {
        let scene = granting(tool, &arguments);
        let explanation = scene.explain(&scene.call("other", tool, &arguments).unwrap());
        let by_grant = ironcurtain_policy::StepBasis::Grant("g".to_owned());
        assert!(explanation.steps.iter().all(|step| step.basis == by_grant), "{tool}: {explanation:?}");
        assert_eq!(scene.verdict_text("other", tool, &arguments), "allow grant");
    }
}

#[test]
fn tool_use_is_described_by_its_bound_values() {
    let bound = |argument: &str, role, value: &str| BoundValue {
        argument: argument.to_owned(),
        role,
        value: value.to_owned(),
    };
    let values = vec![
        bound("repo", Role::GithubRepo, "ironcurtain"),
        bound("owner", Role::GithubOwner, "provos"),
        bound("branch", Role::BranchName, "main"),
    ];
    let tool = ToolUse::new("create_issue".to_owned(), values);
    assert_eq!(tool.to_string(), "create_issue in provos/ironcurtain with branch main");
    assert_eq!(ToolUse::new("now".to_owned(), Vec::new()).to_string(), "now");
}
