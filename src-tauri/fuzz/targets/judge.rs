//! Any call under any policy gets a verdict, and removing or denying something never makes a verdict less strict.

#![no_main]

use arbitrary::Arbitrary;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{
    Access, AccessSet, AllowedHosts, Annotations, Context, Decision, DynamicLists, Fact, GrantKind,
    LoadError, PathGrant, Policy, ProtectedPaths, ResolvedCall, explain, judge,
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[derive(Arbitrary, Debug)]
struct Scene<'a> {
    rules: Vec<Rule>,
    call: u8,
    values: Vec<Text<'a>>,
    list: bool,
    protected: Vec<u8>,
    grants: Vec<(u8, bool, u8)>,
    gate: Option<u8>,
    sandbox: Option<u8>,
    forbidden: u8,
}

#[derive(Arbitrary, Debug)]
struct Rule {
    then: u8,
    roles: Option<u16>,
    server: Option<u8>,
    tool: Option<u16>,
    within: Option<(u16, u8)>,
    domains: Option<u8>,
    list: Option<(u16, u8)>,
}

#[derive(Arbitrary, Debug)]
enum Text<'a> {
    Known(u8),
    Any(&'a str),
}

/// Maximum number of rules, because loading them is slow.
const MAX_RULES: usize = 8;

const PATHS: [&str; 10] =
    ["/", "/a", "/a/b", "/a/b/c", "/ab", "/box", "/box/x", "/box/.keys", "/c", "/a/b c"];
/// The last ones are unknown hosts, which a gate accepts.
const HOSTS: [&str; 8] = ["*", "ok.org", "*.ok.org", "ok.org/o/r", "127.0.0.1", "localhost", "*.", ""];
const HOSTS_OF_RULES: &[&str] = HOSTS.split_at(6).0;
const SERVERS: [&str; 3] = ["filesystem", "other", "third"];
const TEXTS: [&str; 8] = [
    "https://ok.org/",
    "https://a.ok.org/x",
    "git@ok.org:o/r.git",
    "http://127.1/",
    "ok.org",
    "ann@ok.org",
    "origin",
    "",
];
const DECISIONS: [&str; 3] = ["allow", "escalate", "deny"];

/// Server, tool, and arguments with their roles; each argument once.
const TOOLS: [(&str, &str, &[(&str, &[&str])]); 8] = [
    ("filesystem", "list_allowed_directories", &[]),
    ("filesystem", "read", &[("path", &["read-path"])]),
    ("filesystem", "move", &[("source", &["read-path", "delete-path"]), ("destination", &["write-path"])]),
    ("other", "save", &[("url", &["fetch-url"]), ("path", &["write-path", "write-history"])]),
    ("other", "push", &[("path", &["read-path", "delete-history"]), ("remote", &["git-remote-url"])]),
    (
        "other",
        "repo",
        &[("owner", &["github-owner"]), ("repo", &["github-repo"]), ("host", &["proxy-domain"])],
    ),
    ("third", "mail", &[("to", &["email-address"]), ("body", &["email-body", "share-permission"])]),
    ("third", "plain", &[("text", &["none"]), ("branch", &["branch-name", "commit-message"])]),
];

static ANNOTATIONS: LazyLock<Annotations> = LazyLock::new(|| {
    let mut servers = json!({});
    for (server, tool, arguments) in TOOLS {
        let arguments: Map<String, Value> =
            arguments.iter().map(|(name, roles)| ((*name).to_owned(), json!(roles))).collect();
        if servers[server].is_null() {
            servers[server] = json!({ "tools": [] });
        }
        servers[server]["tools"].as_array_mut().unwrap().push(json!({ "toolName": tool, "args": arguments }));
    }
    Annotations::from_json(&json!({ "servers": servers }).to_string(), "a").unwrap()
});

static NO_RULES: LazyLock<Policy> = LazyLock::new(|| load(&[]).unwrap());

fuzz_target!(|scene: Scene<'_>| {
    let Some(call) = call(&scene) else { return };
    let rules: Vec<Value> =
        scene.rules.iter().take(MAX_RULES).enumerate().map(|(at, rule)| rule.json(at)).collect();
    // A rule that could be meant for anything is rejected when it is loaded.
    let Ok(policy) = load(&rules) else { return };
    let grants: Vec<PathGrant> =
        scene.grants.iter().enumerate().map(|(at, grant)| self::grant(at, grant)).collect();
    let protected: ProtectedPaths = scene.protected.iter().map(|at| path(*at)).collect();
    let gates =
        scene.gate.map(|host| BTreeMap::from([("other".to_owned(), vec![(*pick(&HOSTS, host)).to_owned()])]));
    let gates = gates.map(|gates| AllowedHosts::new(&gates)).unwrap_or_default();
    let sandbox = scene.sandbox.map(path);
    let context = Context {
        sandbox: sandbox.as_ref(),
        sandbox_servers: &["filesystem".to_owned(), "other".to_owned()],
        grants: &grants,
        ..Context::new(&protected, &gates)
    };
    let verdict = judge(&policy, &context, call.clone());
    assert_eq!(explain(&policy, &context, call.clone()).verdict, verdict);
    let before = verdict.decision();
    let never_looser = |policy: &Policy, context: &Context<'_>, what: &str| {
        let after = judge(policy, context, call.clone()).decision();
        assert!(after >= before, "{what}: {before:?} became {after:?}");
    };
    never_looser(&policy, &Context { grants: &[], ..context }, "no grants");
    never_looser(&policy, &Context { sandbox_servers: &[], ..context }, "no sandbox");
    let more: ProtectedPaths = protected.paths().iter().cloned().chain([path(3)]).collect();
    never_looser(&policy, &Context { protected: &more, ..context }, "another protected path");
    let mut forbidding = rules.clone();
    let at = usize::from(scene.forbidden) % (rules.len() + 1);
    forbidding.insert(at, json!({ "name": "more", "if": { "server": [call.server()] }, "then": "deny" }));
    never_looser(&load(&forbidding).unwrap(), &context, "another deny rule");
    let without =
        judge(&NO_RULES, &Context { sandbox_servers: &[], grants: &[], ..context }, call.clone()).decision();
    let introspection = call.tool() == "list_allowed_directories" && call.transport_arguments().is_empty();
    assert!(introspection || without != Decision::Allow, "allowed without a rule");
});

