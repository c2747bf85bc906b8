//! The decisions of the judge, and their grounds as values: the record keeps them, and whoever tells a person matches on
//! them.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The decision of a rule, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// The call may happen.
    Allow,
    /// A person must say.
    Escalate,
    /// The call does not happen.
    Deny,
}

/// The ground on which a call is allowed: that of its first reason, where several values have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllowedBy {
    /// A rule of the policy.
    Rule,
    /// The person's answer to a question about this very call.
    Answer,
    /// The session's own folder, in which the paths of the call lie.
    SessionFolder,
    /// A grant that the person gave before.
    Grant,
    /// Asking which folders are open, which is always allowed.
    Introspection,
    /// It is a request that names no file, to a server that reaches nothing beyond the grants.
    Confined,
}

/// The ground on which a call is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeniedBy {
    /// A rule of the policy.
    Rule,
    /// No rule, grant or answer, for a value that needs one.
    NoRule,
    /// A path that no call touches, or that no call changes.
    ProtectedPath,
    /// An argument that is unknown, of the wrong shape, or cannot be resolved.
    InvalidArgument,
    /// A tool that is not annotated.
    UnknownTool,
}

impl DeniedBy {
    /// The name that stands for it where the name of a rule would; nothing for a rule, which has its own.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rule => "",
            Self::NoRule => "default-deny",
            Self::ProtectedPath => "structural-protected-path",
            Self::InvalidArgument => "structural-invalid-argument",
            Self::UnknownTool => "structural-unknown-tool",
        }
    }
}

/// A rule that spoke, or a structural answer, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleReason {
    /// The name of the rule, or of the structural answer.
    pub rule: Arc<str>,
    /// Why, as told to the agent and the person.
    pub reason: Arc<str>,
}

impl RuleReason {
    /// A rule and its reason.
    #[must_use]
    pub fn new(rule: impl Into<Arc<str>>, reason: impl Into<Arc<str>>) -> Self {
        Self { rule: rule.into(), reason: reason.into() }
    }
}

/// The name of the answer that asks about what has a program of the person's start others.
pub(crate) const STARTS_PROGRAMS: &str = "structural-starts-programs";
/// The name of the answer that asks about an address outside the hosts of its server.
pub(crate) const DOMAIN_GATE: &str = "structural-domain-escalate";
/// The name of the answer that asks about a tool that nobody has annotated.
pub(crate) const UNANNOTATED: &str = "structural-unannotated";
/// The name of the answer that allows a request to a server that reaches nothing beyond the grants.
pub(crate) const CONFINED: &str = "structural-confined";
/// The name of the answer that allows what a grant covers.
pub(crate) const GRANT: &str = "grant";

/// Returns `true` if a name is reserved for verdicts that no rule decides.
pub(crate) fn is_our_own(name: &str) -> bool {
    name.starts_with("structural-") || [GRANT, DeniedBy::NoRule.name()].contains(&name)
}
