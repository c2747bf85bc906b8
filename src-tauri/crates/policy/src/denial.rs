//! Denied calls and the reasons for the denials.

use crate::decision::{DeniedBy, RuleReason};
use std::fmt;
use std::sync::Arc;

/// Denial of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Category of the reason.
    pub by: DeniedBy,
    /// Name of the rule or built-in decision.
    pub rule: Arc<str>,
    /// Reason shown to the agent and the user.
    pub reason: Arc<str>,
    /// Other rules that also deny the call.
    pub others: Vec<RuleReason>,
}

impl Denial {
    fn structural(by: DeniedBy, reason: impl Into<Arc<str>>) -> Self {
        Self { by, rule: by.name().into(), reason: reason.into(), others: Vec::new() }
    }

    /// Creates the denial of a call with invalid arguments.
    #[must_use]
    pub fn invalid(reason: impl Into<Arc<str>>) -> Self {
        Self::structural(DeniedBy::InvalidArgument, reason)
    }

    /// Creates the denial of a call that would access or expose a protected path.
    #[must_use]
    pub fn protected(reason: impl Into<Arc<str>>) -> Self {
        Self::structural(DeniedBy::ProtectedPath, reason)
    }

    /// Creates the denial of a call to an unannotated tool.
    pub(crate) fn unknown_tool(reason: String) -> Self {
        Self::structural(DeniedBy::UnknownTool, reason)
    }

    /// Creates the denial of a call that no rule, grant or approval covers.
    pub(crate) fn uncovered(reason: String) -> Self {
        Self::structural(DeniedBy::NoRule, reason)
    }

    /// Creates the denial of a call that one or more rules deny.
    pub(crate) fn by_rules(first: &RuleReason, others: Vec<RuleReason>) -> Self {
        Self { by: DeniedBy::Rule, rule: first.rule.clone(), reason: first.reason.clone(), others }
    }

    /// Creates the denial of a call with a value that could not be resolved, such as a path with a
    /// symlink loop.
    #[must_use]
    pub fn unresolvable(argument: &str, why: &dyn fmt::Display) -> Self {
        Self::invalid(format!("argument `{argument}`: {why}"))
    }
}
