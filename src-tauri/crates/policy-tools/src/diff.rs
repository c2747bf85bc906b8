//! Finds the calls that are judged less or more strictly when one policy replaces another.
//!
//! - Rules are compared by name. Decisions are compared on probes: calls that are generated for every annotated tool
//!   and match its server's schema, with values that either policy mentions and values that neither mentions.
//! - A value that a rule denies is distinguished from one that no rule covers: grants and approvals never override a
//!   deny rule, but approving the host allows an uncovered value.
//! - Only differences on judged probes are found, so tools with too many probes are reported.

mod comparison;
mod probes;
mod slots;
mod values;

use comparison::PolicyComparison;
pub(crate) use comparison::role_sets;
use ironcurtain_policy::{Annotations, Decision, DeniedBy, Policy, Rule, Verdict};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of rule checks for all tools together. This many checks take a few seconds.
const MAX_RULE_CHECKS: usize = 100_000_000;

/// Differences between two policies.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Difference {
    /// Names of rules that only the new policy has.
    pub added: Vec<String>,
    /// Names of rules that only the old policy has.
    pub removed: Vec<String>,
    /// Names of rules that differ.
    pub changed: Vec<String>,
    /// `true` if rules that both policies have are in a different order.
    pub reordered: bool,
    /// Probes with different outcomes: the first probe of each kind for each tool.
    pub decisions: Vec<DecisionChange>,
    /// Number of probes that were judged.
    pub probes: usize,
    /// Tools, as `server/tool`, whose probes were not all judged or could not be generated.
    pub cut_short: Vec<String>,
}

/// Outcome of a probe under the rules alone, ordered from lenient to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeOutcome {
    /// The call is allowed.
    Allow,
    /// The call requires approval.
    Escalate,
    /// No rule covers a value. The call is denied unless a grant covers the value or the user approves its host.
    Uncovered,
    /// A rule denies the call, regardless of grants and approvals.
    Deny,
}

/// Change in outcome, with the first probe that shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionChange {
    /// Name of the server.
    pub server: String,
    /// Name of the tool.
    pub tool: String,
    /// Arguments of the first probe with this change.
    pub arguments: Map<String, Value>,
    /// `true` if the outcomes differ only for a server that can access nothing beyond its own sandbox.
    pub reaches_nothing: bool,
    /// Outcome under the old policy, with the name of the deciding rule.
    pub old: (ProbeOutcome, String),
    /// Outcome under the new policy, with the name of the deciding rule.
    pub new: (ProbeOutcome, String),
    /// Number of probes with this change.
    pub probes: usize,
}

impl DecisionChange {
    /// Returns `true` if the new policy is less strict.
    #[must_use]
    pub fn is_looser(&self) -> bool {
        self.new.0 < self.old.0
    }
}

/// Compares the rules of two policies by name, without judging probes.
#[must_use]
pub fn diff_rules(old: &Policy, new: &Policy) -> Difference {
    rules(old.rules(), new.rules())
}

/// Compares the rules of two policies and their outcomes on probes. Takes seconds for thousands of rules.
#[must_use]
pub fn diff(old: &Policy, new: &Policy, annotations: &Annotations) -> Difference {
    let mut difference = diff_rules(old, new);
    let differing = [&difference.added, &difference.removed, &difference.changed];
    let differing: BTreeSet<String> = differing.into_iter().flatten().cloned().collect();
    let comparison = PolicyComparison { old, new, annotations };
    let tools: Vec<_> = annotations
        .servers()
        .flat_map(|server| {
            annotations.tools(server).map(move |(tool, annotation)| (server, tool, annotation))
        })
        .collect();
    let max_rule_checks = MAX_RULE_CHECKS.checked_div(tools.len()).unwrap_or(MAX_RULE_CHECKS);
    for tool in tools {
        comparison.compare_tool(tool, &differing, max_rule_checks, &mut difference);
    }
    difference
}

fn rules(old: &[Rule], new: &[Rule]) -> Difference {
    let named = |rules: &'_ [Rule]| rules.iter().map(|rule| rule.name().to_string()).collect::<BTreeSet<_>>();
    let (old_names, new_names) = (named(old), named(new));
    let names = |rules: &[Rule], others: &BTreeSet<String>, present: bool| -> Vec<String> {
        let found = rules.iter().filter(|rule| others.contains(rule.name().as_ref()) == present);
        found.map(|rule| rule.name().to_string()).collect()
    };
    let known: BTreeMap<&str, &Rule> = old.iter().map(|rule| (rule.name().as_ref(), rule)).collect();
    let is_changed = |rule: &&Rule| {
        known
            .get(rule.name().as_ref())
            .is_some_and(|other| other.condition != rule.condition || other.then != rule.then)
    };
    Difference {
        added: names(new, &old_names, false),
        removed: names(old, &new_names, false),
        changed: new.iter().filter(is_changed).map(|rule| rule.name().to_string()).collect(),
        reordered: names(old, &new_names, true) != names(new, &old_names, true),
        ..Difference::default()
    }
}

impl ProbeOutcome {
    /// Converts a verdict that was reached without grants and approvals.
    #[must_use]
    pub fn from_verdict(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Allow(_) => Self::Allow,
            Verdict::Escalate(_) => Self::Escalate,
            Verdict::Deny(denial) if denial.by == DeniedBy::NoRule => Self::Uncovered,
            Verdict::Deny(_) => Self::Deny,
        }
    }

    /// Returns the decision that the user sees.
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
