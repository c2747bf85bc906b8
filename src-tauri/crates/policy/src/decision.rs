//! Decisions of the judge and their grounds, as values that the record stores and other code matches on.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Decision of a rule, ordered by strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// Allows the call.
    Allow,
    /// Requires the user's approval.
    Escalate,
    /// Denies the call.
    Deny,
}

/// Ground on which a call is allowed. If its values have different grounds, the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllowedBy {
    /// A rule of the policy.
    Rule,
    /// The user's answer to a question about this very call.
    Answer,
    /// The paths of the call are in the session's own folder.
    SessionFolder,
    /// An earlier grant.
    Grant,
    /// The call only lists the allowed folders, which is always allowed.
    Introspection,
    /// A request without a file, to a server that can access only what was granted.
    Confined,
}

/// Ground on which a call is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeniedBy {
    /// A rule of the policy.
    Rule,
    /// No rule, grant or answer covers a value that needs one.
    NoRule,
    /// A path that calls may not access, or may not change.
    ProtectedPath,
    /// An argument that is unknown or invalid, or cannot be resolved.
    InvalidArgument,
    /// An unannotated tool.
    UnknownTool,
}

impl DeniedBy {
    /// Returns the reserved name of a built-in decision; `None` for a rule, which has a name.
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

/// A rule or built-in decision, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleReason {
    /// Name of the rule or built-in decision.
    pub rule: Arc<str>,
    /// Reason shown to the agent and the user.
    pub reason: Arc<str>,
}

impl RuleReason {
    /// Creates a reason.
    #[must_use]
    pub fn new(rule: impl Into<Arc<str>>, reason: impl Into<Arc<str>>) -> Self {
        Self { rule: rule.into(), reason: reason.into() }
    }
}

/// Name of the decision that asks about writing files from which the user's programs start other programs.
pub(crate) const STARTS_PROGRAMS: &str = "structural-starts-programs";
/// Name of the decision that asks about an address outside the server's allowed hosts.
pub(crate) const DOMAIN_GATE: &str = "structural-domain-escalate";
/// Name of the decision that asks about an unannotated tool.
pub(crate) const UNANNOTATED: &str = "structural-unannotated";
/// Name of the decision that allows a request to a server that can access only what was granted.
pub(crate) const CONFINED: &str = "structural-confined";
/// Name of the decision that allows a call because of a grant.
pub(crate) const GRANT: &str = "grant";

/// Returns `true` if a name is reserved for built-in decisions.
pub(crate) fn is_our_own(name: &str) -> bool {
    name.starts_with("structural-") || [GRANT, DeniedBy::NoRule.name()].contains(&name)
}
