//! Judges one tool's probes by two policies.

use super::slots::{self, Slot};
use super::{DecisionChange, Difference, ProbeOutcome, probes};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{
    AllowedHosts, Annotations, Context, Decision, Fact, Policy, ProtectedPaths, ResolvedCall, RoleSet, Rule,
    ServerReach, StepBasis, ToolAnnotation, explain, judge,
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of probes for one tool.
const MAX_CALLS: usize = 20_000;

/// Approximate number of an argument's values that are tried to find its representatives.
const MAX_TRIED: usize = 24;

/// Maximum number of representative values of an argument. They are combined with all values of another argument.
const MAX_REPRESENTATIVES: usize = 3;

/// Two policies to compare, with the annotations of the tools.
pub(super) struct PolicyComparison<'a> {
    pub(super) old: &'a Policy,
    pub(super) new: &'a Policy,
    pub(super) annotations: &'a Annotations,
}

impl<'a> PolicyComparison<'a> {
    /// Compares the outcomes of one tool's probes, using at most `max_rule_checks` rule checks.
    pub(super) fn compare_tool(
        &self,
        (server, tool, annotation): (&str, &str, &ToolAnnotation),
        differing: &BTreeSet<String>,
        max_rule_checks: usize,
        difference: &mut Difference,
    ) {
        let rules = self.rules_for_tool(server, tool, differing);
        let slots = slots::slots(annotation, &rules);
        let max_calls = max_rule_checks.checked_div(rules.len()).unwrap_or(MAX_CALLS).clamp(1, MAX_CALLS);
        let calls = probes::calls(&slots, max_calls, |slot| self.representatives(server, tool, &slots, slot));
        let mut changes: BTreeMap<_, DecisionChange> = BTreeMap::new();
        let mut judged = 0;
        for arguments in calls.arguments.into_iter().map(Arc::new) {
            let Some(call) = self.resolve(server, tool, &arguments) else { continue };
            for reach in relevant_reaches(&rules, &call) {
                judged += 1;
                let (before, after) = (decide(self.old, &call, *reach), decide(self.new, &call, *reach));
                if before.0 == after.0 {
                    continue;
                }
                let reaches_nothing = *reach == ServerReach::Nothing;
                let change = || DecisionChange {
                    server: server.to_owned(),
                    tool: tool.to_owned(),
                    arguments: (*arguments).clone(),
                    reaches_nothing,
                    old: (before.0, before.1.to_string()),
                    new: (after.0, after.1.to_string()),
                    probes: 0,
                };
                let kind = (before.0, before.1.to_string(), after.0, after.1.to_string(), reaches_nothing);
                changes.entry(kind).or_insert_with(change).probes += 1;
            }
        }
        if calls.cut_short || judged == 0 {
            difference.cut_short.push(format!("{server}/{tool}"));
        }
        difference.probes += judged;
        difference.decisions.extend(changes.into_values());
    }

    /// Returns the rules from both policies that can apply to a tool. Differing rules come first; common rules appear
    /// only once.
    fn rules_for_tool(&self, server: &str, tool: &str, differing: &BTreeSet<String>) -> Vec<&'a Rule> {
        let select = |policy: &'a Policy, differs: bool| {
            let applicable = policy.rules_for(server, tool);
            applicable.filter(move |rule| differing.contains(rule.name().as_ref()) == differs)
        };
        select(self.new, true).chain(select(self.old, true)).chain(select(self.new, false)).collect()
    }

    /// Resolves a probe, assuming that its paths are canonical. Returns `None` if the tool does not accept the probe.
    fn resolve(&self, server: &str, tool: &str, arguments: &Arc<Map<String, Value>>) -> Option<ResolvedCall> {
        let plan = self.annotations.plan(server, tool, arguments).ok()?;
        let facts = plan.values().iter().map(|value| match value.raw {
            Some(raw) if value.is_path() => CanonicalPath::assume_canonical(raw).ok().map(Fact::Path),
            Some(_) | None => Some(Fact::Plain),
        });
        let facts = facts.collect::<Option<Vec<_>>>()?;
        plan.resolve(facts).ok()
    }

    /// Returns an argument's representative values. Each has a different outcome. Values with less strict outcomes come
    /// first so that they do not hide differences in other arguments.
    fn representatives<'s>(
        &self,
        server: &str,
        tool: &str,
        slots: &[Slot<'_>],
        slot: &'s Slot<'s>,
    ) -> Vec<&'s Option<Value>> {
        let others =
            slots.iter().filter_map(|slot| Some((slot.name.to_string(), slot.values.first()?.clone()?)));
        let others: Map<String, Value> = others.collect();
        let step = slot.values.len().div_ceil(MAX_TRIED).max(1);
        let last = slot.values.iter().rev().take(2);
        let mut ranked = BTreeMap::new();
        for value in slot.values.iter().step_by(step).chain(last) {
            let mut arguments = others.clone();
            arguments.remove(slot.name.as_ref());
            arguments.extend(value.iter().map(|value| (slot.name.to_string(), value.clone())));
            if let Some(call) = self.resolve(server, tool, &Arc::new(arguments)) {
                let strictest_outcome = |policy| strictest_outcome(policy, &call, slot.name);
                ranked.entry((strictest_outcome(self.old), strictest_outcome(self.new))).or_insert(value);
            }
        }
        let representatives: Vec<_> = ranked.into_values().take(MAX_REPRESENTATIVES).collect();
        if representatives.is_empty() { slot.values.iter().take(1).collect() } else { representatives }
    }
}

