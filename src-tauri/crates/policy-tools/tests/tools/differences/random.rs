//! Property tests with small random policies: for each call that becomes less or more strict, a probe of its tool is
//! reported, and every report is true.

use crate::scene::{fields, policy};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{AllowedHosts, Annotations, Context, Fact, Policy, ProtectedPaths, judge};
use ironcurtain_policy_tools::diff::{ProbeOutcome, diff};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Returns annotations of tools with every kind of argument, some with an input schema.
fn annotations() -> Annotations {
    let tool = |name: &str, args: Value, schema: Value| json!({ "toolName": name, "args": args, "inputSchema": schema });
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let guarded = json!({ "default": ["read-path"], "when": [
        { "condition": { "arg": "mode", "equals": "add" }, "roles": ["read-path", "write-path"] },
        { "condition": { "arg": "mode", "is": "truthy" }, "roles": ["none"] },
    ] });
    let tools = json!([
        tool("read", json!({ "path": ["read-path"] }), Value::Null),
        tool(
            "many",
            json!({ "paths": ["read-path", "write-path"] }),
            json!({ "properties": { "paths": list }, "required": ["paths"] })
        ),
        tool("move", json!({ "from": ["read-path", "delete-path"], "to": ["write-path"] }), Value::Null),
        tool(
            "get",
            json!({ "url": ["fetch-url"] }),
            json!({ "properties": { "url": { "type": ["string", "array"] } } })
        ),
        tool("push", json!({ "path": ["read-path"], "remote": ["git-remote-url"] }), Value::Null),
        tool("open", json!({ "owner": ["github-owner"], "host": ["proxy-domain"] }), Value::Null),
        tool(
            "send",
            json!({ "to": ["email-address"], "file": ["read-path"] }),
            json!({ "required": ["to"] })
        ),
        tool(
            "mode",
            json!({ "path": guarded, "mode": ["none"] }),
            json!({ "properties": { "mode": { "enum": ["add", "list", ""] }, "path": {} } })
        ),
        tool("say", json!({ "text": ["none"], "to": ["email-address"] }), Value::Null),
    ]);
    Annotations::from_json(&json!({ "servers": { "s": { "tools": tools } } }).to_string(), "a").unwrap()
}

const TOOLS: [&str; 9] = ["read", "many", "move", "get", "push", "open", "send", "mode", "say"];
const PATHS: [&str; 7] = ["/", "/a", "/a/b", "/a/b/c", "/a/c", "/b", "/b/a"];
const HOSTS: [&str; 7] = ["a.org", "b.a.org", "c.b.a.org", "d.org", "localhost", "127.0.0.1", "a.org/o/r"];
const PATTERNS: [&str; 8] =
    ["*", "a.org", "*.a.org", "*.b.a.org", "d.org", "localhost", "a.org/o/r", "*.org"];
const WORDS: [&str; 6] = ["/a/b", "/b", "https://a.org", "a.org", "d.org", "ann@a.org"];

fn some<T: Clone + std::fmt::Debug + 'static>(from: &[T]) -> impl Strategy<Value = Vec<T>> + use<T> {
    prop::collection::vec(prop::sample::select(from.to_vec()), 1..4)
}

fn conditions() -> impl Strategy<Value = Value> {
    const PATH_ROLES: [&str; 3] = ["read-path", "write-path", "delete-path"];
    const HOST_ROLES: [&str; 4] = ["fetch-url", "git-remote-url", "github-owner", "proxy-domain"];
    const ROLES: [&str; 9] = [
        "read-path",
        "write-path",
        "delete-path",
        "fetch-url",
        "git-remote-url",
        "github-owner",
        "proxy-domain",
        "email-address",
        "none",
    ];
    let paths = (some(&PATH_ROLES), prop::sample::select(PATHS.to_vec()))
        .prop_map(|(roles, within)| json!({ "roles": roles, "within": within }));
    let domains = (some(&HOST_ROLES), some(&PATTERNS))
        .prop_map(|(roles, allowed)| json!({ "roles": roles, "allowed": allowed }));
    let listed = prop_oneof![
        some(&PATTERNS).prop_map(|allowed| ("domains", allowed)),
        some(&WORDS).prop_map(|allowed| ("identifiers", allowed)),
        some(&["ann@a.org", "bob@d.org"]).prop_map(|allowed| ("emails", allowed)),
    ];
    let list = (some(&ROLES[..8]), listed)
        .prop_map(|(roles, (how, allowed))| json!({ "roles": roles, "allowed": allowed, "matchType": how }));
    let maybe = |chance: f64, what: BoxedStrategy<Value>| prop::option::weighted(chance, what);
    (
        maybe(0.3, some(&ROLES).prop_map(|roles| json!(roles)).boxed()),
        maybe(0.3, some(&TOOLS).prop_map(|tools| json!(tools)).boxed()),
        maybe(0.4, paths.boxed()),
        maybe(0.25, domains.boxed()),
        maybe(0.25, prop::collection::vec(list, 1..3).prop_map(|lists| json!(lists)).boxed()),
    )
        .prop_map(|(roles, tool, paths, domains, lists)| {
            let all =
                [("roles", roles), ("tool", tool), ("paths", paths), ("domains", domains), ("lists", lists)];
            all.into_iter()
                .filter_map(|(name, part)| Some((name.to_owned(), part?)))
                .collect::<Map<_, _>>()
                .into()
        })
}