fn call(scene: &Scene<'_>) -> Option<ResolvedCall> {
    let (server, tool, declared) = *pick(&TOOLS, scene.call);
    let mut arguments = Map::new();
    for ((name, roles), text) in declared.iter().zip(&scene.values) {
        let is_path = roles.iter().any(|role| role.contains("path") || role.contains("history"));
        let text = match text {
            Text::Any(text) => *text,
            Text::Known(at) if is_path => *pick(&PATHS, *at),
            Text::Known(at) => *pick(&TEXTS, *at),
        };
        let value = if scene.list { json!([text, "/a"]) } else { json!(text) };
        arguments.insert((*name).to_owned(), value);
    }
    let arguments = arguments.into();
    let plan = ANNOTATIONS.plan(server, tool, &arguments).ok()?;
    let facts = plan.values().iter().map(|value| match value.raw {
        Some(raw) if value.is_path() => CanonicalPath::assume_canonical(raw).ok().map(Fact::Path),
        Some(_) | None => Some(Fact::Plain),
    });
    let facts = facts.collect::<Option<Vec<_>>>()?;
    plan.resolve(facts).ok()
}

impl Rule {
    fn json(&self, at: usize) -> Value {
        let mut conditions = json!({});
        if let Some(roles) = self.roles {
            conditions["roles"] = roles_of(roles, |_| true);
        }
        if let Some(server) = self.server {
            conditions["server"] = json!([pick(&SERVERS, server)]);
        }
        if let Some(tools) = self.tool {
            let named = TOOLS.iter().enumerate().filter(|(at, _)| tools & (1 << at) != 0);
            conditions["tool"] = named.map(|(_, (_, tool, _))| json!(tool)).collect();
        }
        if let Some((roles, within)) = self.within {
            let roles = roles_of(roles, |role| role.access().is_some());
            conditions["paths"] = json!({ "roles": roles, "within": pick(&PATHS, within) });
        }
        if let Some(host) = self.domains {
            let roles = ["fetch-url", "git-remote-url", "proxy-domain"];
            conditions["domains"] = json!({ "roles": roles, "allowed": [pick(HOSTS_OF_RULES, host)] });
        }
        if let Some((roles, allowed)) = self.list {
            let kind = *pick(&["domains", "emails", "identifiers"], allowed);
            let entry = if kind == "domains" { pick(HOSTS_OF_RULES, allowed) } else { pick(&TEXTS, allowed) };
            let roles = roles_of(roles, |_| true);
            conditions["lists"] = json!([{ "roles": roles, "allowed": [entry], "matchType": kind }]);
        }
        json!({ "name": at.to_string(), "if": conditions, "then": pick(&DECISIONS, self.then), "reason": "r" })
    }
}

fn roles_of(bits: u16, fits: impl Fn(ironcurtain_policy::Role) -> bool) -> Value {
    let all = ironcurtain_policy::Role::ALL.iter().copied().enumerate();
    all.filter(|(at, role)| bits & (1 << at) != 0 && fits(*role))
        .map(|(_, role)| json!(role.name()))
        .collect()
}

fn grant(at: usize, (place, tree, access): &(u8, bool, u8)) -> PathGrant {
    let all = [Access::Read, Access::Write, Access::Delete];
    let chosen = all.into_iter().enumerate().filter(|(at, _)| access & (1 << at) != 0);
    PathGrant {
        created_ms: 1000,
        id: at.to_string(),
        path: path(*place),
        kind: if *tree { GrantKind::Tree } else { GrantKind::File },
        access: chosen.fold(AccessSet::default(), |set, (_, access)| set.with(access)),
    }
}

fn load(rules: &[Value]) -> Result<Policy, LoadError> {
    let within = |raw: &str| CanonicalPath::assume_canonical(raw).map_err(|error| error.to_string().into());
    let file = json!({ "rules": rules }).to_string();
    Policy::from_json(&file, "p", &within, &DynamicLists::default())
}

fn path(at: u8) -> CanonicalPath {
    CanonicalPath::assume_canonical(pick::<&str>(&PATHS, at)).unwrap()
}

fn pick<T>(from: &[T], at: u8) -> &T {
    &from[usize::from(at) % from.len()]
}
