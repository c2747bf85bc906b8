//! The refusal of a call.

use crate::decision::{DeniedBy, RuleReason};
use std::fmt;
use std::sync::Arc;

/// A call that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The ground on which it is refused.
    pub by: DeniedBy,
    /// Name of the rule that refuses, or of the structural answer.
    pub rule: Arc<str>,
    /// Its reason.
    pub reason: Arc<str>,
    /// Every other rule that refuses.
    pub others: Vec<RuleReason>,
}

impl Denial {
    fn structural(by: DeniedBy, reason: impl Into<Arc<str>>) -> Self {
        Self { by, rule: by.name().into(), reason: reason.into(), others: Vec::new() }
    }

    /// Refuses a call whose arguments cannot be understood.
    #[must_use]
    pub fn invalid(reason: impl Into<Arc<str>>) -> Self {
        Self::structural(DeniedBy::InvalidArgument, reason)
    }

    /// Refuses a call that would touch a protected path, or uncover one.
    #[must_use]
    pub fn protected(reason: impl Into<Arc<str>>) -> Self {
        Self::structural(DeniedBy::ProtectedPath, reason)
    }

    /// Refuses a call of a tool that is not annotated.
    pub(crate) fn unknown_tool(reason: String) -> Self {
        Self::structural(DeniedBy::UnknownTool, reason)
    }

    /// Refuses a call that nothing allows.
    pub(crate) fn uncovered(reason: String) -> Self {
        Self::structural(DeniedBy::NoRule, reason)
    }

    /// Refuses a call that a rule denies, and perhaps others.
    pub(crate) fn by_rules(first: &RuleReason, others: Vec<RuleReason>) -> Self {
        Self { by: DeniedBy::Rule, rule: first.rule.clone(), reason: first.reason.clone(), others }
    }

    /// Refuses a call because a value of it could not be turned into a fact (a path with a loop, a remote that git
    /// does not know).
    #[must_use]
    pub fn unresolvable(argument: &str, why: &dyn fmt::Display) -> Self {
        Self::invalid(format!("argument `{argument}`: {why}"))
    }
}
