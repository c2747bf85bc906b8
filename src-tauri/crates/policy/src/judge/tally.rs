//! Collects what was found about each value and draws the conclusion, strictest first.
//!
//! - Findings are borrowed: names and reasons are copied for the verdict alone.

use super::SANDBOX;
use crate::decision::{DOMAIN_GATE, GRANT, STARTS_PROGRAMS};
use crate::{
    AllowedBy, Asked, Decision, Denial, Escalation, Few, Given, Grant, HostGrant, Permit, Reason,
    ResolvedCall, Resource, Role, Rule, SharedStr, Spoken, Subject, Verdict,
};
use ironcurtain_paths::protected::Known;
use std::fmt;

/// Findings so far.
#[derive(Default)]
pub(super) struct Tally<'a> {
    denied: Few<&'a Rule>,
    uncovered: Option<Finding<'a>>,
    starting: Few<(Finding<'a>, &'static Known)>,
    gated: Few<Gated<'a>>,
    asked: Few<(Finding<'a>, &'a Rule)>,
    allowed: Few<&'a Rule>,
    settled: Few<Settled<'a>>,
}

/// What a finding is about.
#[derive(Clone, Copy)]
pub(super) struct Finding<'a> {
    /// The role; nothing when it is about the call as a whole.
    pub(super) role: Option<Role>,
    /// The value; nothing when the call gives none.
    pub(super) given: Option<&'a Given>,
}

/// An address outside the hosts that its server may reach.
struct Gated<'a> {
    finding: Finding<'a>,
    /// Whether it is certain that it is not meant to be open, so that there is something to ask about.
    is_certain: bool,
}

/// What settles a value without a rule.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Settled<'a> {
    /// It is in the session sandbox.
    Sandbox,
    /// A grant covers it.
    Grant(&'a Grant),
    /// A grant opens the host of the address to its server.
    Host(&'a HostGrant),
}

/// What allows a call, so far: every reason once, and the ground of the first.
#[derive(Default)]
struct Grounds {
    by: Option<AllowedBy>,
    reasons: Few<Reason>,
}

impl Grounds {
    fn add(&mut self, by: AllowedBy, reason: Reason) {
        self.by.get_or_insert(by);
        push(&mut self.reasons, reason);
    }
}

/// A permit that rests on structure alone.
pub(super) fn permit(by: AllowedBy, reason: Reason) -> Verdict {
    Verdict::Allow(Permit::new(by, Few::from([reason]), Vec::new()))
}

impl<'a> Tally<'a> {
    /// The first rule that covers the subject decides; without one it is left over.
    pub(super) fn add(&mut self, finding: Finding<'a>, rule: Option<&'a Rule>) {
        let Some(rule) = rule else {
            self.uncovered.get_or_insert(finding);
            return;
        };
        match rule.then {
            Decision::Allow => self.allowed.push(rule),
            Decision::Escalate => self.asked.push((finding, rule)),
            Decision::Deny => self.denied.push(rule),
        }
    }

    /// A value needs nothing more.
    pub(super) fn settle(&mut self, by: Settled<'a>) {
        if !self.settled.contains(&by) {
            self.settled.push(by);
        }
    }

    /// What is written says what a client starts. That is asked about whatever allows it.
    pub(super) fn ask_about_start(&mut self, finding: Finding<'a>, known: &'static Known) {
        self.starting.push((finding, known));
    }

    /// An address is outside the hosts its server may reach.
    pub(super) fn gate(&mut self, finding: Finding<'a>, is_certain: bool) {
        self.gated.push(Gated { finding, is_certain });
    }

    /// The verdict about the call, less what a person said yes to.
    pub(super) fn conclude(&self, call: &ResolvedCall, approved: &[Asked]) -> Verdict {
        if let [first, rest @ ..] = self.denied.as_slice() {
            return Verdict::Deny(denial(first, rest));
        }
        let mut grounds = Grounds::default();
        self.allowed.iter().for_each(|rule| grounds.add(AllowedBy::Rule, rule.said.clone()));
        let mut values = Few::new();
        let mut is_open = |asked: Asked| {
            let answered = approved.iter().any(|approved| asked.is_answered_by(approved));
            if answered {
                let reason = format!("approved: {}", asked.by.reason).into();
                grounds.add(AllowedBy::Answer, Spoken { rule: asked.by.rule.clone(), reason }.into());
            } else if !values.iter().any(|value| asked.is_answered_by(value)) {
                values.push(asked);
            }
            !answered
        };
        for (finding, known) in &self.starting {
            is_open(finding.asked_about_start(call, known));
        }
        // A gate asks about a value before a rule does. It goes before what no rule covers where it knows what it asks about.
        let mut gates = 0;
        for gated in &self.gated {
            gates += usize::from(is_open(gated.finding.asked_by_gate(call)) && gated.is_certain);
        }
        for (finding, rule) in &self.asked {
            is_open(finding.asked(call, rule.said.clone()));
        }
        if let Some(left) = self.uncovered.as_ref().filter(|_| gates == 0) {
            return Verdict::Deny(Denial::uncovered(format!("no rule covers {left}")));
        }
        self.settled.iter().for_each(|settled| grounds.add(settled.allowed_by(), settled.reason()));
        let Grounds { by, reasons } = grounds;
        match (values.first(), by) {
            (Some(first), _) => {
                Verdict::Escalate(Escalation { by: first.by.clone(), values, others: reasons })
            }
            (None, Some(by)) => Verdict::Allow(Permit::new(by, reasons, self.grants())),
            (None, None) => Verdict::Deny(Denial::uncovered("no rule covers this call".to_owned())),
        }
    }

    /// The grants that settled something. Each has settled once, and no two have an id in common.
    fn grants(&self) -> Vec<String> {
        // Of none, which is what there mostly is, `collect` is slower.
        let mut grants = Vec::new();
        grants.extend(self.settled.iter().filter_map(Settled::grant).cloned());
        grants
    }
}

impl Settled<'_> {
    fn allowed_by(&self) -> AllowedBy {
        match self {
            Self::Sandbox => AllowedBy::SessionFolder,
            Self::Grant(_) | Self::Host(_) => AllowedBy::Grant,
        }
    }

    fn reason(&self) -> Reason {
        match self {
            Self::Sandbox => Reason::fixed(&SANDBOX),
            Self::Grant(grant) => granted(format!("grant `{}` for `{}`", grant.id, grant.path)),
            Self::Host(grant) => granted(format!("grant `{}` for `{}:{}`", grant.id, grant.host, grant.port)),
        }
    }

    fn grant(&self) -> Option<&String> {
        match self {
            Self::Sandbox => None,
            Self::Grant(grant) => Some(&grant.id),
            Self::Host(grant) => Some(&grant.id),
        }
    }
}

