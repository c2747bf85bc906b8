//! Tests properties that hold for every policy, context and call.

use crate::scene::{Scene, fields, grant, path, policy, severity};
use ironcurtain_policy::{Access, AllowedHosts, ApprovalSubject, GrantKind, PathGrant, Verdict};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use std::collections::BTreeMap;

type RuleParts = (Value, &'static str);

fn any_path() -> impl Strategy<Value = &'static str> {
    select(vec!["/box", "/box/a", "/a", "/a/b", "/a/b/c", "/ab", "/c", "/"])
}

fn url() -> impl Strategy<Value = &'static str> {
    select(vec!["https://ok.org/", "https://evil.net/", "http://127.0.0.1/", "no url"])
}

fn conditions() -> impl Strategy<Value = Value> {
    let roles =
        || subsequence(vec!["read-path", "write-path", "delete-path", "fetch-url", "github-owner"], 1..4);
    let path_roles = || subsequence(vec!["read-path", "write-path", "delete-path"], 1..=3);
    let maybe = |strategy: BoxedStrategy<Value>| prop::option::weighted(0.4, strategy);
    (
        maybe(roles().prop_map(|roles| json!(roles)).boxed()),
        maybe(subsequence(vec!["filesystem", "other"], 1..2).prop_map(|servers| json!(servers)).boxed()),
        maybe(
            subsequence(vec!["read", "write", "move", "many", "save", "get"], 1..5)
                .prop_map(|t| json!(t))
                .boxed(),
        ),
        maybe(
            (path_roles(), any_path())
                .prop_map(|(roles, at)| json!({ "roles": roles, "within": at }))
                .boxed(),
        ),
        maybe(Just(json!({ "roles": ["fetch-url"], "allowed": ["ok.org"] })).boxed()),
        maybe(
            Just(json!([{ "roles": ["github-owner"], "allowed": ["acme"], "matchType": "identifiers" }]))
                .boxed(),
        ),
    )
        .prop_map(|(roles, server, tool, paths, domains, lists)| {
            let parts = [
                ("roles", roles),
                ("server", server),
                ("tool", tool),
                ("paths", paths),
                ("domains", domains),
                ("lists", lists),
            ];
            parts.into_iter().filter_map(|(name, part)| Some((name.to_owned(), part?))).collect()
        })
}

fn rules() -> impl Strategy<Value = Vec<RuleParts>> {
    prop::collection::vec((conditions(), select(vec!["allow", "escalate", "deny"])), 0..8)
}

fn load(rules: &[RuleParts]) -> ironcurtain_policy::Policy {
    let names: Vec<String> = (0..rules.len()).map(|at| format!("r{at}")).collect();
    let rules: Vec<_> = names
        .iter()
        .zip(rules)
        .map(|(name, (conditions, then))| (name.as_ref(), conditions.clone(), *then))
        .collect();
    policy(&rules)
}

fn grants() -> impl Strategy<Value = Vec<PathGrant>> {
    let access = subsequence(vec![Access::Read, Access::Write, Access::Delete], 1..=3);
    let one = (any_path(), any::<bool>(), access).prop_map(|(at, tree, access)| {
        grant(at, at, if tree { GrantKind::Tree } else { GrantKind::File }, &access)
    });
    prop::collection::vec(one, 0..4)
}

fn call() -> impl Strategy<Value = (&'static str, &'static str, Value)> {
    prop_oneof![
        (select(vec!["read", "delete"]), any_path()).prop_map(|(tool, at)| (
            "filesystem",
            tool,
            json!({ "path": at })
        )),
        any_path().prop_map(|at| ("filesystem", "write", json!({ "path": at, "content": "x" }))),
        (any_path(), any_path()).prop_map(|(a, b)| (
            "filesystem",
            "move",
            json!({ "source": a, "destination": b })
        )),
        prop::collection::vec(any_path(), 0..4).prop_map(|all| (
            "filesystem",
            "many",
            json!({ "paths": all })
        )),
        (url(), any_path()).prop_map(|(url, at)| ("other", "save", json!({ "url": url, "path": at }))),
        url().prop_map(|url| ("other", "get", json!({ "url": url }))),
        Just(("other", "repo", json!({ "owner": "ACME" }))),
        Just(("other", "mail", json!({ "to": "a@b.c" }))),
    ]
}

