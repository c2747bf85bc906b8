//! Inferred meaning of an argument, with a confidence level and a reason.

use super::Confidence;
use ironcurtain_policy::Role;

/// Meaning of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A file or folder. Its roles depend on the tool's effects.
    Path,
    /// A value with this role, regardless of the tool's effects.
    Role(Role),
}

/// Inferred meaning of an argument, with a confidence level and a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inference {
    pub(super) meaning: Meaning,
    pub(super) confidence: Confidence,
    pub(super) reason: String,
}

impl Inference {
    pub(super) fn new(meaning: Meaning, confidence: Confidence, reason: impl Into<String>) -> Self {
        Self { meaning, confidence, reason: reason.into() }
    }

    pub(super) fn none(confidence: Confidence, reason: impl Into<String>) -> Self {
        Self::new(Meaning::Role(Role::None), confidence, reason)
    }

    pub(super) fn role(role: Role, confidence: Confidence, reason: impl Into<String>) -> Self {
        Self::new(Meaning::Role(role), confidence, reason)
    }

    pub(super) fn path(confidence: Confidence, reason: impl Into<String>) -> Self {
        Self::new(Meaning::Path, confidence, reason)
    }
}
