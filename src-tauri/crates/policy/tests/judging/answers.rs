//! Tests grants and the user's approvals.

use crate::scene::{Scene, grant, path};
use ironcurtain_policy::{
    Access, AllowedBy, AllowedHosts, ApprovalSubject, Decision, DeniedBy, GrantKind, Mismatch,
    PendingApproval, Role, RuleReason, StepBasis, Verdict,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

#[test]
fn grant_covers_only_its_access_and_extent() {
    let mut scene = Scene::new(&[("ask", json!({}), "escalate")]);
    scene.grants = vec![
        grant("file", "/f", GrantKind::File, &[Access::Read]),
        grant("tree", "/t", GrantKind::Tree, &[Access::Read, Access::Write]),
    ];
    let verdict = |tool: &str, at: &str| scene.verdict_text("filesystem", tool, &json!({ "path": at }));
    assert_eq!(verdict("read", "/f"), "allow grant");
    assert_eq!(verdict("read", "/f/below"), "escalate ask");
    assert_eq!(verdict("write", "/f"), "escalate ask");
    assert_eq!(verdict("read", "/t/a/b"), "allow grant");
    assert_eq!(verdict("write", "/t/a"), "allow grant");
    assert_eq!(verdict("delete", "/t/a"), "escalate ask");
    assert_eq!(verdict("read", "/tt"), "escalate ask");
    let Verdict::Allow(permit) = scene.judge("filesystem", "read", &json!({ "path": "/t/a" })) else {
        panic!()
    };
    assert_eq!(permit.grants(), ["tree"]);
}

#[test]
fn deny_rule_overrides_grants_and_answers() {
    let rules = [
        ("never", json!({ "paths": { "roles": ["read-path"], "within": "/t/secret" } }), "deny"),
        ("ask", json!({}), "escalate"),
    ];
    let mut scene = Scene::new(&rules);
    scene.grants = vec![grant("tree", "/t", GrantKind::Tree, &[Access::Read])];
    scene.approved = vec![asked(Role::ReadPath, "path", ApprovalSubject::Path(path("/t/secret/k")))];
    assert_eq!(scene.verdict_text("filesystem", "read", &json!({ "path": "/t/secret/k" })), "deny never");
    assert_eq!(scene.verdict_text("filesystem", "read", &json!({ "path": "/t/open" })), "allow grant");
}

fn asked(role: Role, argument: &str, subject: ApprovalSubject) -> PendingApproval {
    let by = RuleReason::new("", "");
    PendingApproval { role: Some(role), argument: argument.into(), subject, by }
}

#[test]
fn pending_approval_of_an_address_has_a_host() {
    let host_and_port = |role: Role, text: &str| {
        let text = Arc::<str>::from(text);
        asked(role, "a", ApprovalSubject::Text(text)).host_and_port()
    };
    let at = |host: &str, port| Some((host.to_owned(), port));
    assert_eq!(host_and_port(Role::FetchUrl, "https://A.org/x"), at("a.org", 443));
    assert_eq!(host_and_port(Role::FetchUrl, "http://a.org:8080/"), at("a.org", 8080));
    assert_eq!(host_and_port(Role::GitRemoteUrl, "git@a.org:x/y.git"), at("a.org", 22));
    assert_eq!(host_and_port(Role::GithubOwner, "https://a.org/"), None);
    assert_eq!(asked(Role::FetchUrl, "a", ApprovalSubject::Absent).host_and_port(), None);
}

#[test]
fn approval_allows_exactly_the_asked_values() {
    let mut scene = Scene::new(&[("ask", json!({}), "escalate")]);
    let arguments = json!({ "source": "/a", "destination": "/b" });
    let Verdict::Escalate(escalation) = scene.judge("filesystem", "move", &arguments) else { panic!() };
    let values: Vec<_> = escalation
        .values
        .iter()
        .map(|asked| (asked.role.unwrap(), asked.argument.as_ref(), asked.subject.to_string()))
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
    assert_eq!(scene.verdict_text("filesystem", "move", &arguments), "allow ask");
    let swapped = json!({ "source": "/c", "destination": "/b" });
    assert_eq!(scene.verdict_text("filesystem", "move", &swapped), "escalate ask");
    scene.approved.pop();
    assert_eq!(scene.verdict_text("filesystem", "move", &arguments), "escalate ask");
}

#[test]
fn a_tool_without_resources_is_asked_about_as_a_whole() {
    let mut scene = Scene::new(&[("ask", json!({ "tool": ["mail"] }), "escalate")]);
    let arguments = json!({ "to": "bob@example.com", "body": "hi" });
    let Verdict::Escalate(escalation) = scene.judge("other", "mail", &arguments) else { panic!() };
    assert_eq!(escalation.values.len(), 1);
    assert_eq!((escalation.values[0].role, &escalation.values[0].subject), (None, &ApprovalSubject::Call));
    scene.approved = escalation.values;
    assert_eq!(scene.verdict_text("other", "mail", &arguments), "allow ask");
}

#[test]
fn approval_is_for_one_argument() {
    let mut scene = Scene::new(&[("ask", json!({}), "escalate")]);
    scene.approved = vec![asked(Role::ReadPath, "left", ApprovalSubject::Path(path("/a")))];
    let verdict = |arguments: Value| scene.verdict_text("filesystem", "compare", &arguments);
    assert_eq!(verdict(json!({ "left": "/a" })), "allow ask");
    assert_eq!(verdict(json!({ "left": "/a", "right": "/a" })), "escalate ask");
}

#[test]
fn denial_lists_every_denying_rule_once() {
    let scene = Scene::new(&[
        ("no-writes", json!({ "roles": ["write-path"] }), "deny"),
        ("asks", json!({ "roles": ["delete-path"] }), "escalate"),
        ("no-reads", json!({ "paths": { "roles": ["read-path"], "within": "/a" } }), "deny"),
        ("no-copies", json!({ "paths": { "roles": ["write-path"], "within": "/b" } }), "deny"),
        ("all", json!({}), "allow"),
    ]);
    let denied = |tool: &str, arguments: Value| match scene.judge("filesystem", tool, &arguments) {
        Verdict::Deny(denial) => (
            format!("{}: {}", denial.rule, denial.reason),
            denial.others.iter().map(|other| format!("{}: {}", other.rule, other.reason)).collect::<Vec<_>>(),
        ),
        Verdict::Allow(_) | Verdict::Escalate(_) => panic!(),
    };
    let (first, others) = denied("move", json!({ "source": "/a/x", "destination": "/b/x" }));
    assert_eq!((first.as_str(), others), ("no-reads: no-reads", vec!["no-writes: no-writes".to_owned()]));
    let (first, others) = denied("many", json!({ "paths": ["/a/x", "/b", "/a/y"] }));
    assert_eq!((first.as_str(), others), ("no-reads: no-reads", Vec::new()));
}

#[test]
fn permit_lists_every_reason_once() {
    let scene = Scene::new(&[("reads", json!({ "roles": ["read-path"] }), "allow")]);
    let Verdict::Allow(permit) = scene.judge("filesystem", "many", &json!({ "paths": ["/a", "/b"] })) else {
        panic!()
    };
    assert_eq!((permit.reason(), permit.others()), (&RuleReason::new("reads", "reads"), &[][..]));
    assert_eq!(permit.grants(), [""; 0]);
}

#[test]
fn explanation_names_the_ground_of_each_value_and_why_earlier_rules_missed() {
    let within = |at: &str| json!({ "paths": { "roles": ["read-path"], "within": at } });
    let mut scene = Scene::new(&[
        ("hosts", json!({ "domains": { "roles": ["fetch-url"], "allowed": ["*"] } }), "allow"),
        ("a", within("/a"), "allow"),
        ("b", within("/b"), "escalate"),
    ]);
    scene.grants = vec![grant("g", "/g", GrantKind::Tree, &[Access::Read])];
    let call = scene.call("filesystem", "many", &json!({ "paths": ["/a/x", "/b/y", "/g/z", "/n"] })).unwrap();
    let explanation = scene.explain(&call);
    assert_eq!(explanation.verdict, scene.judge_call(&call));
    let settled: Vec<_> = explanation.steps.iter().map(|step| step.basis.clone()).collect();
    let rule = |name: &str, then| StepBasis::Rule { name: name.into(), then, reason: name.into() };
    let expected = [
        rule("a", Decision::Allow),
        rule("b", Decision::Escalate),
        StepBasis::Grant("g".to_owned()),
        StepBasis::NoRule,
    ];
    assert_eq!(settled, expected);
    let passed = |names: &[(&str, Mismatch)]| {
        names.iter().map(|(n, miss)| (Arc::<str>::from(*n), *miss)).collect::<Vec<_>>()
    };
    assert_eq!(
        explanation.steps[1].skipped_rules,
        passed(&[("hosts", Mismatch::OtherRoles), ("a", Mismatch::NotWithin)])
    );
    let call = scene.call("filesystem", "read", &json!({ "path": "/box/x" })).unwrap();
    assert_eq!(scene.explain(&call).steps[0].basis, StepBasis::SessionFolder);
}

#[test]
fn trace_of_tool_without_resources_names_rules_that_require_some() {
    let paths = json!({ "paths": { "roles": ["read-path"], "within": "/t" } });
    let scene = Scene::new(&[("paths", paths, "allow"), ("ask", json!({ "tool": ["mail"] }), "escalate")]);
    let call = scene.call("other", "mail", &json!({ "to": "bob@example.com", "body": "hi" })).unwrap();
    let explanation = scene.explain(&call);
    let [step] = explanation.steps.as_slice() else { panic!("{:?}", explanation.steps) };
    assert_eq!(step.skipped_rules, [("paths".into(), Mismatch::NoResource)]);
    let StepBasis::Rule { name, then, .. } = &step.basis else { panic!("{:?}", step.basis) };
    assert_eq!((name.as_ref(), *then), ("ask", Decision::Escalate));
}

#[test]
fn trace_includes_the_gate_and_paths_inside_and_outside_the_sandbox() {
    let mut scene = Scene::allowing_all();
    scene.allowed_hosts =
        AllowedHosts::new(&BTreeMap::from([("other".to_owned(), vec!["a.org".to_owned()])]));
    let gated = |url: &str| {
        let call = scene.call("other", "get", &json!({ "url": url })).unwrap();
        scene.explain(&call).steps[0].outside_allowed_hosts
    };
    assert_eq!([gated("https://a.org/"), gated("https://b.org/")], [false, true]);
    let call = scene.call("filesystem", "many", &json!({ "paths": ["/box/x", "/n"] })).unwrap();
    let settled: Vec<_> = scene.explain(&call).steps.into_iter().map(|step| step.basis).collect();
    let all = StepBasis::Rule { name: "all".into(), then: Decision::Allow, reason: "all".into() };
    assert_eq!(settled, [all.clone(), all]);
}

#[test]
fn question_about_an_omitted_argument_says_so() {
    let scene = Scene::new(&[("ask", json!({}), "escalate")]);
    let Verdict::Escalate(escalation) = scene.judge("other", "repo", &json!({ "owner": "acme" })) else {
        panic!()
    };
    let asked: Vec<_> = escalation.values.iter().map(|asked| (asked.role, asked.subject.clone())).collect();
    let owner = (Some(Role::GithubOwner), ApprovalSubject::Text("acme".into()));
    assert_eq!(asked, [owner, (Some(Role::GithubRepo), ApprovalSubject::Absent)]);
}

#[test]
fn default_denial_names_the_uncovered_value() {
    let scene = Scene::new(&[]);
    let reason = |server: &str, tool: &str, arguments: Value| match scene.judge(server, tool, &arguments) {
        Verdict::Deny(denial) => denial.reason.to_string(),
        other @ (Verdict::Allow(_) | Verdict::Escalate(_)) => panic!("{other:?}"),
    };
    let read = reason("filesystem", "read", json!({ "path": "/a" }));
    assert_eq!(read, "no rule covers `/a` as `read-path`");
    let repo = reason("other", "repo", json!({ "repo": "app" }));
    assert_eq!(repo, "no rule covers `(not given)` as `github-owner`");
    assert_eq!(reason("other", "mail", json!({ "to": "a@b.c" })), "no rule covers this tool");
}

#[test]
fn verdict_contains_its_ground() {
    let rules = [
        ("approved: by the rules", json!({ "tool": ["write"] }), "allow"),
        ("ask", json!({ "tool": ["read"] }), "escalate"),
        ("never", json!({ "tool": ["search"] }), "deny"),
    ];
    let mut scene = Scene::new(&rules);
    scene.grants = vec![grant("tree", "/t", GrantKind::Tree, &[Access::Read])];
    scene.approved = vec![asked(Role::ReadPath, "path", ApprovalSubject::Path(path("/a")))];
    scene.protected = [path("/p")].into_iter().collect();
    let by = |tool: &str, arguments: Value| match scene.judge("filesystem", tool, &arguments) {
        Verdict::Allow(permit) => Ok(permit.allowed_by()),
        Verdict::Deny(denial) => Err(denial.by),
        other @ Verdict::Escalate(_) => panic!("{other:?}"),
    };
    let at = |path: &str| json!({ "path": path });
    // A rule allows this call, although its reason looks like that of an approval.
    assert_eq!(by("write", json!({ "path": "/a", "content": "" })), Ok(AllowedBy::Rule));
    assert_eq!(by("read", at("/a")), Ok(AllowedBy::Answer));
    assert_eq!(by("read", at("/t/x")), Ok(AllowedBy::Grant));
    assert_eq!(by("read", at("/box/x")), Ok(AllowedBy::SessionFolder));
    assert_eq!(by("list_allowed_directories", json!({})), Ok(AllowedBy::Introspection));
    assert_eq!(by("search", json!({ "path": "/a", "pattern": "" })), Err(DeniedBy::Rule));
    assert_eq!(by("delete", at("/a")), Err(DeniedBy::NoRule));
    assert_eq!(by("read", at("/p/x")), Err(DeniedBy::ProtectedPath));
    assert_eq!(by("read", json!({ "path": "/a", "more": 1 })), Err(DeniedBy::InvalidArgument));
    assert_eq!(by("none", json!({})), Err(DeniedBy::UnknownTool));
    assert_eq!(json!(AllowedBy::SessionFolder), json!("session-folder"));
    assert_eq!(json!(DeniedBy::NoRule), json!("no-rule"));
}
