//! The grounds of a verdict as values: the record keeps them, and whoever tells a person matches on them.

use serde::{Deserialize, Serialize};

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
