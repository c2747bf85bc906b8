//! Test fixture: annotations for several tools, a session sandbox at `/box`, and calls written as JSON.

use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{
    Access, AccessSet, AllowedHosts, Annotations, Context, Denial, DynamicLists, Explanation, Fact,
    GrantKind, HostGrant, PathGrant, PendingApproval, Policy, ProtectedPaths, ResolvedCall, ServerReach,
    ToolGrant, Verdict, WithinError, explain, judge,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Data that the judge needs for a test's calls.
pub(crate) struct Scene {
    pub(crate) annotations: Annotations,
    pub(crate) policy: Policy,
    pub(crate) sandbox: Option<CanonicalPath>,
    pub(crate) protected: ProtectedPaths,
    pub(crate) allowed_hosts: AllowedHosts,
    pub(crate) grants: Vec<PathGrant>,
    pub(crate) hosts: Vec<HostGrant>,
    pub(crate) tools: Vec<ToolGrant>,
    pub(crate) approved: Vec<PendingApproval>,
    pub(crate) reach: ServerReach,
    pub(crate) confined: bool,
}

/// Returns the strictness of a verdict, from 0 (allow) upwards.
pub(crate) fn severity(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow(_) => 0,
        Verdict::Escalate(_) => 1,
        Verdict::Deny(_) => 2,
    }
}

pub(crate) fn path(text: &str) -> CanonicalPath {
    CanonicalPath::assume_canonical(text).unwrap()
}

pub(crate) fn grant(id: &str, at: &str, kind: GrantKind, access: &[Access]) -> PathGrant {
    let access = access.iter().fold(AccessSet::default(), |set, access| set.with(*access));
    PathGrant { id: id.to_owned(), created_ms: 1000, path: path(at), kind, access }
}

/// Converts a JSON object to the arguments of a call.
pub(crate) fn fields(arguments: &Value) -> Arc<Map<String, Value>> {
    arguments.as_object().unwrap().clone().into()
}

/// Creates a policy from `[name, if, then]` triples.
pub(crate) fn policy(rules: &[(&str, Value, &str)]) -> Policy {
    let rules: Vec<Value> = rules
        .iter()
        .map(|(name, conditions, then)| json!({ "name": name, "if": conditions, "then": then, "reason": name }))
        .collect();
    load(&json!({ "rules": rules }), &DynamicLists::default())
}

pub(crate) fn load(file: &Value, lists: &DynamicLists) -> Policy {
    Policy::from_json(&file.to_string(), "policy.json", &spelled, lists).unwrap()
}

/// Resolves a folder without accessing the disk, with `/home/ann` as the home directory.
pub(crate) fn spelled(raw: &str) -> Result<CanonicalPath, WithinError> {
    let raw = raw.replacen('~', "/home/ann", usize::from(raw.starts_with('~')));
    let trimmed = raw.trim_end_matches('/');
    CanonicalPath::assume_canonical(if trimmed.is_empty() { "/" } else { trimmed }).map_err(WithinError::from)
}

impl Scene {
    pub(crate) fn new(rules: &[(&str, Value, &str)]) -> Self {
        Self {
            annotations: Annotations::from_json(&tools().to_string(), "annotations.json").unwrap(),
            policy: policy(rules),
            sandbox: Some(path("/box")),
            protected: ProtectedPaths::default(),
            allowed_hosts: AllowedHosts::default(),
            grants: Vec::new(),
            hosts: Vec::new(),
            tools: Vec::new(),
            approved: Vec::new(),
            reach: ServerReach::Unknown,
            confined: false,
        }
    }

    /// Creates a scene whose only rule, `all`, allows everything.
    pub(crate) fn allowing_all() -> Self {
        Self::new(&[("all", json!({}), "allow")])
    }

    /// Plans a call and resolves it. Every path is assumed to be canonical.
    pub(crate) fn call(&self, server: &str, tool: &str, arguments: &Value) -> Result<ResolvedCall, Denial> {
        let arguments = fields(arguments);
        let plan = self.annotations.plan(server, tool, &arguments)?;
        let facts = plan.values().iter().map(|value| match value.raw {
            Some(raw) if value.is_path() => Fact::Path(path(raw)),
            _ => Fact::Plain,
        });
        let facts: Vec<Fact> = facts.collect();
        plan.resolve(facts)
    }

