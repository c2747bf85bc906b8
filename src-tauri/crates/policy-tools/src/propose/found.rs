//! An argument's meaning, with the confidence in it and the reason.

use super::Confidence;
use ironcurtain_policy::Role;

/// Meaning of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A file or folder. Its roles depend on the tool's effects.
    Path,
    /// A value with this role, whatever the tool's effects.
    Is(Role),
}

/// An argument's meaning, with the confidence in it and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) meaning: Meaning,
    pub(super) confidence: Confidence,
    pub(super) reason: String,
}

impl Found {
    pub(super) fn new(meaning: Meaning, confidence: Confidence, reason: impl Into<String>) -> Self {
        Self { meaning, confidence, reason: reason.into() }
    }

    pub(super) fn none(confidence: Confidence, reason: impl Into<String>) -> Self {
        Self::new(Meaning::Is(Role::None), confidence, reason)
    }

    pub(super) fn is(role: Role, confidence: Confidence, reason: impl Into<String>) -> Self {
        Self::new(Meaning::Is(role), confidence, reason)
    }

    pub(super) fn path(confidence: Confidence, reason: impl Into<String>) -> Self {
        Self::new(Meaning::Path, confidence, reason)
    }
}
