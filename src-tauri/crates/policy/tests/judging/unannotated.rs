//! Tests unannotated tools on a server whose entry requires approval for them.

use crate::scene::{Scene, fields};
use ironcurtain_policy::{
    ApprovalSubject, Fact, ResolvedCall, ServerReach, StepBasis, ToolGrant, ToolScope, ToolUse, Unannotated,
    Verdict,
};
use serde_json::{Value, json};

const ASKED: &str = "escalate structural-unannotated";

/// Creates a call to an unannotated tool on the server `other`.
fn call(scene: &Scene, tool: &str, arguments: &Value) -> ResolvedCall {
    let arguments = fields(arguments);
    let plan = scene.annotations.plan_or_ask("other", tool, &arguments, Unannotated::Ask).unwrap();
    assert_eq!(plan.values(), []);
    plan.resolve([]).unwrap()
}

fn verdict_text(rules: &[(&str, Value, &str)], reach: ServerReach) -> String {
    let scene = Scene { reach, ..Scene::new(rules) };
    scene.verdict_text_of(&call(&scene, "zap", &json!({ "path": "/a/b", "url": "https://a.org" })))
}

fn ask() -> (&'static str, Value, &'static str) {
    ("ask", json!({}), "escalate")
}

#[test]
fn unannotated_tool_is_refused_unless_the_entry_says_to_ask() {
    let scene = Scene::new(&[ask()]);
    let arguments = fields(&json!({ "path": "/a" }));
    let planned = |tool: &str, unannotated| {
        scene.annotations.plan_or_ask("other", tool, &arguments, unannotated).map(|plan| plan.values().len())
    };
    let refused = planned("zap", Unannotated::Deny).unwrap_err();
    assert_eq!(&*refused.rule, "structural-unknown-tool");
    assert_eq!(planned("zap", Unannotated::Ask), Ok(0));
    assert_eq!(planned("read", Unannotated::Ask), Ok(1));
    let refused = planned("mail", Unannotated::Ask).unwrap_err();
    assert_eq!(&*refused.reason, "the tool has no argument `path`");
}

#[test]
fn unannotated_call_asks_as_a_whole_and_approval_is_for_this_call() {
    let mut scene = Scene::new(&[ask()]);
    let call = call(&scene, "zap", &json!({ "path": "/a" }));
    let Verdict::Escalate(escalation) = scene.judge_call(&call) else { panic!("not asked") };
    let reason = "IronCurtain does not know what this tool does";
    assert_eq!(&*escalation.by.reason, reason);
    let [asked] = &*escalation.values else { panic!("{:?}", escalation.values) };
    assert_eq!(asked.subject, ApprovalSubject::Call);
    assert_eq!(scene.explain(&call).steps[0].basis, StepBasis::Unannotated);
    scene.approved = escalation.values;
    assert_eq!(scene.verdict_text_of(&call), "allow structural-unannotated");
}

#[test]
fn only_a_rule_for_calls_without_reach_allows_an_unannotated_tool() {
    let allow = |name, condition| (name, condition, "allow");
    let shut = || allow("shut", json!({ "reaches": "nothing" }));
    for rules in [
        vec![allow("all", json!({})), ask()],
        vec![allow("tool", json!({ "server": ["other"], "tool": ["zap"] })), ask()],
        vec![allow("paths", json!({ "paths": { "roles": ["read-path"], "within": "/" } })), ask()],
        vec![ask(), shut()],
        // A rule that requires approval for certain roles might cover the call, so it also applies.
        vec![("some", json!({ "roles": ["read-path"] }), "escalate"), shut()],
    ] {
        assert_eq!(verdict_text(&rules, ServerReach::Nothing), ASKED, "{rules:?}");
    }
    let rules = [shut(), ask()];
    assert_eq!(verdict_text(&rules, ServerReach::Nothing), "allow shut");
    assert_eq!(verdict_text(&rules, ServerReach::Something), ASKED);
    assert_eq!(verdict_text(&rules, ServerReach::Unknown), ASKED);
    // A call is denied if no rule requires approval for it.
    assert_eq!(verdict_text(&[allow("all", json!({}))], ServerReach::Nothing), "deny default-deny");
}

#[test]
fn deny_rule_about_arguments_denies_an_unannotated_tool() {
    for condition in [
        json!({ "tool": ["zap"] }),
        json!({ "roles": ["delete-path"] }),
        json!({ "paths": { "roles": ["read-path"], "within": "/secret" } }),
        json!({ "domains": { "roles": ["fetch-url"], "allowed": ["evil.example"] } }),
    ] {
        let no = || ("no", condition.clone(), "deny");
        assert_eq!(verdict_text(&[no(), ask()], ServerReach::Nothing), "deny no", "{condition}");
        let some = ("some", json!({ "roles": ["read-path"] }), "escalate");
        assert_eq!(verdict_text(&[some, no(), ask()], ServerReach::Nothing), "deny no", "{condition}");
    }
    let elsewhere = ("no", json!({ "server": ["another"] }), "deny");
    assert_eq!(verdict_text(&[elsewhere, ask()], ServerReach::Something), ASKED);
}

#[test]
fn grant_for_unannotated_tool_covers_only_these_arguments_and_no_annotated_tool() {
    let mut scene = Scene::new(&[ask()]);
    let given = json!({ "b": { "y": 1, "x": [2] }, "a": null });
    let tool = ToolUse::from_call(&call(&scene, "zap", &given)).unwrap();
    assert!(tool.is_exact());
    assert_eq!(tool.to_string(), r#"zap with just {"a":null,"b":{"x":[2],"y":1}}"#);
    scene.tools = vec![ToolGrant { id: "g".to_owned(), created_ms: 1000, scope: ToolScope::Use(tool) }];
    let of = |tool: &str, arguments: Value| scene.verdict_text_of(&call(&scene, tool, &arguments));
    assert_eq!(of("zap", json!({ "a": null, "b": { "x": [2], "y": 1 } })), "allow grant");
    for other in [json!({ "b": { "y": 1, "x": [2] } }), json!({ "a": null, "b": { "x": [3], "y": 1 } })] {
        assert_eq!(of("zap", other), ASKED);
    }
    assert_eq!(of("zip", given), ASKED);
    // A grant for an unannotated tool's call without arguments does not cover calls to an annotated tool.
    let tool = ToolUse::from_call(&call(&scene, "unknown", &json!({}))).unwrap();
    let known = scene.call("filesystem", "list", &json!({ "recursive": true })).unwrap();
    assert_ne!(tool.values(), ToolUse::from_call(&known).unwrap().values());
    let denied = Scene { policy: crate::scene::policy(&[("no", json!({}), "deny")]), ..scene };
    assert_eq!(
        denied.verdict_text_of(&call(&denied, "zap", &json!({ "a": null, "b": { "x": [2], "y": 1 } }))),
        "deny no"
    );
}

#[test]
fn facts_about_arguments_of_unannotated_tools_are_refused() {
    let scene = Scene::new(&[ask()]);
    let arguments = fields(&json!({ "path": "/a" }));
    let plan = scene.annotations.plan_or_ask("other", "zap", &arguments, Unannotated::Ask).unwrap();
    assert!(plan.resolve([Fact::Path(crate::scene::path("/a"))]).is_err());
}
