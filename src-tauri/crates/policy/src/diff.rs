//! What becomes looser and what becomes stricter when one policy takes the place of another.
//!
//! - Rules are compared one by one; decisions are compared on probes: calls made up for every annotated tool from the
//!   folders, hosts and entries that either policy names, and from places that neither names.
//! - A difference that no probe meets is not found: this helps a person look, it proves nothing.

mod probes;

use crate::{Annotations, Context, Decision, Gates, Policy, Protected, Rule, Verdict, judge};
use ironcurtain_paths::CanonicalPath;
use serde_json::{Map, Value};
use std::sync::Arc;

/// How two policies differ.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Difference {
    /// Names of rules that the new policy has and the old one has not.
    pub added: Vec<String>,
    /// Names of rules that only the old one has.
    pub removed: Vec<String>,
    /// Names of rules that say something else in the new one.
    pub changed: Vec<String>,
    /// Whether rules that both have come in another order.
    pub reordered: bool,
    /// Probes that come out otherwise, the first of each kind for each tool.
    pub decisions: Vec<Change>,
    /// How many probes were judged.
    pub probes: usize,
    /// Tools that have more probes than were judged.
    pub cut_short: Vec<String>,
}

/// A probe that comes out otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments of the first such probe.
    pub arguments: Map<String, Value>,
    /// What the old policy decides, and by which rule.
    pub old: (Decision, String),
    /// What the new policy decides, and by which rule.
    pub new: (Decision, String),
    /// How many probes of the tool come out like this.
    pub probes: usize,
}

impl Change {
    /// Whether the new policy lets more happen.
    #[must_use]
    pub fn is_looser(&self) -> bool {
        self.new.0 < self.old.0
    }
}

/// Compares the rules of two policies one by one, and judges nothing.
#[must_use]
pub fn diff_rules(old: &Policy, new: &Policy) -> Difference {
    rules(old.rules(), new.rules())
}

/// Compares two policies for a person with this home. Takes seconds where there are very many rules.
#[must_use]
pub fn diff(old: &Policy, new: &Policy, annotations: &Annotations, home: &CanonicalPath) -> Difference {
    let mut difference = diff_rules(old, new);
    let material = probes::Material::of([old, new], home);
    for server in annotations.servers() {
        for (tool, annotation) in annotations.tools(server) {
            let calls = material.calls(annotation);
            if calls.cut_short {
                difference.cut_short.push(format!("{server}/{tool}"));
            }
            let mut changes: Vec<Change> = Vec::new();
            for arguments in calls.arguments.into_iter().map(Arc::new) {
                difference.probes += 1;
                let Some(call) = probes::resolve(annotations, server, tool, &arguments) else { continue };
                let (before, after) = (decide(old, &call), decide(new, &call));
                if before.0 != after.0 {
                    let change = Change {
                        server: server.to_owned(),
                        tool: tool.to_owned(),
                        arguments: (*arguments).clone(),
                        old: before,
                        new: after,
                        probes: 1,
                    };
                    count(&mut changes, change);
                }
            }
            difference.decisions.extend(changes);
        }
    }
    difference
}

/// Keeps the first change of each kind and counts the others.
fn count(changes: &mut Vec<Change>, change: Change) {
    match changes.iter_mut().find(|known| known.old == change.old && known.new == change.new) {
        Some(known) => known.probes += 1,
        None => changes.push(change),
    }
}

fn rules(old: &[Rule], new: &[Rule]) -> Difference {
    let missing = |from: &[Rule], rule: &&Rule| !from.iter().any(|other| other.name() == rule.name());
    let names = |rules: Vec<&Rule>| rules.into_iter().map(|rule| rule.name().to_string()).collect::<Vec<_>>();
    let both =
        |these: &[Rule], those: &[Rule]| names(these.iter().filter(|rule| !missing(those, rule)).collect());
    let says_otherwise = |rule: &&Rule| {
        old.iter().any(|other| {
            other.name() == rule.name() && (other.condition != rule.condition || other.then != rule.then)
        })
    };
    Difference {
        added: names(new.iter().filter(|rule| missing(old, rule)).collect()),
        removed: names(old.iter().filter(|rule| missing(new, rule)).collect()),
        changed: names(new.iter().filter(says_otherwise).collect()),
        reordered: both(old, new) != both(new, old),
        ..Difference::default()
    }
}

/// By the rules alone: without session sandbox, grants, gates and protected paths, which no policy changes.
fn decide(policy: &Policy, call: &crate::ResolvedCall) -> (Decision, String) {
    let context = Context {
        sandbox: None,
        sandbox_servers: &[],
        protected: Protected::NOTHING,
        gates: &Gates::default(),
        grants: &[],
        hosts: &[],
        approved: &[],
    };
    let verdict = judge(policy, &context, call);
    (verdict.decision(), verdict.rule().to_owned())
}

impl Verdict {
    /// The decision without its terms.
    #[must_use]
    pub fn decision(&self) -> Decision {
        match self {
            Self::Allow(_) => Decision::Allow,
            Self::Escalate(_) => Decision::Escalate,
            Self::Deny(_) => Decision::Deny,
        }
    }

    /// The rule that decides, or the first of those that allow.
    #[must_use]
    pub fn rule(&self) -> &str {
        match self {
            Self::Allow(permit) => permit.reasons().first().map_or("", |reason| reason.rule.as_str()),
            Self::Escalate(escalation) => &escalation.by.rule,
            Self::Deny(denial) => &denial.rule,
        }
    }
}
