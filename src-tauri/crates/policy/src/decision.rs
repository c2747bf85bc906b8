//! Decisions of the judge and the grounds for them, as values that the audit log stores.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Decision of a rule, ordered from lenient to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// Allows the call.
    Allow,
    /// Requires the user's approval.
    Escalate,
    /// Denies the call.
    Deny,
}

/// Ground on which a call is allowed. If several apply, the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllowedBy {
    /// A rule of the policy.
    Rule,
    /// The user's approval of this call.
    Answer,
    /// Every path of the call is in the session sandbox.
    SessionFolder,
    /// A standing grant.
    Grant,
    /// The call lists the allowed folders, which is always permitted.
    Introspection,
    /// A request without a file, to a server that can access only granted resources.
    Confined,
}

/// Ground on which a call is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeniedBy {
    /// A rule of the policy.
    Rule,
    /// No rule, grant or approval covers a value that needs one.
    NoRule,
    /// A path that is protected, or read-only for calls.
    ProtectedPath,
    /// An argument is unknown, invalid, or cannot be resolved.
    InvalidArgument,
    /// The tool is unannotated.
    UnknownTool,
}

impl DeniedBy {
    /// Returns the reserved rule name of a built-in denial; empty for [`Self::Rule`], because rules
    /// have their own names.
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

/// Rule or built-in decision, with its reason.
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
pub(crate) const STARTS_PROGRAMS: &str = "structural-starts-programs";
/// Name of the built-in decision that requires approval for an address outside the server's allowed
/// hosts.
pub(crate) const DOMAIN_GATE: &str = "structural-domain-escalate";
/// Name of the built-in decision that requires approval for an unannotated tool.
pub(crate) const UNANNOTATED: &str = "structural-unannotated";
/// Name of the built-in decision that allows a request to a server that can access only granted
/// resources.
pub(crate) const CONFINED: &str = "structural-confined";
/// Name of the built-in decision that allows a call because of a grant.
pub(crate) const GRANT: &str = "grant";

/// Returns `true` if a rule name is reserved for built-in decisions.
pub(crate) fn is_our_own(name: &str) -> bool {
    name.starts_with("structural-") || [GRANT, DeniedBy::NoRule.name()].contains(&name)
}
