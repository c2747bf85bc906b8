//! Tests requests that are judged like tool calls.

use crate::scene::{Scene, grant};
use ironcurtain_policy::{Access, AllowedBy, GrantKind, StepBasis, ToolGrant, ToolScope, ToolUse, Verdict};
use serde_json::{Value, json};

fn ask() -> (&'static str, Value, &'static str) {
    ("ask", json!({}), "escalate")
}

fn verdict_text(scene: &Scene, method: &str, arguments: &Value) -> String {
    let verdict = scene.judge("notes", method, arguments);
    format!("{:?} {}", verdict.decision(), verdict.rule())
}

#[test]
fn request_is_allowed_if_its_server_reaches_only_grants() {
    let scene = Scene { confined: true, ..Scene::new(&[ask()]) };
    let (uri, prompt) = (json!({ "uri": "notes://1" }), json!({ "name": "greet" }));
    for (method, arguments) in
        [("resources/read", &uri), ("resources/subscribe", &uri), ("prompts/get", &prompt)]
    {
        assert_eq!(verdict_text(&scene, method, arguments), "Allow structural-confined", "{method}");
        assert_eq!(verdict_text(&Scene::new(&[ask()]), method, arguments), "Escalate ask", "{method}");
        assert_eq!(verdict_text(&Scene::new(&[]), method, arguments), "Deny default-deny", "{method}");
    }
    let call = scene.call("notes", "prompts/get", &prompt).unwrap();
    assert_eq!(scene.explain(&call).steps[0].basis, StepBasis::Confined);
    let Verdict::Allow(permit) = scene.judge_call(&call) else { panic!() };
    assert_eq!(permit.allowed_by(), AllowedBy::Confined);
}

#[test]
fn rule_that_names_or_denies_a_request_takes_precedence() {
    let confined = |rules: &[(&str, Value, &str)]| Scene { confined: true, ..Scene::new(rules) };
    let prompt = json!({ "name": "greet" });
    let named = ("named", json!({ "tool": ["prompts/get"] }), "escalate");
    assert_eq!(verdict_text(&confined(&[named, ask()]), "prompts/get", &prompt), "Escalate named");
    let no = ("no", json!({ "server": ["notes"] }), "deny");
    assert_eq!(verdict_text(&confined(&[no, ask()]), "prompts/get", &prompt), "Deny no");
}

#[test]
fn file_resource_is_judged_as_path_regardless_of_reach() {
    let mut scene = Scene { confined: true, ..Scene::new(&[ask()]) };
    let file = json!({ "path": "/docs/a" });
    assert_eq!(verdict_text(&scene, "resources/read", &file), "Escalate ask");
    scene.grants = vec![grant("g", "/docs", GrantKind::Tree, &[Access::Read])];
    assert_eq!(verdict_text(&scene, "resources/read", &file), "Allow grant");
    let odd = json!({ "path": "/docs/a%20b" });
    assert_eq!(verdict_text(&scene, "resources/read", &odd), "Deny structural-invalid-argument");
    let spelled = json!({ "uri": "file:///docs/a" });
    assert_eq!(verdict_text(&scene, "resources/read", &spelled), "Deny structural-invalid-argument");
}

#[test]
fn a_grant_covers_the_resource_that_it_names() {
    let mut scene = Scene::new(&[ask()]);
    let call = scene.call("notes", "resources/read", &json!({ "uri": "notes://1" })).unwrap();
    let used = ToolUse::from_call(&call).unwrap();
    scene.tools = vec![ToolGrant { id: "g".to_owned(), created_ms: 1000, scope: ToolScope::Use(used) }];
    assert_eq!(verdict_text(&scene, "resources/read", &json!({ "uri": "notes://1" })), "Allow grant");
    assert_eq!(verdict_text(&scene, "resources/read", &json!({ "uri": "notes://2" })), "Escalate ask");
    assert_eq!(verdict_text(&scene, "resources/subscribe", &json!({ "uri": "notes://1" })), "Escalate ask");
}