/// A refusal by each of these rules.
fn denial(first: &Rule, rest: &[&Rule]) -> Denial {
    let mut others = Few::new();
    for rule in rest.iter().filter(|rule| rule.name() != first.name()) {
        push(&mut others, rule.said.clone());
    }
    Denial::by_rules(&first.said, others)
}

fn granted(reason: String) -> Reason {
    Spoken { rule: GRANT, reason: reason.into() }.into()
}

impl Finding<'_> {
    /// About the call as a whole.
    pub(super) const WHOLE: Self = Self { role: None, given: None };

    fn asked(&self, call: &ResolvedCall, by: Reason) -> Asked {
        Asked { role: self.role, argument: self.argument(call), subject: self.subject(), by }
    }

    fn asked_about_start(&self, call: &ResolvedCall, known: &Known) -> Asked {
        let reason = format!(
            "`{}` starts programs outside IronCurtain's care when this folder is opened with {}",
            self.subject(),
            known.what
        );
        self.asked(call, Spoken { rule: STARTS_PROGRAMS, reason: reason.into() }.into())
    }

    fn asked_by_gate(&self, call: &ResolvedCall) -> Asked {
        let place = match self.given.map(|given| &given.value) {
            Some(Resource::Url(destination)) => destination.domain().unwrap_or(destination.text()),
            Some(Resource::Path(_) | Resource::Text(_) | Resource::Shapeless) | None => "",
        };
        let reason = format!("`{place}` is not among the hosts of the server `{}`", call.server()).into();
        self.asked(call, Spoken { rule: DOMAIN_GATE, reason }.into())
    }

    pub(super) fn argument(&self, call: &ResolvedCall) -> SharedStr {
        self.given.map(|given| call.argument(given).clone()).unwrap_or_default()
    }

    pub(super) fn subject(&self) -> Subject {
        match self.given.map(|given| &given.value) {
            None if self.role.is_none() => Subject::Call,
            None => Subject::Absent,
            Some(Resource::Path(path)) => Subject::Path(path.clone()),
            Some(Resource::Url(destination)) => Subject::Text(destination.text().into()),
            Some(Resource::Text(text)) => Subject::Text(text.clone()),
            Some(Resource::Shapeless) => Subject::Text(SharedStr::default()),
        }
    }
}

impl fmt::Display for Finding<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            Some(role) => write!(formatter, "`{}` as `{role}`", self.subject()),
            None => formatter.write_str("this tool"),
        }
    }
}

/// Adds a reason once.
fn push(reasons: &mut Few<Reason>, reason: Reason) {
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
}
