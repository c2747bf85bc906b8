//! Finds questionable parts of a valid policy: rules that never decide, rules that are too broad, names and folders that
//! are probably mistakes, and tools without rules.
//!
//! - Rules reported as never deciding are certain, but not all such rules are found.

mod broad;
mod dead;
mod shadow;
mod uncovered;

use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Annotations, Policy, ProtectedPaths, Role, Rule, RuleCondition, ToolAnnotation};
use std::fmt;
pub use uncovered::Gap;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFinding {
    /// Name of the rule; `None` if the finding is about a tool.
    pub rule: Option<String>,
    /// Field of the rule, or the tool.
    pub field: String,
    /// Kind of finding.
    pub kind: LintKind,
}

/// Kind of questionable part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LintKind {
    /// Earlier rules already decide everything that the rule covers.
    Shadowed {
        /// Names of those rules.
        by: Vec<String>,
        /// Set if one of them has another decision.
        otherwise: bool,
    },
    /// The rule's conditions can never hold.
    Dead(String),
    /// Tools whose paths, addresses or repositories are judged instead of the rule's roles.
    PassedOver(Vec<String>),
    /// A name in a list of names is unknown.
    UnknownName(String),
    /// A protected folder, whose content no rule can allow.
    ProtectedFolder(CanonicalPath),
    /// A folder with a character that is a wildcard elsewhere but literal here.
    Wildcard(char),
    /// A folder that contains too much.
    BroadFolder(CanonicalPath),
    /// Any public host.
    AnyHost,
    /// Every path or every host, without restriction.
    Everything(Vec<Role>),
    /// A tool without a rule, or with a role that no rule covers.
    Uncovered(Gap),
}

/// Lints a policy with the active annotations and protected paths.
#[must_use]
pub fn lint(
    policy: &Policy,
    annotations: &Annotations,
    protected: &ProtectedPaths,
    home: &CanonicalPath,
) -> Vec<LintFinding> {
    let tools = Tools::of(annotations);
    let mut findings = Vec::new();
    // Rules that never decide do not shadow later rules.
    let mut before: Vec<&Rule> = Vec::new();
    for rule in policy.rules() {
        let dead = dead::find(rule, &tools, protected);
        let decides = dead.is_none();
        let never = dead.or_else(|| shadow::find(&before, rule).map(|kind| ("if", kind)));
        let found = match never {
            Some(never) => vec![never],
            // Rules that never decide are not too broad.
            None => {
                let passed = dead::passed_over(rule, &tools).into_iter();
                passed.chain(broad::find(&before, rule, &tools, home)).collect()
            }
        };
        let found = found.into_iter().chain(dead::misnamed(rule, &tools));
        findings.extend(found.map(|(field, kind)| about(rule, field, kind)));
        if decides {
            before.push(rule);
        }
    }
    findings.extend(tools.0.iter().flat_map(|tool| uncovered::find(policy, annotations, tool)));
    findings
}

fn about(rule: &Rule, field: &str, kind: LintKind) -> LintFinding {
    LintFinding { rule: Some(rule.name().to_string()), field: field.to_owned(), kind }
}

/// Annotated tools.
struct Tools<'a>(Vec<Tool<'a>>);

struct Tool<'a> {
    server: &'a str,
    name: &'a str,
    annotation: &'a ToolAnnotation,
}

impl<'a> Tools<'a> {
    fn of(annotations: &'a Annotations) -> Self {
        let of_server = |server: &'a str| {
            let tools = annotations.tools(server);
            tools.map(move |(name, annotation)| Tool { server, name, annotation })
        };
        Self(annotations.servers().flat_map(of_server).collect())
    }

    /// Returns the tools that a rule names.
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
    /// Iterates over the roles that any of its arguments can have.
    fn roles(&self) -> impl Iterator<Item = Role> {
        self.annotation.arguments.iter().flat_map(|(_, roles)| {
            roles.default.iter().chain(roles.when.iter().flat_map(|guard| &guard.roles)).copied()
        })
    }

    /// Returns `true` if a call may have no resource, because every argument can lack a judged role.
    fn may_name_nothing(&self) -> bool {
        self.annotation.arguments.iter().all(|(_, roles)| {
            let mut ways = std::iter::once(&roles.default).chain(roles.when.iter().map(|guard| &guard.roles));
            ways.any(|way| !way.iter().any(|role| role.is_resource()))
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
            Self::Shadowed { by, otherwise } => {
                let by = by.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let but = if *otherwise { "decided differently" } else { "decided" };
                write!(formatter, "has no effect: everything it covers is already {but} by {by}")
            }
            Self::Dead(why) => formatter.write_str(why),
            Self::PassedOver(tools) => {
                let tools = tools.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                write!(
                    formatter,
                    "does not apply to {tools}: a tool with paths, addresses or repositories is judged by these alone"
                )
            }
            Self::UnknownName(name) => {
                write!(formatter, "unknown name `{name}`: nothing with this name is annotated")
            }
            Self::ProtectedFolder(path) => write!(
                formatter,
                "has no effect: `{path}` is protected, and everything in it is always denied"
            ),
            Self::Wildcard(letter) => {
                write!(formatter, "`{letter}` is not a wildcard here: name the folder itself")
            }
            Self::BroadFolder(path) => {
                write!(formatter, "`{path}` contains the whole home directory: name a folder in it")
            }
            Self::AnyHost => formatter.write_str("`*` matches every public host: name the hosts"),
            Self::Everything(roles) => {
                let roles = roles.iter().map(|role| format!("`{role}`")).collect::<Vec<_>>().join(", ");
                write!(formatter, "allows every value of {roles}: restrict it by folders, hosts or lists")
            }
            Self::Uncovered(gap) => gap.fmt(formatter),
        }
    }
}
