//! Answers requests to judge whole calls.

use crate::container::on_host;
use crate::data_set::{DataSet, call};
use crate::plain;
use ironcurtain_consent::found_paths;
use ironcurtain_git_facts::{GitContext, RemoteQuery};
use ironcurtain_paths::{CanonicalPath, PathError, PathKind, Resolution};
use ironcurtain_policy::{
    AllowedHosts, CallPlan, Category, Context, Denial, Fact, ProtectedPaths, ResolvedCall, Verdict, judge,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Judges a call. If `prepare` is `true`, first converts the call's values to canonical form, as for a real call.
pub fn evaluate(data: &DataSet, request: &Value, prepare: bool) -> anyhow::Result<Value> {
    let (server, _, _) = call(request)?;
    let list = |field: &str| request.get(field).and_then(Value::as_array).into_iter().flatten();
    if list("trustedServers").any(|trusted| trusted == server) {
        return Ok(json!({ "decision": "allow", "rule": "trusted-server", "reason": "not judged" }));
    }
    let sandbox = data.sandbox(request)?;
    let resolved = match resolve(data, request, sandbox.as_ref(), prepare)? {
        Ok(resolved) => resolved,
        Err(denial) => return Ok(refused(&denial)),
    };
    let protected = list("protectedPaths").filter_map(Value::as_str).map(|raw| data.resolve(raw));
    let protected: ProtectedPaths = protected.collect::<Result<_, _>>()?;
    let gates: Option<BTreeMap<String, Vec<String>>> =
        serde_json::from_value(request.get("serverDomainAllowlists").cloned().unwrap_or_default())?;
    let gates = gates.map(|gates| AllowedHosts::new(&gates)).unwrap_or_default();
    let context = Context {
        sandbox: sandbox.as_ref(),
        sandbox_servers: &["filesystem".to_owned(), "git".to_owned()],
        ..Context::new(&protected, &gates)
    };
    let policy = data.policy(request)?;
    Ok(match judge(&policy, &context, resolved) {
        Verdict::Allow(permit) => {
            json!({ "decision": "allow", "rule": permit.reason().rule, "reason": permit.reason().reason })
        }
        Verdict::Escalate(asks) => {
            let mut roles: Vec<&str> =
                asks.values.iter().filter_map(|value| Some(value.role?.name())).collect();
            roles.dedup();
            json!({ "decision": "escalate", "rule": asks.by.rule, "reason": asks.by.reason, "escalatedRoles": roles })
        }
        Verdict::Deny(denial) => refused(&denial),
    })
}

/// Returns the arguments that the server would receive, or the original ones if the call is refused.
pub fn prepare(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    let sandbox = data.sandbox(request)?;
    let (_, _, written) = call(request)?;
    Ok(match resolve(data, request, sandbox.as_ref(), true)? {
        Ok(resolved) => {
            let judged = &without_slashes(data, request, resolved.transport_arguments())?;
            let sent = if sandbox.is_some() { as_sent(written, judged) } else { judged.clone() };
            json!({ "argsForTransport": sent, "argsForPolicy": judged })
        }
        Err(denial) => {
            json!({ "argsForTransport": written, "argsForPolicy": written, "refused": denial.reason })
        }
    })
}

pub fn annotation(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    let (server, tool, arguments) = call(request)?;
    let annotations = data.annotations(request)?;
    let roles = annotations.get(server, tool).map(|known| {
        let names = known.roles(arguments).map(|(name, roles)| {
            (name.to_string(), roles.iter().map(|role| role.name()).collect::<Vec<_>>().into())
        });
        names.collect::<Map<String, Value>>()
    });
    Ok(json!({ "args": roles }))
}

/// Converts URLs in the arguments to the spelling that the other implementation uses.
fn without_slashes(
    data: &DataSet,
    request: &Value,
    judged: &Map<String, Value>,
) -> anyhow::Result<Map<String, Value>> {
    let (server, tool, _) = call(request)?;
    let annotations = data.annotations(request)?;
    let mut converted = judged.clone();
    for (name, roles) in annotations.get(server, tool).into_iter().flat_map(|known| known.roles(judged)) {
        if roles.iter().any(|role| role.category() == Category::Url) {
            converted.get_mut(&**name).into_iter().for_each(without_slash);
        }
    }
    Ok(converted)
}

fn without_slash(value: &mut Value) {
    match value {
        Value::String(address) => *address = plain::without_slash(std::mem::take(address)),
        Value::Array(addresses) => addresses.iter_mut().for_each(without_slash),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}

/// Restores relative paths, which the other implementation sends unchanged. IronCurtain sends the resolved path that it
/// judged.
fn as_sent(written: &Map<String, Value>, judged: &Map<String, Value>) -> Map<String, Value> {
    let one = |(name, judged): (&String, &Value)| {
        let written = written.get(name).unwrap_or(judged);
        (name.clone(), relative_as_written(written, judged))
    };
    judged.iter().map(one).collect()
}

/// Returns the relative path as written. Only the resolved form of a path starts with a slash.
fn relative_as_written(written: &Value, judged: &Value) -> Value {
    match (written, judged) {
        (Value::String(raw), Value::String(path))
            if path.starts_with('/') && !raw.starts_with(['/', '~']) =>
        {
            written.clone()
        }
        (Value::Array(raws), Value::Array(paths)) => {
            raws.iter().zip(paths).map(|(raw, path)| relative_as_written(raw, path)).collect()
        }
        (_, judged) => judged.clone(),
    }
}

fn refused(denial: &Denial) -> Value {
    json!({ "decision": "deny", "rule": denial.rule, "reason": denial.reason })
}

fn resolve(
    data: &DataSet,
    request: &Value,
    sandbox: Option<&CanonicalPath>,
    prepare: bool,
) -> anyhow::Result<Result<ResolvedCall, Denial>> {
    let (server, tool, arguments) = call(request)?;
    let base = sandbox.filter(|_| prepare).unwrap_or(&data.working_dir);
    let inside = request.get("containerWorkspaceDir").and_then(Value::as_str).filter(|_| prepare);
    let resolver = CallResolver { data, base, container: inside.zip(sandbox) };
    let (annotations, arguments) = (data.annotations_accepting(request)?, arguments.clone().into());
    let plan = annotations.plan(server, tool, &arguments);
    Ok(plan.and_then(|plan| {
        let facts = resolver.facts(&plan, prepare)?;
        plan.resolve(facts)
    }))
}

/// Resolver for the paths in one call.
struct CallResolver<'a> {
    data: &'a DataSet,
    base: &'a CanonicalPath,
    /// Path of the session folder in the container, and its path on the host.
    container: Option<(&'a str, &'a CanonicalPath)>,
}

impl CallResolver<'_> {
    fn facts(&self, plan: &CallPlan<'_>, prepare: bool) -> Result<Vec<Fact>, Denial> {
        let other = if prepare { Fact::Plain } else { Fact::Verbatim };
        let mut found = found_paths::paths(plan, &other, |raw| self.resolve(raw))?;
        if let Some(question) = RemoteQuery::new(plan, found.paths.iter().map(|found| &found.path)) {
            let git = GitContext { home: self.data.home.clone(), in_sandbox: false };
            // The user's repositories need no protection from recorded calls, so git data may be read in any folder.
            for (at, fact) in question.resolve_addresses(&git, &|_| true) {
                if let Some(slot) = found.facts.get_mut(at) {
                    *slot = fact;
                }
            }
        }
        Ok(found.facts)
    }

    fn resolve(&self, raw: &str) -> Result<Resolution, PathError> {
        let path = match self.container {
            Some((name, host_path)) => {
                self.data.resolve_from(self.base, &on_host(raw, name, host_path.as_str()))?
            }
            None => self.data.resolve_from(self.base, raw)?,
        };
        let target = if path.as_path().is_dir() { PathKind::Folder } else { PathKind::Missing };
        Ok(Resolution { path, links: Vec::new(), target })
    }
}
