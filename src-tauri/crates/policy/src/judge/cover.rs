//! Determines whether a rule covers a value in a call.
//!
//! - A condition on a role never holds if the call contains no value with that role.
//! - A rule whose role conditions exclude the judged role does not apply to it.
//! - If a match is uncertain, an allow rule does not cover the value, but a rule that denies or requires approval does.
//!   An unknown address or a different spelling of a repository therefore cannot bypass a rule.

use super::value::JudgedValue;
use crate::{
    Decision, DomainsCondition, ListCondition, PathsCondition, ResolvedCall, ResolvedValue, Resource, Role,
    RoleSet, Rule, RuleCondition, ServerReach,
};

/// A value in the call, and the role in which it is judged.
#[derive(Clone, Copy)]
pub(super) struct ValueInRole<'a> {
    pub(super) role: Role,
    pub(super) given: Option<&'a ResolvedValue>,
}

/// Reason a rule does not cover a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// The rule applies to other roles.
    OtherRoles,
    /// The path is outside the rule's folder.
    NotWithin,
    /// A value with one of the condition's roles is not on any of the rule's hosts or repositories.
    NotInDomains,
    /// A value is not on a list that the rule requires.
    NotListed,
    /// The rule requires a resource, and the tool has none.
    NoResource,
    /// The rule applies only to calls without resources, on servers that reach nothing.
    MayReach,
    /// The match is uncertain, and a later rule that denies the value decides instead.
    Uncertain,
}

/// Certainty of a match, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    /// The rule's author may have meant the value, but the condition does not match it exactly.
    Possible,
    /// The condition matches the value.
    Certain,
}

/// Rules of one layer that apply to a value.
#[derive(Clone, Copy)]
pub(super) struct LayerRules<'a> {
    /// Rule that decides, or `None` if the layer does not decide.
    pub(super) decider: Option<&'a Rule>,
    /// Rule that requires approval because of an uncertain match, if no rule decides.
    pub(super) possible: Option<&'a Rule>,
}

impl<'a> LayerRules<'a> {
    pub(super) fn decider_or_possible(self) -> Option<&'a Rule> {
        self.decider.or(self.possible)
    }
}

/// Returns the deciding rule, which is the first one that covers the value. If that rule requires approval because of
/// an uncertain match, a later deny rule takes precedence, but a later allow rule does not. If no later rule covers the
/// value, the layer does not decide.
pub(super) fn first_match<'a>(
    rules: impl Iterator<Item = &'a Rule>,
    mut cover: impl FnMut(&'a Rule) -> Option<Match>,
) -> LayerRules<'a> {
    let mut possible = None;
    for rule in rules {
        match (cover(rule), rule.then) {
            (None, _) => {}
            (Some(Match::Possible), Decision::Escalate) => drop(possible.get_or_insert(rule)),
            (Some(_), Decision::Deny) => return LayerRules { decider: Some(rule), possible: None },
            (Some(_), Decision::Allow | Decision::Escalate) => {
                return LayerRules { decider: possible.or(Some(rule)), possible: None };
            }
        }
    }
    LayerRules { decider: None, possible }
}

/// Returns the deciding rule for a call to an unannotated tool, given the rules about that tool in order. The tool's
/// resources are unknown, so a rule that denies or requires approval applies even if it is limited to certain
/// arguments. An allow rule applies only if it requires a server that reaches nothing, and an earlier rule that
/// requires approval takes precedence over it.
pub(super) fn for_unannotated<'a>(
    rules: impl Iterator<Item = &'a Rule>,
    call: &ResolvedCall,
    reach: ServerReach,
) -> LayerRules<'a> {
    let decided = |rule| LayerRules { decider: rule, possible: None };
    let mut possible = None;
    for rule in rules {
        let covers_all = cover_call(rule, call, reach) == Ok(Match::Certain);
        match rule.then {
            Decision::Deny => return decided(Some(rule)),
            Decision::Allow if covers_all && rule.condition.reaches_nothing => {
                return decided(possible.or(Some(rule)));
            }
            Decision::Allow => {}
            Decision::Escalate => {
                possible.get_or_insert(rule);
                // This rule covers every call, so later rules cannot apply.
                if covers_all {
                    break;
                }
            }
        }
    }
    decided(possible)
}

