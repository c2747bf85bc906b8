//! Tests that invalid arguments are denied and valid ones become canonical.

use crate::scene::{Scene, fields, path};
use ironcurtain_policy::{Annotations, Fact, Role};
use serde_json::{Value, json};

#[test]
fn an_unknown_tool_is_refused_under_any_rule() {
    let scene = Scene::allowing_all();
    assert_eq!(scene.verdict_text("filesystem", "nope", &json!({})), "deny structural-unknown-tool");
    assert_eq!(scene.verdict_text("nope", "read", &json!({ "path": "/a" })), "deny structural-unknown-tool");
    assert_eq!(scene.verdict_text("filesystem", "read", &json!({ "path": "/a" })), "allow all");
}

#[test]
fn an_unknown_argument_is_refused_under_any_rule() {
    let scene = Scene::allowing_all();
    let extra = json!({ "path": "/a", "path2": "/b" });
    assert_eq!(scene.verdict_text("filesystem", "read", &extra), "deny structural-invalid-argument");
}

#[test]
fn path_must_be_a_string_or_a_flat_list_of_strings() {
    let scene = Scene::allowing_all();
    for odd in [
        json!(null),
        json!(1),
        json!(true),
        json!({}),
        json!([["/a"]]),
        json!(["/a", 1]),
        json!(["/a", null]),
    ] {
        let verdict = scene.verdict_text("filesystem", "many", &json!({ "paths": odd }));
        assert_eq!(verdict, "deny structural-invalid-argument", "{odd}");
    }
    assert_eq!(scene.verdict_text("filesystem", "many", &json!({ "paths": ["/a", "/b"] })), "allow all");
    assert_eq!(scene.verdict_text("filesystem", "many", &json!({ "paths": "/a" })), "allow all");
}

#[test]
fn an_identifier_or_an_address_that_is_not_text_is_refused() {
    let scene = Scene::allowing_all();
    assert_eq!(
        scene.verdict_text("other", "repo", &json!({ "owner": 1 })),
        "deny structural-invalid-argument"
    );
    assert_eq!(
        scene.verdict_text("other", "get", &json!({ "url": ["x", 1] })),
        "deny structural-invalid-argument"
    );
}

#[test]
fn text_that_resembles_a_path_is_unchanged_in_other_roles() {
    let mut scene = Scene::allowing_all();
    scene.protected = [path("/secret")].into_iter().collect();
    let arguments = json!({ "path": "/a", "content": "/secret/key and ~/.ssh" });
    let call = scene.call("filesystem", "write", &arguments).unwrap();
    assert_eq!(Value::Object(call.transport_arguments().clone()), arguments);
    assert_eq!(scene.verdict_text("filesystem", "write", &arguments), "allow all");
}

#[test]
fn identifiers_are_sent_in_lower_case_and_other_text_as_written() {
    let scene = Scene::allowing_all();
    let address_to_send = |tool: &str, arguments: &Value| {
        let call = scene.call("other", tool, arguments).unwrap();
        Value::Object(call.transport_arguments().clone())
    };
    let repo = json!({ "owner": "Acme", "repo": ["App", "\u{c4}pp"] });
    assert_eq!(address_to_send("repo", &repo), json!({ "owner": "acme", "repo": ["app", "\u{e4}pp"] }));
    let mail = json!({ "to": "Ann@Example.org", "body": "Dear Ann" });
    assert_eq!(address_to_send("mail", &mail), mail);
}

#[test]
fn sent_paths_are_the_resolved_ones() {
    let scene = Scene::allowing_all();
    let arguments = fields(&json!({ "paths": ["door/x", "b"] }));
    let plan = scene.annotations.plan("filesystem", "many", &arguments).unwrap();
    assert_eq!(plan.values()[1].raw, Some("b"));
    let call = plan.resolve(vec![Fact::Path(path("/out/x")), Fact::Path(path("/box/b"))]).unwrap();
    assert_eq!(Value::Object(call.transport_arguments().clone()), json!({ "paths": ["/out/x", "/box/b"] }));
}

#[test]
fn facts_that_do_not_match_the_plan_are_refused() {
    let scene = Scene::allowing_all();
    let arguments = fields(&json!({ "path": "/a" }));
    let plan = scene.annotations.plan("filesystem", "read", &arguments).unwrap();
    let right = Fact::Path(path("/a"));
    let one_too_many = vec![right.clone(), right.clone()];
    for facts in [vec![], vec![Fact::Plain], vec![Fact::Verbatim], vec![Fact::Remotes(vec![])], one_too_many]
    {
        let refused = plan.resolve(facts).unwrap_err();
        assert_eq!(&*refused.rule, "structural-invalid-argument");
    }
    assert!(plan.resolve([right]).is_ok());
}

