//! The ground on which each value of a call was decided, and why the rules before did not: the judge's own way, written
//! down.
//!
//! - Asks the same questions as judging, so that it cannot tell another story.

use super::Judging;
use super::cover::{self, Match, Mismatch, ValueInRole};
use super::value::JudgedValue;
use crate::{ApprovalSubject, Decision, ResolvedValue, Role, Rule, Verdict};
use std::sync::Arc;

/// A verdict and the way to it.
#[derive(Debug, PartialEq)]
pub struct Explanation {
    /// One for each value of each judged role; none when structure alone decided.
    pub steps: Vec<ExplanationStep>,
    /// The verdict of them all.
    pub verdict: Verdict,
}

/// The decision about one value, and its ground.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplanationStep {
    /// In which role; nothing when the call is judged as a whole.
    pub role: Option<Role>,
    /// The argument it came in; empty when the call gives none.
    pub argument: Arc<str>,
    /// The value that is judged.
    pub subject: ApprovalSubject,
    /// The ground on which it was decided.
    pub settled_by: SettledBy,
    /// The value leads outside the hosts of its server, which asks besides.
    pub gated: bool,
    /// The rules about the tool that came before and did not cover it.
    pub passed: Vec<(Arc<str>, Mismatch)>,
}

/// The ground on which a value was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettledBy {
    /// It is in the session sandbox, like all others of its role.
    SessionFolder,
    /// The grant with this id.
    Grant(String),
    /// The first rule that covers it.
    Rule {
        /// Its name.
        name: Arc<str>,
        /// Its decision.
        then: Decision,
        /// Why.
        reason: Arc<str>,
    },
    /// Nobody has annotated the tool, and its server's entry says to ask about such a one.
    Unannotated,
    /// It is a request that names no file, and its server reaches nothing beyond the grants.
    Confined,
    /// No rule: denied.
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

    /// The step of a call of which nobody knows what it names. No rule before the one that decides can be said to miss it.
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

    /// Goes through the rules until one decides about what is judged.
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
        // What was passed on the way to a rule ends there.
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