impl<'a> ValueInRole<'a> {
    /// Returns the certainty with which the rule covers the value, or the condition that does not hold.
    pub(super) fn cover(
        &self,
        rule: &Rule,
        call: &ResolvedCall,
        reach: ServerReach,
    ) -> Result<Match, Mismatch> {
        let condition = &rule.condition;
        if !condition.applies_to_role(self.role) {
            return Err(Mismatch::OtherRoles);
        }
        let uncertain = UncertainMatch::for_rule(rule);
        let reaches = uncertain.match_reach(condition, call, reach).ok_or(Mismatch::MayReach)?;
        let paths = min_certainty(condition.paths.iter().map(|paths| self.within(paths, call, uncertain)))
            .ok_or(Mismatch::NotWithin)?;
        let values = || call.values(self.role);
        let domains = condition.domains.iter();
        let match_domains = |domains| {
            uncertain
                .match_values(self.given, values(), |given| uncertain.match_domains(domains, &given.value))
        };
        let domains = min_certainty(domains.map(match_domains)).ok_or(Mismatch::NotInDomains)?;
        // A list condition on the judged role must hold for this value. A list condition on other roles must hold for
        // their values.
        let match_listed = |list: &ListCondition| match list.roles.contains(&self.role) {
            true => {
                uncertain.match_values(self.given, values(), |given| uncertain.match_list(list, given, call))
            }
            false => uncertain
                .match_values(None, values_of(list, call), |given| uncertain.match_list(list, given, call)),
        };
        let lists =
            min_certainty(condition.lists.iter().flatten().map(match_listed)).ok_or(Mismatch::NotListed)?;
        Ok(reaches.min(paths).min(domains).min(lists))
    }

    pub(super) fn judged(&self) -> JudgedValue<'a> {
        JudgedValue { role: Some(self.role), given: self.given }
    }

    /// Checks the folder condition. A call that moves, removes or recurses into a folder affects everything in it, so
    /// rules that deny or require approval for the folder's contents also apply.
    fn within(
        &self,
        paths: &PathsCondition,
        call: &ResolvedCall,
        uncertain: UncertainMatch,
    ) -> Option<Match> {
        let given = self.given?;
        let Resource::Path(path) = &given.value else { return None };
        uncertain.certainty(paths.within.contains(path), || {
            path.contains(&paths.within) && includes_contents(given, call)
        })
    }
}

/// Returns `true` if the call moves, removes or recurses into the folder that it was given.
fn includes_contents(given: &ResolvedValue, call: &ResolvedCall) -> bool {
    given.roles.meets(RoleSet::DESCENDING) || call.descends()
}

/// Returns the certainty with which a rule covers a call without resources, or the condition that does not hold.
pub(super) fn cover_call(rule: &Rule, call: &ResolvedCall, reach: ServerReach) -> Result<Match, Mismatch> {
    let condition = &rule.condition;
    let has_role = |roles: &Vec<Role>| roles.iter().any(|role| call.carried.contains(*role));
    let applies_to_whole_calls = condition.roles.as_ref().is_none_or(has_role)
        && condition.paths.is_none()
        && condition.domains.is_none();
    let uncertain = UncertainMatch::for_rule(rule);
    let match_listed = |list: &ListCondition| {
        uncertain.match_values(None, values_of(list, call), |given| uncertain.match_list(list, given, call))
    };
    if !applies_to_whole_calls {
        return Err(Mismatch::NoResource);
    }
    let reaches = uncertain.match_reach(condition, call, reach).ok_or(Mismatch::MayReach)?;
    let lists =
        min_certainty(condition.lists.iter().flatten().map(match_listed)).ok_or(Mismatch::NoResource)?;
    Ok(reaches.min(lists))
}