#[test]
fn remote_facts_are_refused_for_an_address() {
    let scene = Scene::allowing_all();
    let known = || [Fact::Remotes(vec!["https://example.com/a".to_owned()])];
    let arguments = fields(&json!({ "url": "https://example.com/a" }));
    let plan = scene.annotations.plan("other", "get", &arguments).unwrap();
    assert!(!plan.values()[0].is_remote());
    assert_eq!(&*plan.resolve(known()).unwrap_err().reason, "argument `url` was not resolved");
    let arguments = fields(&json!({ "remote": "origin" }));
    let plan = scene.annotations.plan("other", "push", &arguments).unwrap();
    assert!(plan.resolve(known()).is_ok());
}

#[test]
fn a_plan_without_a_role_is_that_of_a_tool_without_its_arguments() {
    let scene = Scene::new(&[("reads", json!({ "roles": ["read-path"] }), "allow")]);
    let arguments = fields(&json!({ "path": "/a", "remote": "origin" }));
    let whole = scene.annotations.plan("other", "push", &arguments).unwrap();
    let rest = whole.without(Role::GitRemoteUrl);
    assert_eq!((rest.server(), rest.tool()), ("other", "push"));
    let [value] = rest.values() else { panic!("{:?}", rest.values()) };
    assert_eq!((value.raw, value.is_remote()), (Some("/a"), false));
    let call = rest.resolve([Fact::Path(path("/a"))]).unwrap();
    assert_eq!(call.roles(), [Role::ReadPath]);
    let severity = |call| crate::scene::severity(&scene.judge_call(&call));
    assert_eq!(severity(call), 0, "what is left is judged, and nothing else");
    let remotes = Fact::Remotes(vec!["https://example.com/a".to_owned()]);
    assert_eq!(severity(whole.resolve([Fact::Path(path("/a")), remotes]).unwrap()), 2);
}

#[test]
fn a_plan_without_its_only_role_is_judged_as_a_whole() {
    let mut scene = Scene::new(&[("remotes", json!({ "roles": ["git-remote-url"] }), "allow")]);
    let tool = json!({ "toolName": "fetch", "serverName": "s", "args": { "remote": ["git-remote-url"] } });
    let file = json!({ "servers": { "s": { "tools": [tool] } } }).to_string();
    scene.annotations = Annotations::from_json(&file, "a").unwrap();
    let arguments = fields(&json!({ "remote": "https://example.com/a" }));
    let whole = scene.annotations.plan("s", "fetch", &arguments).unwrap();
    let severity = |call| crate::scene::severity(&scene.judge_call(&call));
    assert_eq!(severity(whole.resolve([Fact::Plain]).unwrap()), 0);
    let rest = whole.without(Role::GitRemoteUrl).resolve([]).unwrap();
    assert_eq!(severity(rest), 2, "the rule is about a role that is not there");
}

#[test]
fn lists_do_not_cover_values_without_text() {
    let bodies =
        json!([{ "roles": ["email-address"], "allowed": ["ann@example.com", ""], "matchType": "emails" }]);
    let scene = Scene::new(&[("known", json!({ "tool": ["mail"], "lists": bodies }), "allow")]);
    let verdict = |to: Value| scene.verdict_text("other", "mail", &json!({ "to": to, "body": "hi" }));
    assert_eq!(verdict(json!("ann@example.com")), "allow known");
    for shapeless in [json!(1), json!({ "address": "ann@example.com" }), json!(["ann@example.com", 1])] {
        assert_eq!(verdict(shapeless.clone()), "deny default-deny", "{shapeless}");
    }
}

#[test]
fn roles_under_a_condition_are_strict_about_its_value() {
    let scene = Scene::new(&[("reads", json!({ "roles": ["read-path"] }), "allow")]);
    let verdict = |dry: Value| scene.verdict_text("other", "edit", &json!({ "path": "/a", "dry": dry }));
    assert_eq!(verdict(json!(true)), "allow reads");
    for other in [json!("true"), json!(1), json!(null), json!(false), json!([true])] {
        assert_eq!(verdict(other), "deny default-deny");
    }
}

