//! What settled each value of a call, and why the rules before did not: the judge's own way, written down.
//!
//! - Asks the same questions as judging, so that it cannot tell another story.

use super::Judging;
use super::cover::{self, Holds, Scope};
use super::tally::Finding;
use crate::{Decision, Given, Role, Rule, SharedStr, Subject, Verdict};

/// A verdict and the way to it.
#[derive(Debug, PartialEq, Eq)]
pub struct Explanation {
    /// One for each value of each judged role; none when structure alone decided.
    pub steps: Vec<Step>,
    /// The verdict of them all.
    pub verdict: Verdict,
}

/// What became of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// In which role; nothing when the call is judged as a whole.
    pub role: Option<Role>,
    /// The argument it came in; empty when the call gives none.
    pub argument: SharedStr,
    /// What is judged.
    pub subject: Subject,
    /// What settled it.
    pub settled: Settled,
    /// Whether it leads outside the hosts of its server, which asks besides.
    pub gated: bool,
    /// The rules about the tool that came before and did not cover it.
    pub passed: Vec<(SharedStr, Miss)>,
}

/// What settled a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It is in the session sandbox, like all others of its role.
    Sandbox,
    /// The grant with this id.
    Grant(String),
    /// The first rule that covers it.
    Rule {
        /// Its name.
        name: SharedStr,
        /// What it decides.
        then: Decision,
        /// Why.
        reason: SharedStr,
    },
    /// No rule: denied.
    Nothing,
}

/// Why a rule does not cover a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// It is about other roles.
    OtherRoles,
    /// It is about another folder.
    NotWithin,
    /// A value of the role leads elsewhere.
    NotInDomains,
    /// A value is not on a list.
    NotListed,
    /// It is about resources, and the tool names none.
    NoResource,
    /// Whether it is meant for the value is not known, and a stricter rule stands after it.
    InDoubt,
}

impl<'a> Judging<'a> {
    pub(super) fn steps(&self) -> Vec<Step> {
        if self.call.roles().is_empty() {
            return vec![self.whole()];
        }
        self.call.roles().iter().flat_map(|role| self.role(*role)).collect()
    }

    fn whole(&self) -> Step {
        let whole = Finding::WHOLE;
        self.by_rules(&whole, |rule| cover::cover_call(rule, self.call).ok_or(Miss::NoResource))
    }

    fn role(&self, role: Role) -> Vec<Step> {
        let open = self.is_open(role);
        let steps: Vec<Step> = self.call.values(role).map(|given| self.value(role, given, open)).collect();
        if !steps.is_empty() {
            return steps;
        }
        let scope = Scope { role, given: None };
        vec![self.by_rules(&scope.finding(), |rule| scope.cover(rule, self.call))]
    }

    fn value(&self, role: Role, given: &'a Given, open: bool) -> Step {
        let scope = Scope { role, given: Some(given) };
        let finding = scope.finding();
        if open && self.is_in_sandbox(given) {
            return self.step(&finding, Settled::Sandbox, Vec::new());
        }
        if let Some(grant) = self.grant_for(&scope) {
            return self.step(&finding, Settled::Grant(grant.id.clone()), Vec::new());
        }
        if let Some(grant) = self.host_grant_for(&scope) {
            return self.step(&finding, Settled::Grant(grant.id.clone()), Vec::new());
        }
        let gated = self.is_outside_gate(&scope, self.rule_for(&scope));
        Step { gated, ..self.by_rules(&finding, |rule| scope.cover(rule, self.call)) }
    }

    /// Goes through the rules until one decides about what is judged.
    fn by_rules(&self, finding: &Finding<'_>, cover: impl Fn(&Rule) -> Result<Holds, Miss>) -> Step {
        let mut passed = Vec::new();
        let decides = cover::first(self.rules(), |rule| {
            let covers = cover(rule);
            let miss = covers.map_or_else(Some, |holds| (holds == Holds::InDoubt).then_some(Miss::InDoubt));
            passed.extend(miss.map(|miss| (rule.name().clone(), miss)));
            covers.ok()
        });
        let Some(rule) = decides else { return self.step(finding, Settled::Nothing, passed) };
        let (name, reason) = (rule.name().clone(), rule.reason().clone());
        // What was passed on the way to a rule ends there.
        let before = passed.into_iter().take_while(|(passed, _)| *passed != name).collect();
        self.step(finding, Settled::Rule { name, then: rule.then, reason }, before)
    }

    fn step(&self, finding: &Finding<'_>, settled: Settled, passed: Vec<(SharedStr, Miss)>) -> Step {
        let (role, argument) = (finding.role, finding.argument(self.call));
        Step { role, argument, subject: finding.subject(), settled, gated: false, passed }
    }
}
