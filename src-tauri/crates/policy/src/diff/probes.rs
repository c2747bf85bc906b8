//! Makes up calls in which two policies may differ.

use crate::domains::Pattern;
use crate::rules::Entry;
use crate::{
    Annotations, ArgumentRoles, Category, Condition, Fact, Policy, ResolvedCall, Role, ToolAnnotation,
};
use ironcurtain_paths::CanonicalPath;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The most calls made up for one tool.
const MOST_CALLS: usize = 20_000;

/// Values to make calls of, by kind.
pub(super) struct Material {
    paths: Vec<String>,
    hosts: Vec<String>,
    texts: Vec<String>,
}

/// Calls of one tool.
pub(super) struct Calls {
    pub(super) arguments: Vec<Map<String, Value>>,
    pub(super) cut_short: bool,
}

impl Material {
    /// What the policies name, what lies beside it, and what neither names.
    pub(super) fn of(policies: [&Policy; 2], home: &CanonicalPath) -> Self {
        let mut material = Self {
            paths: vec!["/".to_owned(), home.to_string(), "/elsewhere/file".to_owned()],
            hosts: ["elsewhere.example", "localhost", "192.0.2.1"].map(str::to_owned).to_vec(),
            texts: vec!["elsewhere".to_owned()],
        };
        material.paths.extend(home.join("elsewhere/file").ok().map(|path| path.to_string()));
        for rule in policies.iter().flat_map(|policy| policy.rules()) {
            if let Some(within) = rule.within() {
                let around = [Some(within.clone()), within.parent(), within.join("inside").ok()];
                material.paths.extend(around.into_iter().flatten().map(|path| path.to_string()));
            }
            let condition = &rule.condition;
            condition.domains.iter().flat_map(|domains| domains.allowed.all()).for_each(|p| material.host(p));
            condition.lists.iter().flatten().flat_map(|list| &list.allowed).for_each(|entry| match entry {
                Entry::Domain(pattern) => material.host(pattern),
                Entry::Email(text) | Entry::Identifier(text) => material.texts.push(text.clone()),
            });
        }
        for values in [&mut material.paths, &mut material.hosts, &mut material.texts] {
            values.sort();
            values.dedup();
        }
        material
    }

    fn host(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Any => {}
            Pattern::Below(host) => self.hosts.extend([host.clone(), format!("below.{host}")]),
            Pattern::Exact(place) => {
                let host = place.split('/').next().unwrap_or_default();
                let named = [place.clone(), host.to_owned(), format!("below.{host}")];
                self.hosts.extend(named);
            }
        }
    }

    /// Every combination of values for the arguments of a tool, up to a number.
    pub(super) fn calls(&self, annotation: &ToolAnnotation) -> Calls {
        let mut calls = Calls { arguments: vec![Map::new()], cut_short: false };
        for (name, roles) in &annotation.arguments {
            let values = self.values(name, roles, annotation);
            if values.is_empty() {
                continue;
            }
            calls.cut_short |= calls.arguments.len() * values.len() > MOST_CALLS;
            let combined = calls.arguments.iter().flat_map(|call| {
                values.iter().map(|value| {
                    let mut call = call.clone();
                    if let Some(value) = value {
                        call.insert(name.to_string(), value.clone());
                    }
                    call
                })
            });
            calls.arguments = combined.take(MOST_CALLS).collect();
        }
        calls
    }

    /// Values for one argument; `None` leaves it out. Empty when nothing depends on it.
    fn values(&self, name: &str, roles: &ArgumentRoles, tool: &ToolAnnotation) -> Vec<Option<Value>> {
        let text = |text: &String| Some(Value::String(text.clone()));
        let resource = roles.default.iter().find(|role| role.is_resource());
        let mut values: Vec<Option<Value>> = match resource.map(|role| (role, role.category())) {
            Some((_, Category::Path)) => self.paths.iter().map(text).collect(),
            Some((_, Category::Url)) => {
                self.hosts.iter().map(|host| text(&format!("https://{host}"))).collect()
            }
            Some((Role::ProxyDomain, _)) => self.hosts.iter().map(text).collect(),
            Some((_, Category::Identifier | Category::Opaque)) => self.texts.iter().map(text).collect(),
            None if roles.default.iter().any(|role| *role != Role::None) => {
                self.texts.iter().chain(&self.hosts).map(text).collect()
            }
            None => Vec::new(),
        };
        let guards = tool.arguments.iter().flat_map(|(_, roles)| &roles.when);
        for guard in guards.filter(|guard| guard.argument == name) {
            match &guard.condition {
                Condition::Equals(value) => values.push(Some(value.clone())),
                Condition::In(wanted) => values.extend(wanted.iter().cloned().map(Some)),
                Condition::Present | Condition::Absent | Condition::Truthy | Condition::Falsy => {
                    values.push(Some(Value::Bool(true)));
                }
                Condition::Never => {}
            }
            values.push(None);
        }
        values
    }
}

/// A probe ready to be judged, its paths taken as they are spelled. `None` for one that no policy decides about.
pub(super) fn resolve(
    annotations: &Annotations,
    server: &str,
    tool: &str,
    arguments: &Arc<Map<String, Value>>,
) -> Option<ResolvedCall> {
    let plan = annotations.plan_recorded(server, tool, arguments).ok()?;
    let facts = plan.values().iter().map(|value| match value.raw {
        Some(raw) if value.is_path() => CanonicalPath::assume_canonical(raw).ok().map(Fact::Path),
        Some(_) | None => Some(Fact::Plain),
    });
    let facts = facts.collect::<Option<Vec<_>>>()?;
    plan.with_facts(facts).ok()
}
