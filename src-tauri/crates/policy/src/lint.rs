//! What is questionable about a policy that loads: rules that never decide, rules that reach too far, tools nobody
//! speaks about.
//!
//! - A finding is never wrong about what can never happen; not every rule that can never decide is found.

mod shadow;

use crate::domains::Pattern;
use crate::judge::cover::spoken_about;
use crate::rules::{Conditions, Entry};
use crate::{Annotations, Policy, Role, Rule, ToolAnnotation};
use ironcurtain_paths::CanonicalPath;
use std::fmt;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule; nothing when it is about a tool.
    pub rule: Option<String>,
    /// The field of the rule, or the tool.
    pub field: String,
    /// What is questionable.
    pub kind: FindingKind,
}

/// What is questionable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingKind {
    /// Rules before it already decide all it could decide.
    Shadowed {
        /// Those rules.
        by: Vec<String>,
        /// Whether one of them decides otherwise.
        otherwise: bool,
    },
    /// Its conditions can never hold.
    Dead(String),
    /// A folder that holds too much.
    BroadFolder(CanonicalPath),
    /// Any public host.
    AnyHost,
    /// A tool that is always denied, because no rule speaks about it in this role.
    Uncovered(Option<Role>),
}

/// Looks a policy over, with the annotations that are in force.
#[must_use]
pub fn lint(policy: &Policy, annotations: &Annotations, home: &CanonicalPath) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, rule) in policy.rules().iter().enumerate() {
        let before = policy.rules().get(..at).unwrap_or_default();
        if let Some((field, why)) = dead(rule, annotations) {
            findings.push(about(rule, &field, FindingKind::Dead(why)));
        } else if let Some(kind) = shadow::find(before, rule) {
            findings.push(about(rule, "if", kind));
        }
        if !rule.denies() {
            broad(rule, home, &mut findings);
        }
    }
    for server in annotations.servers() {
        for (tool, annotation) in annotations.tools(server) {
            findings.extend(uncovered(policy, server, tool, annotation));
        }
    }
    findings
}

fn about(rule: &Rule, field: &str, kind: FindingKind) -> Finding {
    Finding { rule: Some(rule.name().to_string()), field: field.to_owned(), kind }
}

/// Why a rule can never hold, and the field that says so.
fn dead(rule: &Rule, annotations: &Annotations) -> Option<(String, String)> {
    let condition = &rule.condition;
    if let Some(field) = empty(condition) {
        return Some((field.to_owned(), "is empty, so it never holds".to_owned()));
    }
    let resources = spoken_about(rule).next().is_some();
    let whole = condition.paths.is_none() && condition.domains.is_none();
    if !resources && !whole {
        return Some(("if".to_owned(), "its conditions have no role in common".to_owned()));
    }
    let known = annotations.servers().flat_map(|server| {
        annotations.tools(server).map(move |(tool, annotation)| (server, tool, annotation))
    });
    let named: Vec<_> = known.filter(|(server, tool, _)| names(condition, server, tool)).collect();
    if named.is_empty() {
        let field = if condition.tool.is_some() { "if.tool" } else { "if.server" };
        return Some((field.to_owned(), "no annotated tool is named by it".to_owned()));
    }
    let meets = |annotation: &ToolAnnotation| {
        let mut carried = roles_of(annotation).peekable();
        if annotation.arguments.is_empty() || !roles_of(annotation).any(Role::is_resource) {
            return whole && condition.roles.as_ref().is_none_or(|roles| carried.any(|r| roles.contains(&r)));
        }
        carried.any(|role| spoken_about(rule).any(|spoken| spoken == role))
    };
    let some = named.iter().any(|(_, _, annotation)| meets(annotation));
    (!some).then(|| ("if.roles".to_owned(), "no tool it names has an argument of its roles".to_owned()))
}