    pub(crate) fn judge(&self, server: &str, tool: &str, arguments: &Value) -> Verdict {
        match self.call(server, tool, arguments) {
            Ok(call) => self.judge_call(&call),
            Err(denial) => Verdict::Deny(denial),
        }
    }

    pub(crate) fn judge_call(&self, call: &ResolvedCall) -> Verdict {
        judge(&self.policy, &self.context(), call.clone())
    }

    pub(crate) fn explain(&self, call: &ResolvedCall) -> Explanation {
        explain(&self.policy, &self.context(), call.clone())
    }

    pub(crate) fn context(&self) -> Context<'_> {
        const SERVERS: &[String] = &[];
        Context {
            sandbox: self.sandbox.as_ref(),
            sandbox_servers: if self.sandbox.is_some() { sandbox_servers() } else { SERVERS },
            protected: &self.protected,
            allowed_hosts: &self.allowed_hosts,
            grants: &self.grants,
            hosts: &self.hosts,
            tools: &self.tools,
            approved: &self.approved,
            reach: self.reach,
            confined: self.confined,
        }
    }

    /// Judges a call and returns the verdict as `decision rule`.
    pub(crate) fn verdict_text(&self, server: &str, tool: &str, arguments: &Value) -> String {
        describe(self.judge(server, tool, arguments))
    }

    /// Judges a resolved call and returns the verdict as `decision rule`.
    pub(crate) fn verdict_text_of(&self, call: &ResolvedCall) -> String {
        describe(self.judge_call(call))
    }
}

fn describe(verdict: Verdict) -> String {
    match verdict {
        Verdict::Allow(permit) => {
            let reasons = std::iter::once(permit.reason()).chain(permit.others());
            let rules: Vec<&str> = reasons.map(|reason| reason.rule.as_ref()).collect();
            format!("allow {}", rules.join("+"))
        }
        Verdict::Escalate(escalation) => format!("escalate {}", escalation.by.rule),
        Verdict::Deny(denial) => format!("deny {}", denial.rule),
    }
}

fn sandbox_servers() -> &'static [String] {
    static SERVERS: std::sync::LazyLock<Vec<String>> =
        std::sync::LazyLock::new(|| vec!["filesystem".to_owned()]);
    &SERVERS
}

/// Returns annotations with every kind of argument.
fn tools() -> Value {
    let tool = |name: &str, args: Value| json!({ "toolName": name, "args": args });
    let files = json!([
        tool("read", json!({ "path": ["read-path"] })),
        tool("write", json!({ "path": ["write-path"], "content": ["none"] })),
        tool("delete", json!({ "path": ["delete-path"] })),
        tool("move", json!({ "source": ["read-path", "delete-path"], "destination": ["write-path"] })),
        tool("many", json!({ "paths": ["read-path"] })),
        tool("compare", json!({ "left": ["read-path"], "right": ["read-path"] })),
        tool("search", json!({ "path": ["read-path"], "pattern": ["none"] })),
        tool("list", json!({ "path": ["read-path"], "recursive": ["none"] })),
        tool("list_allowed_directories", json!({})),
    ]);
    let others = json!([
        tool("read", json!({ "path": ["read-path"] })),
        tool("get", json!({ "url": ["fetch-url"] })),
        tool("save", json!({ "url": ["fetch-url"], "path": ["write-path"] })),
        tool("push", json!({ "path": ["read-path"], "remote": ["git-remote-url"] })),
        tool("repo", json!({ "owner": ["github-owner"], "repo": ["github-repo"] })),
        tool("open", json!({ "host": ["proxy-domain"] })),
        tool("mail", json!({ "to": ["email-address"], "body": ["email-body"] })),
        tool("list_allowed_directories", json!({})),
        json!({ "toolName": "look", "readOnly": true, "args": { "query": ["none"], "path": ["read-path"] } }),
        tool(
            "edit",
            json!({
                "path": {
                    "default": ["read-path", "write-path"],
                    "when": [{ "condition": { "arg": "dry", "equals": true }, "roles": ["read-path"] }]
                },
                "dry": ["none"]
            })
        ),
    ]);
    json!({ "servers": { "filesystem": { "tools": files }, "other": { "tools": others } } })
}