/// Returns `true` if a rule covers any value in a call or, if the call has no resources, the call as a whole. Assumes
/// that the server reaches nothing.
pub(crate) fn covers_any_value(rule: &Rule, call: &ResolvedCall) -> bool {
    let reach = ServerReach::Nothing;
    let covers = |role: &Role| {
        let is_covered = |given| ValueInRole { role: *role, given }.cover(rule, call, reach).is_ok();
        let mut values = call.values(*role).map(Some).peekable();
        if values.peek().is_none() { is_covered(None) } else { values.any(is_covered) }
    };
    if call.roles().is_empty() {
        cover_call(rule, call, reach).is_ok()
    } else {
        call.roles().iter().any(covers)
    }
}

fn values_of<'a>(
    list: &'a ListCondition,
    call: &'a ResolvedCall,
) -> impl Iterator<Item = &'a ResolvedValue> + Clone {
    list.roles.iter().flat_map(|role| call.values(*role))
}

/// Effect of an uncertain match, which depends on the rule's decision.
#[derive(Clone, Copy, PartialEq)]
enum UncertainMatch {
    /// An uncertain match covers the value: the rule denies or requires approval.
    Counts,
    /// An uncertain match does not cover the value: the rule allows.
    Ignored,
}

impl UncertainMatch {
    fn for_rule(rule: &Rule) -> Self {
        match rule.then {
            Decision::Allow => Self::Ignored,
            Decision::Escalate | Decision::Deny => Self::Counts,
        }
    }

    /// Returns the certainty of the condition on the server's reach, or `None` if it does not hold.
    fn match_reach(
        self,
        condition: &RuleCondition,
        call: &ResolvedCall,
        reach: ServerReach,
    ) -> Option<Match> {
        if !condition.reaches_nothing {
            return Some(Match::Certain);
        }
        let has_no_resource = call.has_no_resource();
        self.certainty(has_no_resource && reach == ServerReach::Nothing, || {
            has_no_resource && reach == ServerReach::Unknown
        })
    }

    /// Returns the certainty with which a condition holds for every value, or `None` if it does not hold or there are
    /// no values. If uncertain matches count, the condition must hold only for the judged value, or for any value if no
    /// value is judged.
    fn match_values<'a>(
        self,
        judged: Option<&'a ResolvedValue>,
        values: impl Iterator<Item = &'a ResolvedValue> + Clone,
        holds: impl Fn(&ResolvedValue) -> Option<Match>,
    ) -> Option<Match> {
        let mut held = values.clone().map(&holds).peekable();
        held.peek()?;
        min_certainty(held).or_else(|| {
            let holds = |given: &ResolvedValue| holds(given).is_some();
            let some = judged.map_or_else(|| values.clone().any(holds), holds);
            (self == Self::Counts && some).then_some(Match::Possible)
        })
    }

    fn match_domains(self, condition: &DomainsCondition, value: &Resource) -> Option<Match> {
        let allowed = &condition.allowed;
        match value {
            Resource::Url(destination) => {
                self.certainty(allowed.covers(destination), || allowed.may_match(destination))
            }
            Resource::Text(host) => {
                self.certainty(allowed.covers_host(host), || allowed.may_match_host(host))
            }
            Resource::NonString => self.certainty(false, || true),
            Resource::Path(_) => None,
        }
    }

    /// Checks a value against a list. A folder whose contents the call affects may affect the listed paths in it.
    fn match_list(self, list: &ListCondition, given: &ResolvedValue, call: &ResolvedCall) -> Option<Match> {
        let (entries, value) = (|| list.allowed.iter(), &given.value);
        self.certainty(entries().any(|entry| entry.covers(value)), || {
            entries().any(|entry| {
                entry.may_match(value) || entry.is_inside(value) && includes_contents(given, call)
            })
        })
    }

    fn certainty(self, is_certain: bool, is_possible: impl FnOnce() -> bool) -> Option<Match> {
        if is_certain {
            return Some(Match::Certain);
        }
        (self == Self::Counts && is_possible()).then_some(Match::Possible)
    }
}

/// Returns the lowest certainty of all conditions, or `None` if any condition does not hold. Returns `Certain` if there
/// are no conditions.
fn min_certainty(mut conditions: impl Iterator<Item = Option<Match>>) -> Option<Match> {
    conditions.try_fold(Match::Certain, |sure, holds| Some(sure.min(holds?)))
}