fn empty(condition: &Conditions) -> Option<&'static str> {
    let none = |names: &Option<Vec<String>>| names.as_ref().is_some_and(Vec::is_empty);
    if none(&condition.server) {
        return Some("if.server");
    }
    if none(&condition.tool) {
        return Some("if.tool");
    }
    if condition.roles.as_ref().is_some_and(Vec::is_empty) {
        return Some("if.roles");
    }
    if condition.domains.as_ref().is_some_and(|domains| domains.allowed.all().is_empty()) {
        return Some("if.domains.allowed");
    }
    condition.lists.iter().flatten().any(|list| list.allowed.is_empty()).then_some("if.lists")
}

fn names(condition: &Conditions, server: &str, tool: &str) -> bool {
    let has = |names: &Option<Vec<String>>, name: &str| {
        names.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
    };
    has(&condition.server, server) && has(&condition.tool, tool)
}

/// Every role any argument of a tool can have.
fn roles_of(annotation: &ToolAnnotation) -> impl Iterator<Item = Role> {
    annotation.arguments.iter().flat_map(|(_, roles)| {
        roles.default.iter().chain(roles.when.iter().flat_map(|guard| &guard.roles)).copied()
    })
}

fn broad(rule: &Rule, home: &CanonicalPath, findings: &mut Vec<Finding>) {
    if let Some(within) = rule.within().filter(|within| within.contains(home)) {
        findings.push(about(rule, "if.paths.within", FindingKind::BroadFolder(within.clone())));
    }
    let any = |pattern: &Pattern| *pattern == Pattern::Any;
    if rule.condition.domains.as_ref().is_some_and(|domains| domains.allowed.all().iter().any(any)) {
        findings.push(about(rule, "if.domains.allowed", FindingKind::AnyHost));
    }
    let lists = rule.condition.lists.iter().flatten().flat_map(|list| &list.allowed);
    if lists.into_iter().any(|entry| matches!(entry, Entry::Domain(pattern) if any(pattern))) {
        findings.push(about(rule, "if.lists", FindingKind::AnyHost));
    }
}

/// The roles of a tool about which no rule speaks.
fn uncovered(policy: &Policy, server: &str, tool: &str, annotation: &ToolAnnotation) -> Vec<Finding> {
    let mut missing = Vec::new();
    let mut resources = roles_of(annotation).filter(|role| role.is_resource()).peekable();
    if resources.peek().is_none() {
        let carried: Vec<Role> = roles_of(annotation).collect();
        let covers = |rule: &Rule| {
            let condition = &rule.condition;
            condition.paths.is_none()
                && condition.domains.is_none()
                && condition
                    .roles
                    .as_ref()
                    .is_none_or(|roles| roles.iter().any(|role| carried.contains(role)))
        };
        if !policy.about(server, tool).any(covers) {
            missing.push(None);
        }
    }
    for role in resources {
        let covered = policy.about(server, tool).any(|rule| spoken_about(rule).any(|spoken| spoken == role));
        if !covered && !missing.contains(&Some(role)) {
            missing.push(Some(role));
        }
    }
    let finding =
        |role| Finding { rule: None, field: format!("{server}/{tool}"), kind: FindingKind::Uncovered(role) };
    // Asking which folders are open is allowed whatever the rules say.
    let asks = server == "filesystem" && tool == "list_allowed_directories";
    if asks { Vec::new() } else { missing.into_iter().map(finding).collect() }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(rule) => write!(formatter, "rule `{rule}`, field `{}`: {}", self.field, self.kind),
            None => write!(formatter, "tool `{}`: {}", self.field, self.kind),
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shadowed { by, otherwise } => {
                let by = by.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let but = if *otherwise { "decided otherwise" } else { "decided" };
                write!(formatter, "never decides: all it covers is already {but} by {by}")
            }
            Self::Dead(why) => formatter.write_str(why),
            Self::BroadFolder(path) => {
                write!(formatter, "`{path}` holds the whole home: name a folder in it")
            }
            Self::AnyHost => formatter.write_str("`*` covers every public host: name the hosts"),
            Self::Uncovered(Some(role)) => {
                write!(formatter, "always denied: no rule about it speaks about `{role}`")
            }
            Self::Uncovered(None) => formatter.write_str("always denied: no rule covers it"),
        }
    }
}
