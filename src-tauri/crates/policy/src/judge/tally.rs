//! Collects what was found about each value and draws the conclusion, strictest first.

use super::{DEFAULT_DENY, DOMAIN_GATE, GRANT};
use crate::domains::Destination;
use crate::{
    Asked, Decision, Denial, Escalation, Grant, HostGrant, Permit, Reason, Resource, Role, Rule, SharedStr,
    Subject, Verdict,
};

/// Findings so far.
#[derive(Default)]
pub(super) struct Tally {
    denied: Option<Denial>,
    uncovered: Option<String>,
    gated: Vec<Asked>,
    asked: Vec<Asked>,
    allowed: Vec<Reason>,
    settled: Vec<Reason>,
    grants: Vec<String>,
}

/// What a finding is about.
pub(super) struct Finding<'a> {
    /// The role; nothing when it is about the call as a whole.
    pub(super) role: Option<Role>,
    pub(super) argument: Option<&'a SharedStr>,
    pub(super) value: Option<&'a Resource>,
}

/// A permit that rests on structure alone.
pub(super) fn permit(rule: SharedStr, reason: SharedStr) -> Verdict {
    Verdict::Allow(Permit::new(vec![Reason { rule, reason }], Vec::new()))
}

impl Tally {
    /// The first rule that covers the subject decides; without one it is left over.
    pub(super) fn add(&mut self, finding: &Finding<'_>, rule: Option<&Rule>) {
        let Some(rule) = rule else {
            self.uncovered.get_or_insert_with(|| finding.describe());
            return;
        };
        match rule.then {
            Decision::Allow => push(&mut self.allowed, &rule.name, &rule.reason),
            Decision::Escalate => self.asked.push(finding.asked(&rule.name, &rule.reason)),
            Decision::Deny => {
                self.denied.get_or_insert_with(|| Denial::new(rule.name.clone(), rule.reason.clone()));
            }
        }
    }

    /// A value needs nothing more.
    pub(super) fn settle(&mut self, rule: SharedStr, reason: SharedStr) {
        push(&mut self.settled, &rule, &reason);
    }

    /// A grant covers a value.
    pub(super) fn granted(&mut self, grant: &Grant) {
        if !self.grants.contains(&grant.id) {
            self.grants.push(grant.id.clone());
        }
        push(&mut self.settled, &GRANT, &format!("grant `{}` for `{}`", grant.id, grant.path).into());
    }

    /// A grant opens the host of an address to its server.
    pub(super) fn opened(&mut self, grant: &HostGrant) {
        if !self.grants.contains(&grant.id) {
            self.grants.push(grant.id.clone());
        }
        let reason = format!("grant `{}` for `{}:{}`", grant.id, grant.host, grant.port);
        push(&mut self.settled, &GRANT, &reason.into());
    }

    /// An address is outside the hosts its server may reach.
    pub(super) fn gate(&mut self, finding: &Finding<'_>, destination: &Destination, server: &str) {
        let place = destination.domain().unwrap_or(destination.text());
        let reason = format!("`{place}` is not among the hosts of the server `{server}`");
        self.gated.push(finding.asked(&DOMAIN_GATE, &reason.into()));
    }

    /// The verdict, less what a person said yes to.
    pub(super) fn conclude(mut self, approved: &[Asked]) -> Verdict {
        if let Some(denial) = self.denied {
            return Verdict::Deny(denial);
        }
        let mut reasons = self.allowed;
        let mut is_open = |asked: &Asked| {
            let answered = approved.iter().any(|approved| asked.is_answered_by(approved));
            if answered {
                push(&mut reasons, &asked.rule, &format!("approved: {}", asked.reason).into());
            }
            !answered
        };
        self.gated.retain(&mut is_open);
        self.asked.retain(is_open);
        if let Some(left) = self.uncovered.filter(|_| self.gated.is_empty()) {
            return Verdict::Deny(Denial::new(DEFAULT_DENY, format!("no rule covers {left}")));
        }
        if reasons.is_empty() {
            reasons = self.settled;
        } else {
            reasons.extend(self.settled);
        }
        let values = merge(self.gated, self.asked);
        match values.first() {
            None => Verdict::Allow(Permit::new(reasons, self.grants)),
            Some(first) => {
                let (rule, reason) = (first.rule.clone(), first.reason.clone());
                let reasons = reasons_of(&values, reasons);
                Verdict::Escalate(Escalation { rule, reason, values, reasons })
            }
        }
    }
}

/// What is asked, each once: a gate asks about a value before a rule does.
fn merge(gated: Vec<Asked>, asked: Vec<Asked>) -> Vec<Asked> {
    if gated.is_empty() && asked.len() < 2 {
        return asked;
    }
    let mut values: Vec<Asked> = Vec::with_capacity(gated.len() + asked.len());
    for asked in gated.into_iter().chain(asked) {
        if !values.iter().any(|value| asked.is_answered_by(value)) {
            values.push(asked);
        }
    }
    values
}

/// Why something is asked, and then what else was said.
fn reasons_of(values: &[Asked], others: Vec<Reason>) -> Vec<Reason> {
    let mut reasons = Vec::new();
    values.iter().for_each(|asked| push(&mut reasons, &asked.rule, &asked.reason));
    reasons.extend(others);
    reasons
}

impl Finding<'_> {
    /// About the call as a whole.
    pub(super) const WHOLE: Self = Self { role: None, argument: None, value: None };

    fn asked(&self, rule: &SharedStr, reason: &SharedStr) -> Asked {
        Asked {
            role: self.role,
            argument: self.argument(),
            subject: self.subject(),
            rule: rule.clone(),
            reason: reason.clone(),
        }
    }

    pub(super) fn argument(&self) -> SharedStr {
        self.argument.cloned().unwrap_or_default()
    }

    pub(super) fn subject(&self) -> Subject {
        match self.value {
            None if self.role.is_none() => Subject::Call,
            None => Subject::Absent,
            Some(Resource::Path(path)) => Subject::Path(path.clone()),
            Some(Resource::Url(destination)) => Subject::Text(destination.text().into()),
            Some(Resource::Text(text)) => Subject::Text(text.clone()),
            Some(Resource::Shapeless) => Subject::Text(SharedStr::default()),
        }
    }

    fn describe(&self) -> String {
        match self.role {
            Some(role) => format!("`{}` as `{role}`", self.subject()),
            None => "this tool".to_owned(),
        }
    }
}

/// Adds a reason once.
fn push(reasons: &mut Vec<Reason>, rule: &SharedStr, reason: &SharedStr) {
    if !reasons.iter().any(|known| known.rule == *rule && known.reason == *reason) {
        reasons.push(Reason { rule: rule.clone(), reason: reason.clone() });
    }
}
