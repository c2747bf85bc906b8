//! The calls that become looser or stricter when one policy takes the place of another.
//!
//! - Rules are compared one by one; decisions are compared on probes: calls made up for every annotated tool, that its
//!   server would take, from what either policy names and from what neither names.
//! - A value that a rule denies is told apart from one that no rule covers: the first stays denied whatever is granted
//!   or answered, and behind a gate for hosts the second is asked about.
//! - Where a tool has too many probes, it is said: a difference that none of them meets is not found then.

mod comparing;
mod probes;
mod slots;
mod values;

use comparing::Comparing;
pub(crate) use comparing::situations;
use ironcurtain_policy::{Annotations, Decision, DeniedBy, Policy, Rule, Verdict};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The number of times that a rule is looked at, for all tools together: what keeps this within seconds.
const MOST_LOOKS: usize = 100_000_000;

/// The differences of two policies.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Difference {
    /// Names of rules that the new policy has and the old one has not.
    pub added: Vec<String>,
    /// Names of rules that only the old one has.
    pub removed: Vec<String>,
    /// Names of rules that say something else in the new one.
    pub changed: Vec<String>,
    /// Rules that both have come in another order.
    pub reordered: bool,
    /// Probes that come out otherwise, the first of each kind for each tool.
    pub decisions: Vec<DecisionChange>,
    /// The number of probes that were judged.
    pub probes: usize,
    /// Tools that have more probes than were judged, or that take none that could be made up.
    pub cut_short: Vec<String>,
}

/// The outcome of a call by the rules alone, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeOutcome {
    /// It may happen.
    Allow,
    /// A person must say.
    Escalate,
    /// No rule covers it: it is denied, unless a grant does, or a gate asks about it.
    Uncovered,
    /// A rule denies it, whatever is granted or answered.
    Deny,
}

/// A probe that comes out otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionChange {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments of the first such probe.
    pub arguments: Map<String, Value>,
    /// Set when it is so only where the server reaches nothing.
    pub reaches_nothing: bool,
    /// The outcome by the old policy, and the rule that decides.
    pub old: (ProbeOutcome, String),
    /// The outcome by the new policy, and the rule that decides.
    pub new: (ProbeOutcome, String),
    /// The number of probes of the tool that come out like this.
    pub probes: usize,
}

impl DecisionChange {
    /// Returns `true` if the new policy lets more happen.
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

/// Compares two policies. Takes seconds where there are very many rules.
#[must_use]
pub fn diff(old: &Policy, new: &Policy, annotations: &Annotations) -> Difference {
    let mut difference = diff_rules(old, new);
    let differing = [&difference.added, &difference.removed, &difference.changed];
    let differing: BTreeSet<String> = differing.into_iter().flatten().cloned().collect();
    let comparing = Comparing { old, new, annotations };
    let tools: Vec<_> = annotations
        .servers()
        .flat_map(|server| {
            annotations.tools(server).map(move |(tool, annotation)| (server, tool, annotation))
        })
        .collect();
    let looks = MOST_LOOKS.checked_div(tools.len()).unwrap_or(MOST_LOOKS);
    for tool in tools {
        comparing.tool(tool, &differing, looks, &mut difference);
    }
    difference
}

fn rules(old: &[Rule], new: &[Rule]) -> Difference {
    let named = |rules: &'_ [Rule]| rules.iter().map(|rule| rule.name().to_string()).collect::<BTreeSet<_>>();
    let (of_old, of_new) = (named(old), named(new));
    let names = |rules: &[Rule], among: &BTreeSet<String>, there: bool| -> Vec<String> {
        let found = rules.iter().filter(|rule| among.contains(rule.name().as_ref()) == there);
        found.map(|rule| rule.name().to_string()).collect()
    };
    let known: BTreeMap<&str, &Rule> = old.iter().map(|rule| (rule.name().as_ref(), rule)).collect();
    let says_otherwise = |rule: &&Rule| {
        known
            .get(rule.name().as_ref())
            .is_some_and(|other| other.condition != rule.condition || other.then != rule.then)
    };
    Difference {
        added: names(new, &of_old, false),
        removed: names(old, &of_new, false),
        changed: new.iter().filter(says_otherwise).map(|rule| rule.name().to_string()).collect(),
        reordered: names(old, &of_new, true) != names(new, &of_old, true),
        ..Difference::default()
    }
}

impl ProbeOutcome {
    /// The outcome that a verdict which rests on rules alone stands for.
    #[must_use]
    pub fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Allow(_) => Self::Allow,
            Verdict::Escalate(_) => Self::Escalate,
            Verdict::Deny(denial) if denial.by == DeniedBy::NoRule => Self::Uncovered,
            Verdict::Deny(_) => Self::Deny,
        }
    }

    /// The decision, without whose it is.
    #[must_use]
    pub fn decision(self) -> Decision {
        match self {
            Self::Allow => Decision::Allow,
            Self::Escalate => Decision::Escalate,
            Self::Uncovered | Self::Deny => Decision::Deny,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_out_less_strict_is_looser() {
        let outcomes =
            [ProbeOutcome::Allow, ProbeOutcome::Escalate, ProbeOutcome::Uncovered, ProbeOutcome::Deny];
        for (strict, old) in outcomes.into_iter().enumerate() {
            let is_looser = |new| {
                let [server, tool] = ["s".to_owned(), "t".to_owned()];
                let (old, new) = ((old, "old".to_owned()), (new, "new".to_owned()));
                DecisionChange {
                    server,
                    tool,
                    arguments: Map::new(),
                    reaches_nothing: false,
                    old,
                    new,
                    probes: 1,
                }
                .is_looser()
            };
            assert_eq!(outcomes.map(is_looser), [0, 1, 2, 3].map(|new| new < strict), "{old:?}");
        }
    }
}
