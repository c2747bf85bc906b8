//! Refused calls.

use crate::decision::{DeniedBy, RuleReason};
use std::fmt;
use std::sync::Arc;

/// Refusal of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Ground of the refusal.
    pub by: DeniedBy,
    /// Name of the rule or built-in decision.
    pub rule: Arc<str>,
    /// Reason.
    pub reason: Arc<str>,
    /// Other rules that also refuse the call.
    pub others: Vec<RuleReason>,
}

impl Denial {
    fn structural(by: DeniedBy, reason: impl Into<Arc<str>>) -> Self {
        Self { by, rule: by.name().into(), reason: reason.into(), others: Vec::new() }
    }

    /// Refuses a call with invalid arguments.
    #[must_use]
    pub fn invalid(reason: impl Into<Arc<str>>) -> Self {
        Self::structural(DeniedBy::InvalidArgument, reason)
    }

    /// Refuses a call that would access or expose a protected path.
    #[must_use]
    pub fn protected(reason: impl Into<Arc<str>>) -> Self {
        Self::structural(DeniedBy::ProtectedPath, reason)
    }

    /// Refuses a call of an unannotated tool.
    pub(crate) fn unknown_tool(reason: String) -> Self {
        Self::structural(DeniedBy::UnknownTool, reason)
    }

    /// Refuses a call that nothing allows.
    pub(crate) fn uncovered(reason: String) -> Self {
        Self::structural(DeniedBy::NoRule, reason)
    }

    /// Refuses a call denied by one or more rules.
    pub(crate) fn by_rules(first: &RuleReason, others: Vec<RuleReason>) -> Self {
        Self { by: DeniedBy::Rule, rule: first.rule.clone(), reason: first.reason.clone(), others }
    }

    /// Refuses a call because a value could not be resolved, such as a path with a loop or a remote unknown to git.
    #[must_use]
    pub fn unresolvable(argument: &str, why: &dyn fmt::Display) -> Self {
        Self::invalid(format!("argument `{argument}`: {why}"))
    }
}
