//! Explains the decision on each value of a call, and why earlier rules did not apply.
//!
//! - Calls the same functions as the judge, so the explanation and the verdict agree.

use super::CallJudge;
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
    pub basis: StepBasis,
    /// `true` if the address is outside the server's allowed hosts, which also requires approval.
    pub outside_allowed_hosts: bool,
    /// Earlier rules about the tool that did not cover the value, with the conditions that did not hold.
    pub skipped_rules: Vec<(Arc<str>, Mismatch)>,
}

/// Rule, grant or check that decided on a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepBasis {
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

impl StepBasis {
    fn from_rule(rule: &Rule) -> Self {
        Self::Rule { name: rule.name().clone(), then: rule.then, reason: rule.reason().clone() }
    }
}

impl<'a> CallJudge<'a> {
    pub(super) fn steps(&self) -> Vec<ExplanationStep> {
        if self.call.roles().is_empty() {
            return vec![self.whole_call_step()];
        }
        let command = self.runs_unconfined_command().then(|| self.whole_call_step());
        self.call.roles().iter().flat_map(|role| self.role_steps(*role)).chain(command).collect()
    }

    fn whole_call_step(&self) -> ExplanationStep {
        let whole_call = JudgedValue::WHOLE_CALL;
        if self.call.is_unannotated() {
            return self.unannotated_step(&whole_call);
        }
        let ruling = self.ruling_for_call();
        if let Some(grant) = self.tool_grant(ruling) {
            return self.step(&whole_call, StepBasis::Grant(grant.id.clone()), Vec::new());
        }
        if self.is_allowed_as_confined(ruling) {
            return self.step(&whole_call, StepBasis::Confined, Vec::new());
        }
        self.rule_step(&whole_call, |rule| cover::cover_call(rule, self.call, self.context.reach))
    }

    /// Returns the step for a call to an unannotated tool. The tool's resources are unknown, so earlier rules are not
    /// listed.
    fn unannotated_step(&self, whole_call: &JudgedValue<'_>) -> ExplanationStep {
        let ruling = self.ruling_for_unannotated();
        let basis = match (self.tool_grant(ruling), ruling.decider) {
            (Some(grant), _) => StepBasis::Grant(grant.id.clone()),
            (None, None) => StepBasis::NoRule,
            (None, Some(rule)) if rule.then == Decision::Escalate && !rule.is_managed() => {
                StepBasis::Unannotated
            }
            (None, Some(rule)) => StepBasis::from_rule(rule),
        };
        self.step(whole_call, basis, Vec::new())
    }

    fn role_steps(&self, role: Role) -> Vec<ExplanationStep> {
        let covered = self.is_covered_without_rules(role);
        let steps: Vec<ExplanationStep> =
            self.call.values(role).map(|given| self.value_step(role, given, covered)).collect();
        if !steps.is_empty() {
            return steps;
        }
        let value = ValueInRole { role, given: None };
        if let Some(grant) = self.tool_grant(self.ruling_for(&value)) {
            return vec![self.step(&value.judged(), StepBasis::Grant(grant.id.clone()), Vec::new())];
        }
        vec![self.rule_step(&value.judged(), |rule| value.cover(rule, self.call, self.context.reach))]
    }

    fn value_step(&self, role: Role, given: &'a ResolvedValue, covered: bool) -> ExplanationStep {
        let value = ValueInRole { role, given: Some(given) };
        let judged = value.judged();
        if covered && self.is_in_sandbox(given) && self.restriction(role, given).is_none() {
            return self.step(&judged, StepBasis::SessionFolder, Vec::new());
        }
        if let Some(grant) = self.grant_for(&value) {
            return self.step(&judged, StepBasis::Grant(grant.id.clone()), Vec::new());
        }
        if let Some(grant) = self.host_grant_for(&value) {
            return self.step(&judged, StepBasis::Grant(grant.id.clone()), Vec::new());
        }
        let ruling = self.ruling_for(&value);
        if let Some(grant) = self.tool_grant(ruling) {
            return self.step(&judged, StepBasis::Grant(grant.id.clone()), Vec::new());
        }
        let outside_allowed_hosts = self.is_outside_hosts(&value, ruling.decider);
        ExplanationStep {
            outside_allowed_hosts,
            ..self.rule_step(&judged, |rule| value.cover(rule, self.call, self.context.reach))
        }
    }

    /// Returns the step for the rule that decides, including the rules before it.
    fn rule_step(
        &self,
        judged: &JudgedValue<'_>,
        cover: impl Fn(&Rule) -> Result<Match, Mismatch>,
    ) -> ExplanationStep {
        let decider = self.ruling(|rules| cover::first_match(rules, |rule| cover(rule).ok())).decider;
        let before =
            self.rules().take_while(|rule| decider.is_none_or(|decider| decider.name() != rule.name()));
        let skipped_rules = before.filter_map(|rule| {
            let uncertain = |certainty: Match| (certainty == Match::Possible).then_some(Mismatch::Uncertain);
            let mismatch = cover(rule).map_or_else(Some, uncertain)?;
            Some((rule.name().clone(), mismatch))
        });
        self.step(judged, decider.map_or(StepBasis::NoRule, StepBasis::from_rule), skipped_rules.collect())
    }

    fn step(
        &self,
        judged: &JudgedValue<'_>,
        basis: StepBasis,
        skipped_rules: Vec<(Arc<str>, Mismatch)>,
    ) -> ExplanationStep {
        let (role, argument) = (judged.role, judged.argument(self.call));
        ExplanationStep {
            role,
            argument,
            subject: judged.subject(),
            basis,
            outside_allowed_hosts: false,
            skipped_rules,
        }
    }
}
