//! Finds questionable parts of a valid policy: rules that never decide, rules that are too broad, probable mistakes
//! in names and folders, and tools that no rule covers.
//!
//! - Not every rule that never decides is found, but every reported rule is certain never to decide.

mod broad;
mod dead;
mod shadow;
mod uncovered;

use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Annotations, Policy, ProtectedPaths, Role, Rule, RuleCondition, ToolAnnotation};
use std::fmt;
pub use uncovered::Gap;

/// A questionable part of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFinding {
    /// Name of the rule, or `None` if the finding is about a tool.
    pub rule: Option<String>,
    /// Dotted path of the rule's field, or `server/tool`.
    pub field: String,
    /// Kind and details of the finding.
    pub kind: LintKind,
}

/// Kind of finding, with its details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LintKind {
    /// Earlier rules already decide everything that the rule covers.
    Shadowed {
        /// Names of the earlier rules.
        by: Vec<String>,
        /// `true` if one of the earlier rules has a different decision.
        has_other_decision: bool,
    },
    /// The rule's conditions can never hold. Contains the reason.
    Dead(String),
    /// The rule does not apply to these tools. They have resources, which are judged instead of values with the
    /// rule's roles.
    SkippedTools(Vec<String>),
    /// The rule mentions a server or tool that is not annotated.
    UnknownName(String),
    /// The rule allows access to a protected folder, which no rule can permit.
    ProtectedFolder(CanonicalPath),
    /// The rule's folder contains a character that is a wildcard in other programs but literal here.
    Wildcard(char),
    /// The rule's folder contains the whole home directory.
    BroadFolder(CanonicalPath),
    /// The rule allows every public host.
    AnyHost,
    /// The rule allows every value with these roles.
    Everything(Vec<Role>),
    /// No rule covers a tool, or one of its roles.
    Uncovered(Gap),
}

/// Lints a policy, given the current annotations and protected paths.
#[must_use]
pub fn lint(
    policy: &Policy,
    annotations: &Annotations,
    protected: &ProtectedPaths,
    home: &CanonicalPath,
) -> Vec<LintFinding> {
    let tools = Tools::from_annotations(annotations);
    let mut findings = Vec::new();
    // Rules that never decide cannot shadow later rules.
    let mut before: Vec<&Rule> = Vec::new();
    for rule in policy.rules() {
        let dead = dead::find(rule, &tools, protected);
        let can_decide = dead.is_none();
        let no_effect = dead.or_else(|| shadow::find(&before, rule).map(|kind| ("if", kind)));
        let found = match no_effect {
            Some(no_effect) => vec![no_effect],
            // A rule that never decides cannot be too broad.
            None => {
                let skipped = dead::skipped_tools(rule, &tools).into_iter();
                skipped.chain(broad::find(&before, rule, &tools, home)).collect()
            }
        };
        let found = found.into_iter().chain(dead::unknown_names(rule, &tools));
        findings.extend(found.map(|(field, kind)| finding_for(rule, field, kind)));
        if can_decide {
            before.push(rule);
        }
    }
    findings.extend(tools.0.iter().flat_map(|tool| uncovered::find(policy, annotations, tool)));
    findings
}

fn finding_for(rule: &Rule, field: &str, kind: LintKind) -> LintFinding {
    LintFinding { rule: Some(rule.name().to_string()), field: field.to_owned(), kind }
}

/// The annotated tools of all servers.
struct Tools<'a>(Vec<Tool<'a>>);

struct Tool<'a> {
    server: &'a str,
    name: &'a str,
    annotation: &'a ToolAnnotation,
}

impl<'a> Tools<'a> {
    fn from_annotations(annotations: &'a Annotations) -> Self {
        let of_server = |server: &'a str| {
            let tools = annotations.tools(server);
            tools.map(move |(name, annotation)| Tool { server, name, annotation })
        };
        Self(annotations.servers().flat_map(of_server).collect())
    }

    /// Iterates over the tools to which a rule applies, based on server and tool names only.
    fn named_by(&self, condition: &RuleCondition) -> impl Iterator<Item = &Tool<'a>> {
        let has = |names: &Option<Vec<String>>, name: &str| {
            names.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
        };
        self.0
            .iter()
            .filter(move |tool| has(&condition.server, tool.server) && has(&condition.tool, tool.name))
    }
}

impl Tool<'_> {
    /// Iterates over the roles that the tool's arguments can have under any condition.
    fn roles(&self) -> impl Iterator<Item = Role> {
        self.annotation.arguments.iter().flat_map(|(_, roles)| {
            roles.default.iter().chain(roles.when.iter().flat_map(|guard| &guard.roles)).copied()
        })
    }

    /// Returns `true` if a call may contain no resource, because each argument can be without a judged role.
    fn may_have_no_resource(&self) -> bool {
        self.annotation.arguments.iter().all(|(_, roles)| {
            let mut role_lists =
                std::iter::once(&roles.default).chain(roles.when.iter().map(|guard| &guard.roles));
            role_lists.any(|roles| !roles.iter().any(|role| role.is_resource()))
        })
    }
}

impl fmt::Display for LintFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(rule) => write!(formatter, "rule `{rule}`, field `{}`: {}", self.field, self.kind),
            None => write!(formatter, "tool `{}`: {}", self.field, self.kind),
        }
    }
}

impl fmt::Display for LintKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shadowed { by, has_other_decision } => {
                let by = by.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let how = if *has_other_decision { "decided differently" } else { "decided" };
                write!(formatter, "has no effect: everything it covers is already {how} by {by}")
            }
            Self::Dead(why) => formatter.write_str(why),
            Self::SkippedTools(tools) => {
                let tools = tools.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                write!(
                    formatter,
                    "does not apply to {tools}: a tool with paths, addresses or repositories is judged by these alone"
                )
            }
            Self::UnknownName(name) => {
                write!(formatter, "no annotated server or tool is named `{name}`")
            }
            Self::ProtectedFolder(path) => write!(
                formatter,
                "has no effect: `{path}` is protected, and everything in it is always denied"
            ),
            Self::Wildcard(letter) => {
                write!(formatter, "`{letter}` is not a wildcard here; name the folder itself")
            }
            Self::BroadFolder(path) => {
                write!(formatter, "`{path}` contains the whole home directory; name a folder in it")
            }
            Self::AnyHost => formatter.write_str("`*` matches every public host; name the hosts"),
            Self::Everything(roles) => {
                let roles = roles.iter().map(|role| format!("`{role}`")).collect::<Vec<_>>().join(", ");
                write!(formatter, "allows every value of {roles}; restrict it by folders, hosts or lists")
            }
            Self::Uncovered(gap) => gap.fmt(formatter),
        }
    }
}
