//! Explains the decision on each value of a call, and why earlier rules did not apply.
//!
//! - Calls the same functions as the judge, so that the explanation and the verdict agree.

use super::Judging;
use super::cover::{self, Match, Mismatch, ValueInRole};
use super::value::JudgedValue;
use crate::{ApprovalSubject, Decision, ResolvedValue, Role, Rule, Verdict};
use std::sync::Arc;

/// Verdict on a call, and the steps that led to it.
#[derive(Debug, PartialEq)]
pub struct Explanation {
    /// One step per value with a judged role. Empty if a built-in check alone decided.
    pub steps: Vec<ExplanationStep>,
    /// Verdict on the call.
    pub verdict: Verdict,
}

/// Decision on one value, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplanationStep {
    /// Role of the value, or `None` if the call is judged as a whole.
    pub role: Option<Role>,
    /// Name of the argument. Empty if the call is judged as a whole.
    pub argument: Arc<str>,
    /// Judged value.
    pub subject: ApprovalSubject,
    /// Rule, grant or check that decided on the value.
    pub settled_by: SettledBy,
    /// `true` if the address is outside the server's allowed hosts, which also requires approval.
    pub gated: bool,
    /// Earlier rules about the tool that did not cover the value, with the conditions that did not hold.
    pub passed: Vec<(Arc<str>, Mismatch)>,
}

/// Rule, grant or check that decided on a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettledBy {
    /// The session sandbox contains all values with this role that are not granted.
    SessionFolder,
    /// The grant with this id.
    Grant(String),
    /// The first rule that covers the value.
    Rule {
        /// Name of the rule.
        name: Arc<str>,
        /// Decision of the rule.
        then: Decision,
        /// Reason of the rule.
        reason: Arc<str>,
    },
    /// The tool is unannotated, and its server's entry requires approval for such tools.
    Unannotated,
    /// The call is a request that names no file, and its server can access only granted resources.
    Confined,
    /// No rule covers the value, so it is denied.
    NoRule,
}

impl SettledBy {
    fn rule(rule: &Rule) -> Self {
        Self::Rule { name: rule.name().clone(), then: rule.then, reason: rule.reason().clone() }
    }
}

impl<'a> Judging<'a> {
    pub(super) fn steps(&self) -> Vec<ExplanationStep> {
        if self.call.roles().is_empty() {
            return vec![self.whole()];
        }
        let command = self.runs_unconfined_command().then(|| self.whole());
        self.call.roles().iter().flat_map(|role| self.role(*role)).chain(command).collect()
    }

    fn whole(&self) -> ExplanationStep {
        let whole = JudgedValue::WHOLE_CALL;
        if self.call.is_unannotated() {
            return self.unannotated(&whole);
        }
        let ruling = self.ruling_for_call();
        if let Some(grant) = self.tool_grant(ruling) {
            return self.step(&whole, SettledBy::Grant(grant.id.clone()), Vec::new());
        }
        if self.is_free_request(ruling) {
            return self.step(&whole, SettledBy::Confined, Vec::new());
        }
        self.by_rules(&whole, |rule| cover::cover_call(rule, self.call, self.context.reach))
    }

    /// Returns the step for a call to an unannotated tool. The tool's resources are unknown, so earlier rules are not
    /// listed.
    fn unannotated(&self, whole: &JudgedValue<'_>) -> ExplanationStep {
        let ruling = self.ruling_for_unannotated();
        let settled_by = match (self.tool_grant(ruling), ruling.decides) {
            (Some(grant), _) => SettledBy::Grant(grant.id.clone()),
            (None, None) => SettledBy::NoRule,
            (None, Some(rule)) if rule.then == Decision::Escalate && !rule.is_managed() => {
                SettledBy::Unannotated
            }
            (None, Some(rule)) => SettledBy::rule(rule),
        };
        self.step(whole, settled_by, Vec::new())
    }

    fn role(&self, role: Role) -> Vec<ExplanationStep> {
        let open = self.is_open(role);
        let steps: Vec<ExplanationStep> =
            self.call.values(role).map(|given| self.value(role, given, open)).collect();
        if !steps.is_empty() {
            return steps;
        }
        let value = ValueInRole { role, given: None };
        if let Some(grant) = self.tool_grant(self.ruling_for(&value)) {
            return vec![self.step(&value.judged(), SettledBy::Grant(grant.id.clone()), Vec::new())];
        }
        vec![self.by_rules(&value.judged(), |rule| value.cover(rule, self.call, self.context.reach))]
    }

    fn value(&self, role: Role, given: &'a ResolvedValue, open: bool) -> ExplanationStep {
        let value = ValueInRole { role, given: Some(given) };
        let judged = value.judged();
        if open && self.is_in_sandbox(given) && self.restriction(role, given).is_none() {
            return self.step(&judged, SettledBy::SessionFolder, Vec::new());
        }
        if let Some(grant) = self.grant_for(&value) {
            return self.step(&judged, SettledBy::Grant(grant.id.clone()), Vec::new());
        }
        if let Some(grant) = self.host_grant_for(&value) {
            return self.step(&judged, SettledBy::Grant(grant.id.clone()), Vec::new());
        }
        let ruling = self.ruling_for(&value);
        if let Some(grant) = self.tool_grant(ruling) {
            return self.step(&judged, SettledBy::Grant(grant.id.clone()), Vec::new());
        }
        let gated = self.is_outside_hosts(&value, ruling.decides);
        ExplanationStep {
            gated,
            ..self.by_rules(&judged, |rule| value.cover(rule, self.call, self.context.reach))
        }
    }

    /// Returns the step for the rule that decides, including the rules before it.
    fn by_rules(
        &self,
        judged: &JudgedValue<'_>,
        cover: impl Fn(&Rule) -> Result<Match, Mismatch>,
    ) -> ExplanationStep {
        let decides = self.ruling(|rules| cover::first(rules, |rule| cover(rule).ok())).decides;
        let before =
            self.rules().take_while(|rule| decides.is_none_or(|decides| decides.name() != rule.name()));
        let passed = before.filter_map(|rule| {
            let in_doubt = |holds: Match| (holds == Match::Possible).then_some(Mismatch::InDoubt);
            let miss = cover(rule).map_or_else(Some, in_doubt)?;
            Some((rule.name().clone(), miss))
        });
        self.step(judged, decides.map_or(SettledBy::NoRule, SettledBy::rule), passed.collect())
    }

    fn step(
        &self,
        judged: &JudgedValue<'_>,
        settled_by: SettledBy,
        passed: Vec<(Arc<str>, Mismatch)>,
    ) -> ExplanationStep {
        let (role, argument) = (judged.role, judged.argument(self.call));
        ExplanationStep { role, argument, subject: judged.subject(), settled_by, gated: false, passed }
    }
}