/// Returns the distinct sets of roles that calls to a tool can have, as far as the probes show.
pub(crate) fn role_sets(
    annotations: &Annotations,
    server: &str,
    tool: &str,
    annotation: &ToolAnnotation,
) -> Vec<RoleSet> {
    let slots = slots::slots(annotation, &[]);
    let calls =
        probes::calls(&slots, MAX_CALLS, |slot| slot.values.iter().take(MAX_REPRESENTATIVES).collect());
    let mut role_sets = Vec::new();
    for arguments in calls.arguments.into_iter().map(Arc::new) {
        let Ok(plan) = annotations.plan(server, tool, &arguments) else { continue };
        if !role_sets.contains(&plan.carried()) {
            role_sets.push(plan.carried());
        }
    }
    role_sets
}

/// Returns the kinds of server reach for which the rules may make different decisions on a call.
fn relevant_reaches(rules: &[&Rule], call: &ResolvedCall) -> &'static [ServerReach] {
    let reach_matters = call.has_no_resource() && rules.iter().any(|rule| rule.condition.reaches_nothing);
    if reach_matters { &[ServerReach::Something, ServerReach::Nothing] } else { &[ServerReach::Something] }
}

/// Returns the strictest outcome among the values of one argument, ignoring other arguments.
fn strictest_outcome(policy: &Policy, call: &ResolvedCall, argument: &Arc<str>) -> ProbeOutcome {
    let steps =
        explain(policy, &rules_only_context(&AllowedHosts::default(), ServerReach::Something), call.clone())
            .steps;
    let of_argument = steps.iter().filter(|step| step.argument == *argument);
    let outcomes = of_argument.map(|step| match &step.basis {
        StepBasis::Rule { then: Decision::Allow, .. }
        | StepBasis::SessionFolder
        | StepBasis::Grant(_)
        | StepBasis::Confined => ProbeOutcome::Allow,
        StepBasis::Rule { then: Decision::Escalate, .. } | StepBasis::Unannotated => ProbeOutcome::Escalate,
        StepBasis::Rule { then: Decision::Deny, .. } => ProbeOutcome::Deny,
        StepBasis::NoRule => ProbeOutcome::Uncovered,
    });
    outcomes.max().unwrap_or(ProbeOutcome::Allow)
}

fn decide(policy: &Policy, call: &ResolvedCall, reach: ServerReach) -> (ProbeOutcome, Arc<str>) {
    let verdict = judge(policy, &rules_only_context(&AllowedHosts::default(), reach), call.clone());
    (ProbeOutcome::from_verdict(&verdict), verdict.rule().into())
}

/// Creates a context without a session sandbox, grants or protected paths, because these do not depend on the policy.
fn rules_only_context(allowed_hosts: &AllowedHosts, reach: ServerReach) -> Context<'_> {
    Context { reach, ..Context::new(ProtectedPaths::NOTHING, allowed_hosts) }
}
