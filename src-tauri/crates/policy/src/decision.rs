//! Decisions of the judge and the reasons for them, in the form that the audit log stores.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Decision of a rule. The variants are ordered from lenient to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// Allows the call.
    Allow,
    /// Requires the user's approval.
    Escalate,
    /// Denies the call.
    Deny,
}

impl Decision {
    /// Returns the decision's keyword in policy files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Escalate => "escalate",
            Self::Deny => "deny",
        }
    }
}

/// Reason a call is allowed. If several reasons apply, a rule takes precedence, followed by an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllowedBy {
    /// A policy rule allows the call.
    Rule,
    /// The user approved this call.
    Answer,
    /// Every path in the call is in the session sandbox.
    SessionFolder,
    /// A standing grant allows the call.
    Grant,
    /// The call only lists the allowed folders, which is always permitted.
    Introspection,
    /// The call is a request that names no file, and the server can access only granted resources.
    Confined,
}

/// Reason a call is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeniedBy {
    /// A policy rule denies the call.
    Rule,
    /// A value is not covered by a rule, grant or approval.
    NoRule,
    /// A path is protected, or the call would change a read-only path.
    ProtectedPath,
    /// An argument is unknown or invalid, or it cannot be resolved.
    InvalidArgument,
    /// The tool is unannotated.
    UnknownTool,
}

impl DeniedBy {
    /// Returns the reserved rule name of a built-in denial. Empty for [`Self::Rule`], because rules have their own
    /// names.
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

/// A rule or built-in decision, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleReason {
    /// Name of the rule or built-in decision.
    pub rule: Arc<str>,
    /// Reason shown to the agent and the user.
    pub reason: Arc<str>,
}

impl RuleReason {
    /// Creates a reason from a rule name and an explanation.
    #[must_use]
    pub fn new(rule: impl Into<Arc<str>>, reason: impl Into<Arc<str>>) -> Self {
        Self { rule: rule.into(), reason: reason.into() }
    }
}

/// Name of the built-in decision that requires approval to write an autostart file.
pub(crate) const AUTOSTART_FILE: &str = "structural-starts-programs";
/// Name of the built-in decision that requires approval for an address outside the server's allowed hosts.
pub(crate) const OUTSIDE_ALLOWED_HOSTS: &str = "structural-domain-escalate";
/// Name of the built-in decision that requires approval for an unannotated tool.
pub(crate) const UNANNOTATED: &str = "structural-unannotated";
/// Name of the built-in decision that allows a request to a server that can access only granted
/// resources.
pub(crate) const CONFINED: &str = "structural-confined";
/// Name of the built-in decision that allows a call because of a grant.
pub(crate) const GRANT: &str = "grant";

/// Prefix of managed rules' names. The user's rules cannot use it.
pub(crate) const MANAGED_PREFIX: &str = "managed:";

/// Returns `true` if a rule name is reserved for built-in decisions.
pub(crate) fn is_reserved_name(name: &str) -> bool {
    name.starts_with("structural-")
        || name.starts_with(MANAGED_PREFIX)
        || [GRANT, DeniedBy::NoRule.name()].contains(&name)
}
