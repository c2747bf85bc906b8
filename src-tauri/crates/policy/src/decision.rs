//! The decisions of the judge, and their grounds as values: the record keeps them, and whoever tells a person matches on
//! them.

use crate::{Shared, SharedStr};
use serde::{Deserialize, Serialize};

/// What a rule decides, the strictest last.
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

/// A rule that spoke, and why. Shared, since it goes into every verdict.
pub type Reason = Shared<Spoken>;

/// What a [`Reason`] holds.
#[derive(Debug, PartialEq, Eq)]
pub struct Spoken {
    /// Its name, or the name of a structural answer.
    pub rule: SharedStr,
    /// Why.
    pub reason: SharedStr,
}

/// Rule name: what is written has a program of the person's start others.
pub(crate) const STARTS_PROGRAMS: SharedStr = SharedStr::fixed("structural-starts-programs");
/// Rule name: an address outside the hosts of its server.
pub(crate) const DOMAIN_GATE: SharedStr = SharedStr::fixed("structural-domain-escalate");
/// Rule name: a grant.
pub(crate) const GRANT: SharedStr = SharedStr::fixed("grant");

/// Whether a name is one that verdicts give to what no rule decides.
pub(crate) fn is_our_own(name: &str) -> bool {
    name.starts_with("structural-") || [&*GRANT, DeniedBy::NoRule.name()].contains(&name)
}