#[test]
fn every_condition_operator_holds_as_documented() {
    let holds = |condition: Value, value: Option<Value>| {
        let mut condition = condition;
        condition["arg"] = json!("m");
        let args = json!({
            "path": { "default": ["read-path"], "when": [{ "condition": condition, "roles": ["none"] }] }, "m": ["none"]
        });
        let tool = json!({ "toolName": "t", "serverName": "s", "args": args });
        let file = json!({ "servers": { "s": { "tools": [tool] } } }).to_string();
        let annotations = Annotations::from_json(&file, "a").unwrap();
        let arguments = value.map(|value| ("m".to_owned(), value)).into_iter().collect();
        let tool = annotations.get("s", "t").unwrap();
        **tool.roles(&arguments).next().unwrap().1 == [Role::None]
    };
    let values = [
        None,
        Some(json!(null)),
        Some(json!(false)),
        Some(json!(0)),
        Some(json!(-0.0)),
        Some(json!("")),
        Some(json!(true)),
        Some(json!(1)),
        Some(json!(1.0)),
        Some(json!("1")),
        Some(json!([])),
        Some(json!({})),
    ];
    let which = |condition: Value| {
        values
            .iter()
            .map(|value| if holds(condition.clone(), value.clone()) { 'x' } else { '-' })
            .collect::<String>()
    };
    assert_eq!(which(json!({ "is": "absent" })), "xx----------");
    assert_eq!(which(json!({ "is": "present" })), "--xxxxxxxxxx");
    assert_eq!(which(json!({ "is": "falsy" })), "xxxxxx------");
    assert_eq!(which(json!({ "is": "truthy" })), "------xxxxxx");
    assert_eq!(which(json!({ "equals": 1 })), "-------xx---");
    assert_eq!(which(json!({ "equals": "1" })), "---------x--");
    assert_eq!(which(json!({ "equals": true })), "------x-----");
    assert_eq!(which(json!({ "equals": [] })), "------------");
    assert_eq!(which(json!({ "in": ["", 0, {}] })), "---xxx------");
    assert_eq!(which(json!({})), "------------");
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
    assert_eq!(
        scene.verdict_text("other", "repo", &json!({ "owner": "ACME", "repo": "App" })),
        "allow acme+repos"
    );
    assert_eq!(
        scene.verdict_text("other", "repo", &json!({ "owner": "acme2", "repo": "App" })),
        "deny default-deny"
    );
    let shouted = json!([{ "roles": ["github-owner"], "allowed": ["ACME"], "matchType": "identifiers" }]);
    let repos = json!({ "roles": ["github-repo"] });
    let scene = Scene::new(&[("acme", json!({ "lists": shouted }), "allow"), ("repos", repos, "allow")]);
    assert_eq!(
        scene.verdict_text("other", "repo", &json!({ "owner": "ACME", "repo": "App" })),
        "deny default-deny"
    );
}

#[test]
fn undeclared_argument_is_refused_even_if_annotated() {
    let tool = |declared: Value| {
        let schema = json!({ "type": "object", "properties": declared });
        let args = json!({ "path": ["read-path"], "old": ["none"] });
        let tool = json!({ "toolName": "t", "serverName": "s", "args": args, "inputSchema": schema });
        let file = json!({ "servers": { "s": { "tools": [tool] } } }).to_string();
        Annotations::from_json(&file, "a").unwrap()
    };
    let arguments = json!({ "path": "/a", "old": 1 });
    let planned = |declared: Value| tool(declared).plan("s", "t", &fields(&arguments)).map(|_| ());
    let refused = planned(json!({ "path": { "type": "string" } })).unwrap_err();
    assert_eq!(&*refused.reason, "the tool has no argument `old`");
    assert_eq!(planned(json!({ "path": { "type": "string" }, "old": { "type": "integer" } })), Ok(()));
    assert!(planned(json!({ "path": { "type": "string" }, "old": { "type": "boolean" } })).is_err());
    let fraction = json!({ "path": "/a", "old": 1.5 });
    let whole = tool(json!({ "path": {}, "old": { "type": ["integer", "null"] } }));
    assert!(whole.plan("s", "t", &fields(&fraction)).is_err());
    assert!(whole.plan("s", "t", &fields(&json!({ "path": "/a", "old": 2.0 }))).is_ok());
}

#[test]
fn schema_mismatch_has_its_location() {
    let declared = json!({
        "type": "object",
        "required": ["n"],
        "properties": { "n": { "type": "integer" }, "o": { "properties": { "p": { "type": ["array", "null"] } } } }
    });
    let args = json!({ "n": ["none"], "o": ["none"] });
    let tool = json!({ "toolName": "t", "serverName": "s", "args": args, "inputSchema": declared });
    let file = json!({ "servers": { "s": { "tools": [tool] } } }).to_string();
    let annotations = Annotations::from_json(&file, "a").unwrap();
    let refused = |arguments: Value| {
        let refused = annotations.plan("s", "t", &fields(&arguments)).map(drop);
        refused.map_err(|denial| denial.reason.to_string())
    };
    assert_eq!(refused(json!({ "n": 1 })), Ok(()));
    assert_eq!(refused(json!({ "n": 1, "o": { "p": null } })), Ok(()));
    let verdict_text = |text: &str| Err(text.to_owned());
    assert_eq!(refused(json!({ "n": "1" })), verdict_text("argument `n` must be of type integer"));
    assert_eq!(
        refused(json!({ "n": 1, "o": { "p": "x" } })),
        verdict_text("argument `o.p` must be of type array or null")
    );
    assert_eq!(refused(json!({})), verdict_text("argument `n` is missing"));
}

#[test]
fn omitted_or_empty_remote_needs_a_fact() {
    let scene = Scene::allowing_all();
    for arguments in [json!({}), json!({ "remote": "" }), json!({ "remote": null })] {
        let given = fields(&arguments);
        let plan = scene.annotations.plan("other", "push", &given).unwrap();
        let [value] = plan.values() else { panic!("{:?}", plan.values()) };
        assert_eq!((value.is_remote(), value.raw), (true, None), "{arguments}");
    }
}
