//! Explains how each value of a call was decided, and why earlier rules did not apply.
//!
//! - Uses the judge's own functions, so that the explanation cannot differ from the verdict.

use super::Judging;
use super::cover::{self, Match, Mismatch, ValueInRole};
use super::value::JudgedValue;
use crate::{ApprovalSubject, Decision, ResolvedValue, Role, Rule, Verdict};
use std::sync::Arc;

/// A verdict and the steps that led to it.
#[derive(Debug, PartialEq)]
pub struct Explanation {
    /// One step per value of each judged role; empty if a built-in check decided alone.
    pub steps: Vec<ExplanationStep>,
    /// Resulting verdict.
    pub verdict: Verdict,
}

/// Decision on one value, and its ground.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplanationStep {
    /// Role of the value; `None` if the call is judged as a whole.
    pub role: Option<Role>,
    /// Argument of the value; empty for the whole call.
    pub argument: Arc<str>,
    /// Judged value.
    pub subject: ApprovalSubject,
    /// Ground of the decision.
    pub settled_by: SettledBy,
    /// Set if the address is outside the server's hosts, which requires approval too.
    pub gated: bool,
    /// Earlier rules about the tool that did not cover the value.
    pub passed: Vec<(Arc<str>, Mismatch)>,
}

/// Ground on which a value was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettledBy {
    /// It is in the session sandbox, like all others of its role.
    SessionFolder,
    /// The grant with this id.
    Grant(String),
    /// The first rule that covers it.
    Rule {
        /// Name of the rule.
        name: Arc<str>,
        /// Decision of the rule.
        then: Decision,
        /// Reason of the rule.
        reason: Arc<str>,
    },
    /// The tool is unannotated, and its server's entry says to ask.
    Unannotated,
    /// It is a request without a file, and its server can access only what was granted.
    Confined,
    /// No rule covers it, so the judge denies it.
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
        let rule = self.rule_for_call();
        if let Some(grant) = self.tool_grant(rule) {
            return self.step(&whole, SettledBy::Grant(grant.id.clone()), Vec::new());
        }
        if self.is_free_request(rule) {
            return self.step(&whole, SettledBy::Confined, Vec::new());
        }
        self.by_rules(&whole, |rule| cover::cover_call(rule, self.call, self.context.reach))
    }

    /// Returns the step of a call with unknown resources. Without them it is unknown which earlier rules apply.
    fn unannotated(&self, whole: &JudgedValue<'_>) -> ExplanationStep {
        let rule = self.rule_for_unannotated();
        let settled_by = match (self.tool_grant(rule), rule) {
            (Some(grant), _) => SettledBy::Grant(grant.id.clone()),
            (None, None) => SettledBy::NoRule,
            (None, Some(rule)) if rule.then == Decision::Escalate => SettledBy::Unannotated,
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
        if let Some(grant) = self.tool_grant(self.rule_for(&value)) {
            return vec![self.step(&value.judged(), SettledBy::Grant(grant.id.clone()), Vec::new())];
        }
        vec![self.by_rules(&value.judged(), |rule| value.cover(rule, self.call, self.context.reach))]
    }

    fn value(&self, role: Role, given: &'a ResolvedValue, open: bool) -> ExplanationStep {
        let value = ValueInRole { role, given: Some(given) };
        let judged = value.judged();
        if open && self.is_in_sandbox(given) {
            return self.step(&judged, SettledBy::SessionFolder, Vec::new());
        }
        if let Some(grant) = self.grant_for(&value) {
            return self.step(&judged, SettledBy::Grant(grant.id.clone()), Vec::new());
        }
        if let Some(grant) = self.host_grant_for(&value) {
            return self.step(&judged, SettledBy::Grant(grant.id.clone()), Vec::new());
        }
        let rule = self.rule_for(&value);
        if let Some(grant) = self.tool_grant(rule) {
            return self.step(&judged, SettledBy::Grant(grant.id.clone()), Vec::new());
        }
        let gated = self.is_outside_hosts(&value, rule);
        ExplanationStep {
            gated,
            ..self.by_rules(&judged, |rule| value.cover(rule, self.call, self.context.reach))
        }
    }

    /// Tries the rules until one decides.
    fn by_rules(
        &self,
        judged: &JudgedValue<'_>,
        cover: impl Fn(&Rule) -> Result<Match, Mismatch>,
    ) -> ExplanationStep {
        let mut passed = Vec::new();
        let decides = cover::first(self.rules(), |rule| {
            let covers = cover(rule);
            let miss =
                covers.map_or_else(Some, |holds| (holds == Match::Possible).then_some(Mismatch::InDoubt));
            passed.extend(miss.map(|miss| (rule.name().clone(), miss)));
            covers.ok()
        });
        let Some(rule) = decides else { return self.step(judged, SettledBy::NoRule, passed) };
        // Rules from the deciding one on were not passed.
        let before = passed.into_iter().take_while(|(passed, _)| passed != rule.name()).collect();
        self.step(judged, SettledBy::rule(rule), before)
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
