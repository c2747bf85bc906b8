//! Finds the calls that become looser or stricter when one policy replaces another.
//!
//! - Rules are compared one by one. Decisions are compared on probes: generated calls for every annotated tool that its
//!   server would accept, with values that either policy names and values that neither names.
//! - A value denied by a rule is distinguished from an uncovered one: grants and answers never override the former; a host
//!   gate asks about the latter.
//! - Tools with too many probes are reported, because differences without a probe are not found.

mod comparing;
mod probes;
mod slots;
mod values;

use comparing::Comparing;
pub(crate) use comparing::situations;
use ironcurtain_policy::{Annotations, Decision, DeniedBy, Policy, Rule, Verdict};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of rule checks for all tools together: some seconds.
const MOST_RULE_CHECKS: usize = 100_000_000;

/// Differences between two policies.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Difference {
    /// Names of rules that only the new policy has.
    pub added: Vec<String>,
    /// Names of rules that only the old policy has.
    pub removed: Vec<String>,
    /// Names of rules that differ.
    pub changed: Vec<String>,
    /// Set if common rules are in another order.
    pub reordered: bool,
    /// Probes with different decisions, the first of each kind for each tool.
    pub decisions: Vec<DecisionChange>,
    /// Number of judged probes.
    pub probes: usize,
    /// Tools with more probes than were judged, or without a possible probe.
    pub cut_short: Vec<String>,
}

/// Outcome of a call by the rules alone, ordered by strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeOutcome {
    /// Allowed.
    Allow,
    /// Requires approval.
    Escalate,
    /// Uncovered: denied, unless a grant covers it or a gate asks about it.
    Uncovered,
    /// Denied by a rule, regardless of grants and answers.
    Deny,
}

/// A probe with different outcomes.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionChange {
    /// Server name.
    pub server: String,
    /// Tool name.
    pub tool: String,
    /// Arguments of the first such probe.
    pub arguments: Map<String, Value>,
    /// Set if the outcomes differ only for a server without network and files beyond its own sandbox.
    pub reaches_nothing: bool,
    /// Outcome by the old policy, and the deciding rule.
    pub old: (ProbeOutcome, String),
    /// Outcome by the new policy, and the deciding rule.
    pub new: (ProbeOutcome, String),
    /// Number of the tool's probes with these outcomes.
    pub probes: usize,
}

impl DecisionChange {
    /// Returns `true` if the new policy is less strict.
    #[must_use]
    pub fn is_looser(&self) -> bool {
        self.new.0 < self.old.0
    }
}

/// Compares the rules of two policies without judging probes.
#[must_use]
pub fn diff_rules(old: &Policy, new: &Policy) -> Difference {
    rules(old.rules(), new.rules())
}

/// Compares two policies. Takes seconds for very many rules.
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
    let looks = MOST_RULE_CHECKS.checked_div(tools.len()).unwrap_or(MOST_RULE_CHECKS);
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
    /// Returns the outcome of a verdict that is based on rules alone.
    #[must_use]
    pub fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Allow(_) => Self::Allow,
            Verdict::Escalate(_) => Self::Escalate,
            Verdict::Deny(denial) if denial.by == DeniedBy::NoRule => Self::Uncovered,
            Verdict::Deny(_) => Self::Deny,
        }
    }

    /// Returns the decision.
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
    fn only_less_strict_outcomes_are_looser() {
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