type Rules = Vec<(Value, &'static str)>;

fn rules() -> impl Strategy<Value = Rules> {
    let then = prop::sample::select(vec!["allow", "escalate", "deny"]);
    prop::collection::vec((conditions(), then), 0..5)
}

fn named(rules: &Rules) -> Policy {
    let names = ["r0", "r1", "r2", "r3", "r4"];
    let rules: Vec<_> =
        rules.iter().zip(names).map(|((conditions, then), name)| (name, conditions.clone(), *then)).collect();
    policy(&rules)
}

/// Generates a valid or invalid call to a tool. A third of the arguments are omitted.
fn call() -> impl Strategy<Value = (&'static str, Value)> {
    let urls = HOSTS.iter().map(|host| format!("https://{host}"));
    let paths = PATHS.iter().map(|path| (*path).to_owned());
    let words = HOSTS.iter().chain(&WORDS).map(|word| (*word).to_owned());
    let paths = string_or_list(paths.chain(["/z/z".to_owned()]).collect());
    let urls = string_or_list(
        urls.chain(["https://z.example", "zoe", "nowhere:", "https://a.org/O/R.git"].map(str::to_owned))
            .collect(),
    );
    let words = string_or_list(
        words
            .chain(["z.example", "zoe@z.example", "no host", "ANN@A.ORG", "D.org"].map(str::to_owned))
            .collect(),
    );
    let modes = prop::sample::select(vec![json!("add"), json!("list"), json!(""), json!(true)]).boxed();
    let mut given = Vec::new();
    for (name, value) in [
        ("path", &paths),
        ("paths", &paths),
        ("from", &paths),
        ("file", &paths),
        ("url", &urls),
        ("remote", &urls),
        ("owner", &words),
        ("host", &words),
        ("text", &words),
        ("mode", &modes),
    ] {
        given.push(prop::option::weighted(0.7, value.clone()).prop_map(move |value| (name, value)).boxed());
    }
    let to = prop_oneof![4 => paths, 4 => words, 1 => Just(json!({ "name": "ann" }))];
    given.push(prop::option::weighted(0.7, to).prop_map(|value| ("to", value)).boxed());
    (prop::sample::select(TOOLS.to_vec()), given).prop_map(|(tool, given)| {
        let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        (tool, Value::Object(given.collect()))
    })
}

/// Generates a string, or a list of up to two strings.
fn string_or_list(strings: Vec<String>) -> BoxedStrategy<Value> {
    let text = prop::sample::select(strings);
    let several = prop::collection::vec(text.clone(), 0..3).prop_map(|strings| json!(strings));
    prop_oneof![3 => text.prop_map(|text| json!(text)), 2 => several].boxed()
}

/// Returns a call's outcome and the deciding rule, or `None` if the tool rejects the call.
fn outcome(
    policy: &Policy,
    annotations: &Annotations,
    tool: &str,
    arguments: &Value,
) -> Option<(ProbeOutcome, String)> {
    let arguments = fields(arguments);
    let plan = annotations.plan("s", tool, &arguments).ok()?;
    let facts = plan.values().iter().map(|value| match value.raw {
        Some(raw) if value.is_path() => CanonicalPath::assume_canonical(raw).ok().map(Fact::Path),
        _ => Some(Fact::Plain),
    });
    let call = plan.resolve(facts.collect::<Option<Vec<_>>>()?).ok()?;
    let allowed_hosts = AllowedHosts::default();
    let context = Context::new(ProtectedPaths::NOTHING, &allowed_hosts);
    let verdict = judge(policy, &context, call);
    Some((ProbeOutcome::from_verdict(&verdict), verdict.rule().to_owned()))
}

/// Returns the arguments, without those that the tool does not have.
fn accepted_arguments(annotations: &Annotations, tool: &str, arguments: &Value) -> Value {
    let known = annotations.get("s", tool).unwrap();
    let given = known
        .arguments
        .iter()
        .filter_map(|(name, _)| Some((name.to_string(), arguments.get(&**name)?.clone())));
    Value::Object(given.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]
    #[test]
    fn every_difference_is_reported_and_every_report_is_true(
        old in rules(), new in prop_oneof![1 => rules().prop_map(Err), 3 => (conditions(), 0..9usize).prop_map(Ok)],
        calls in prop::collection::vec(call(), 300),
    ) {
        // Most cases replace or remove one rule.
        let new = match new {
            Err(new) => new,
            Ok((conditions, at)) => {
                let mut new = old.clone();
                match new.get_mut(at / 2) {
                    Some(rule) if at % 2 == 0 => rule.0 = conditions,
                    Some(_) => drop(new.remove(at / 2)),
                    None => new.push((conditions, "allow")),
                }
                new
            }
        };
        let (annotations, old, new) = (annotations(), named(&old), named(&new));
        let found = diff(&old, &new, &annotations);
        prop_assert_eq!(&found.cut_short, &Vec::<String>::new());
        for change in &found.decisions {
            let judged = |policy: &Policy| outcome(policy, &annotations, &change.tool, &Value::Object(change.arguments.clone()));
            prop_assert_eq!(judged(&old), Some(change.old.clone()));
            prop_assert_eq!(judged(&new), Some(change.new.clone()));
        }
        let reported: BTreeSet<_> = found.decisions.iter().map(|it| (it.tool.as_str(), it.is_looser())).collect();
        for (tool, arguments) in &calls {
            let arguments = accepted_arguments(&annotations, tool, arguments);
            let judged = |policy: &Policy| outcome(policy, &annotations, tool, &arguments).map(|(outcome, _)| outcome);
            if let (Some(before), Some(after)) = (judged(&old), judged(&new)) {
                prop_assert!(before == after || reported.contains(&(*tool, after < before)), "{tool} {arguments}: {before:?} {after:?}");
            }
        }
    }
}