prop_compose! {
    fn scene()(
        rules in rules(),
        grants in grants(),
        protected in subsequence(vec!["/a/b", "/c"], 0..=2),
        gated in any::<bool>(),
        boxed in any::<bool>(),
    ) -> (Scene, Vec<RuleParts>) {
        let mut scene = Scene::new(&[]);
        scene.policy = load(&rules);
        scene.grants = grants;
        scene.protected = protected.into_iter().map(path).collect();
        if gated {
            scene.allowed_hosts = AllowedHosts::new(&BTreeMap::from([("other".to_owned(), vec!["ok.org".to_owned()])]));
        }
        if !boxed {
            scene.sandbox = None;
        }
        (scene, rules)
    }
}

impl std::fmt::Debug for Scene {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{:?} {:?} {:?} {:?}",
            self.policy.rules(),
            self.grants,
            self.protected,
            self.sandbox
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn additional_deny_rule_never_loosens(
        (mut scene, mut rules) in scene(), (server, tool, arguments) in call(), extra in conditions(), at in 0usize..9,
    ) {
        let before = severity(&scene.judge(server, tool, &arguments));
        rules.insert(at.min(rules.len()), (extra, "deny"));
        scene.policy = load(&rules);
        prop_assert!(severity(&scene.judge(server, tool, &arguments)) >= before);
    }

    #[test]
    fn a_rule_made_stricter_never_loosens(
        (mut scene, mut rules) in scene(), (server, tool, arguments) in call(), at in any::<prop::sample::Index>(),
    ) {
        if rules.is_empty() {
            return Ok(());
        }
        let before = severity(&scene.judge(server, tool, &arguments));
        let rule = &mut rules[at.index(scene.policy.rules().len())];
        rule.1 = if rule.1 == "allow" { "escalate" } else { "deny" };
        scene.policy = load(&rules);
        prop_assert!(severity(&scene.judge(server, tool, &arguments)) >= before);
    }

    #[test]
    fn removing_a_grant_never_loosens(
        (mut scene, _) in scene(), (server, tool, arguments) in call(), at in any::<prop::sample::Index>(),
    ) {
        if scene.grants.is_empty() {
            return Ok(());
        }
        let before = severity(&scene.judge(server, tool, &arguments));
        scene.grants.remove(at.index(scene.grants.len()));
        prop_assert!(severity(&scene.judge(server, tool, &arguments)) >= before);
    }

    #[test]
    fn additional_protected_path_never_loosens(
        (mut scene, _) in scene(), (server, tool, arguments) in call(), more in any_path(),
    ) {
        let before = severity(&scene.judge(server, tool, &arguments));
        scene.protected = scene.protected.paths().iter().cloned().chain([path(more)]).collect();
        prop_assert!(severity(&scene.judge(server, tool, &arguments)) >= before);
    }

    #[test]
    fn the_order_of_values_and_grants_and_protected_paths_does_not_matter(
        (mut scene, _) in scene(), (server, tool, mut arguments) in call(),
    ) {
        let before = severity(&scene.judge(server, tool, &arguments));
        scene.grants.reverse();
        scene.protected = scene.protected.paths().iter().rev().cloned().collect();
        if let Some(paths) = arguments.get_mut("paths").and_then(Value::as_array_mut) {
            paths.reverse();
        }
        prop_assert_eq!(severity(&scene.judge(server, tool, &arguments)), before);
    }

    #[test]
    fn neighbouring_rules_with_one_decision_may_be_swapped(
        (mut scene, mut rules) in scene(), (server, tool, arguments) in call(), at in any::<prop::sample::Index>(),
    ) {
        if rules.len() < 2 {
            return Ok(());
        }
        let at = at.index(rules.len() - 1);
        rules[at + 1].1 = rules[at].1;
        scene.policy = load(&rules);
        let before = severity(&scene.judge(server, tool, &arguments));
        rules.swap(at, at + 1);
        scene.policy = load(&rules);
        prop_assert_eq!(severity(&scene.judge(server, tool, &arguments)), before);
    }

