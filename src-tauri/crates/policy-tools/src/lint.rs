//! Finds questionable parts of a valid policy: rules that never decide, rules that are too broad, names and folders that
//! are probably mistakes, and tools without rules.
//!
//! - A finding that a rule never decides is always right, but not every such rule is found.

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
    /// Its conditions can never hold.
    Dead(String),
    /// Tools whose paths, addresses or repositories are judged instead of the rule's roles.
    PassedOver(Vec<String>),
    /// A name in a list of names is unknown.
    UnknownName(String),
    /// A protected folder, about whose content no rule decides.
    ProtectedFolder(CanonicalPath),
    /// A folder with a character that is a wildcard elsewhere but literal here.
    Wildcard(char),
    /// A folder that contains too much.
    BroadFolder(CanonicalPath),
    /// Any public host.
    AnyHost,
    /// Every path or every host, without restriction.
    Everything(Vec<Role>),
    /// A tool without a rule, at all or for a role.
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
    // A rule that never decides leaves everything to later rules.
    let mut before: Vec<&Rule> = Vec::new();
    for rule in policy.rules() {
        let dead = dead::find(rule, &tools, protected);
        let decides = dead.is_none();
        let never = dead.or_else(|| shadow::find(&before, rule).map(|kind| ("if", kind)));
        let found = match never {
            Some(never) => vec![never],
            // A rule that never decides opens nothing.
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

    /// Returns `true` if a call may have no resource: every argument can do without a judged role.
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
                let but = if *otherwise { "decided otherwise" } else { "decided" };
                write!(formatter, "never decides: all it covers is already {but} by {by}")
            }
            Self::Dead(why) => formatter.write_str(why),
            Self::PassedOver(tools) => {
                let tools = tools.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                write!(
                    formatter,
                    "is not looked at for {tools}: where a tool names paths, addresses or repositories, these alone are judged"
                )
            }
            Self::UnknownName(name) => write!(formatter, "nothing annotated is called `{name}`"),
            Self::ProtectedFolder(path) => write!(
                formatter,
                "never decides: `{path}` is protected, and all in it is denied whatever rules say"
            ),
            Self::Wildcard(letter) => {
                write!(formatter, "`{letter}` is a letter like any other here: name the folder itself")
            }
            Self::BroadFolder(path) => {
                write!(formatter, "`{path}` holds the whole home: name a folder in it")
            }
            Self::AnyHost => formatter.write_str("`*` covers every public host: name the hosts"),
            Self::Everything(roles) => {
                let roles = roles.iter().map(|role| format!("`{role}`")).collect::<Vec<_>>().join(", ");
                write!(formatter, "allows every value of {roles}: name folders, hosts or lists")
            }
            Self::Uncovered(gap) => gap.fmt(formatter),
        }
    }
}