    #[test]
    fn several_values_are_as_strict_as_the_strictest(
        (mut scene, _) in scene(), paths in prop::collection::vec(any_path(), 1..4),
    ) {
        scene.sandbox = None;
        let alone = paths.iter().map(|at| severity(&scene.judge("filesystem", "many", &json!({ "paths": [at] }))));
        let strictest = alone.max().unwrap();
        prop_assert_eq!(severity(&scene.judge("filesystem", "many", &json!({ "paths": paths }))), strictest);
    }

    #[test]
    fn approving_every_value_allows_the_call(
        (mut scene, _) in scene(), (server, tool, arguments) in call(),
    ) {
        let Verdict::Escalate(escalation) = scene.judge(server, tool, &arguments) else { return Ok(()) };
        prop_assert!(!escalation.values.is_empty());
        scene.approved = escalation.values.to_vec();
        let after = scene.judge(server, tool, &arguments);
        prop_assert!(!matches!(after, Verdict::Escalate(_)), "{after:?}");
        // After approval of a host, the judge may find that nothing allows another part of the call.
        let gated = escalation.values.iter().any(|asked| *asked.by.rule == *"structural-domain-escalate");
        prop_assert!(gated || matches!(after, Verdict::Allow(_)), "{after:?}");
        // Without one of the approvals, the call requires approval again, unless another approval applies to the same
        // value.
        let left_out = scene.approved.pop().unwrap();
        if !gated && !scene.approved.iter().any(|approved| left_out.is_approved_by(approved)) {
            let Verdict::Escalate(again) = scene.judge(server, tool, &arguments) else {
                return Err(TestCaseError::fail("nothing was asked"));
            };
            prop_assert!(again.values.iter().all(|asked| asked.is_approved_by(&left_out)));
        }
    }

    #[test]
    fn granting_every_asked_path_leaves_no_path_to_ask(
        (mut scene, _) in scene(), (server, tool, arguments) in call(),
    ) {
        let Verdict::Escalate(escalation) = scene.judge(server, tool, &arguments) else { return Ok(()) };
        for asked in &escalation.values {
            if let (Some(access), ApprovalSubject::Path(at)) = (asked.role.and_then(|role| role.access()), &asked.subject) {
                scene.grants.push(grant("new", at.as_str(), GrantKind::File, &[access]));
            }
        }
        if let Verdict::Escalate(after) = scene.judge(server, tool, &arguments) {
            prop_assert!(after.values.iter().all(|asked| !matches!(asked.subject, ApprovalSubject::Path(_))));
        }
    }

    #[test]
    fn a_grant_for_one_access_changes_nothing_for_others(
        (mut scene, _) in scene(), at in any_path(),
    ) {
        scene.sandbox = None;
        let judged = |scene: &Scene| severity(&scene.judge("filesystem", "write", &json!({ "path": at, "content": "" })));
        let before = judged(&scene);
        scene.grants.push(grant("other", "/", GrantKind::Tree, &[Access::Read, Access::Delete]));
        prop_assert_eq!(judged(&scene), before);
    }

    #[test]
    fn nothing_protected_is_ever_permitted((scene, _) in scene(), (server, tool, arguments) in call()) {
        let Ok(call) = scene.call(server, tool, &arguments) else { return Ok(()) };
        let touches = call.paths().any(|(_, _, at)| scene.protected.paths().iter().any(|protected| protected.contains(at)));
        prop_assert!(!touches || matches!(scene.judge_call(&call), Verdict::Deny(_)));
    }

    #[test]
    fn without_rules_grants_and_sandbox_nothing_is_permitted((server, tool, arguments) in call()) {
        let mut scene = Scene::new(&[]);
        scene.sandbox = None;
        prop_assert_eq!(severity(&scene.judge(server, tool, &arguments)), 2);
    }

    #[test]
    fn any_json_is_planned_or_refused_without_a_panic(text in "[\\[\\]{}\":,a-z/~0-9 ]{0,40}", tool in select(vec!["read", "many", "move"])) {
        let scene = Scene::new(&[("all", json!({}), "allow")]);
        let value: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        let arguments = json!({ "path": value, "paths": value, "source": value, "destination": value });
        let _ = scene.annotations.plan("filesystem", tool, &fields(&arguments));
    }
}
