//! The values of a call that a rule covers.
//!
//! - A condition whose role has no value never holds.
//! - A rule whose role conditions leave out the role that is judged does not speak about it.
//! - In doubt a rule that allows does not cover a value, and a rule that asks or denies does: an address that nobody
//!   understands, or a repository in another spelling, does not slip past a rule that is meant for it.

use super::value::JudgedValue;
use crate::{
    Decision, DomainsCondition, ListCondition, PathsCondition, ResolvedCall, ResolvedValue, Resource, Role,
    RoleSet, Rule, RuleCondition, ServerReach,
};

/// One value that is judged in one role; a role of the tool that the call gives no value for has none.
#[derive(Clone, Copy)]
pub(super) struct ValueInRole<'a> {
    pub(super) role: Role,
    pub(super) given: Option<&'a ResolvedValue>,
}

/// Why a rule does not cover a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
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
    /// It is about calls that reach nothing, and this one names something, or its server may reach more than its session.
    MayReach,
    /// It may be meant for the value or not, and a stricter rule stands after it.
    InDoubt,
}

/// The certainty with which a condition is met, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    /// It may be meant for the value, which it does not name.
    Possible,
    /// It names the value.
    Certain,
}

/// The rule that decides, of the rules about something in their order: the first one that covers it. One that asks in
/// doubt decides only where a rule after it would allow: it never stands before one that denies.
pub(super) fn first<'a>(
    rules: impl Iterator<Item = &'a Rule>,
    mut cover: impl FnMut(&'a Rule) -> Option<Match>,
) -> Option<&'a Rule> {
    let mut asks = None;
    for rule in rules {
        match (cover(rule), rule.then) {
            (None, _) => {}
            (Some(Match::Possible), Decision::Escalate) => drop(asks.get_or_insert(rule)),
            (Some(_), Decision::Deny) => return Some(rule),
            (Some(_), Decision::Allow | Decision::Escalate) => return asks.or(Some(rule)),
        }
    }
    None
}

/// The rule that decides about a call of which nobody knows what it names, of the rules about its tool in their order. One
/// that denies or asks about some argument may be meant for any. Of those that allow, only one for what reaches nothing
/// needs no knowledge of the arguments; it comes too late after one that asks.
pub(super) fn of_unannotated<'a>(
    rules: impl Iterator<Item = &'a Rule>,
    call: &ResolvedCall,
    reach: ServerReach,
) -> Option<&'a Rule> {
    let mut asks = None;
    for rule in rules {
        let covers_all = cover_call(rule, call, reach) == Ok(Match::Certain);
        match rule.then {
            Decision::Deny => return Some(rule),
            Decision::Allow if covers_all && rule.condition.reaches_nothing => return asks.or(Some(rule)),
            Decision::Allow => {}
            Decision::Escalate => {
                asks.get_or_insert(rule);
                // The rules after it are about nothing.
                if covers_all {
                    break;
                }
            }
        }
    }
    asks
}

impl<'a> ValueInRole<'a> {
    /// The certainty with which a rule covers the value, or why it does not.
    pub(super) fn cover(
        &self,
        rule: &Rule,
        call: &ResolvedCall,
        reach: ServerReach,
    ) -> Result<Match, Mismatch> {
        let condition = &rule.condition;
        if !condition.speaks_about(self.role) {
            return Err(Mismatch::OtherRoles);
        }
        let possible = PossibleMatch::of(rule);
        let reaches = possible.reaching(condition, call, reach).ok_or(Mismatch::MayReach)?;
        let paths = all(condition.paths.iter().map(|paths| self.within(paths, call, possible)))
            .ok_or(Mismatch::NotWithin)?;
        let values = || call.values(self.role);
        let domains = condition.domains.iter();
        let in_domains =
            |domains| possible.hold_for(self.given, values(), |value| possible.in_domains(domains, value));
        let domains = all(domains.map(in_domains)).ok_or(Mismatch::NotInDomains)?;
        // A list about the judged role is about its values; a list about other roles is about theirs.
        let listed = |list: &ListCondition| match list.roles.contains(&self.role) {
            true => possible.hold_for(self.given, values(), |value| possible.on_list(list, value)),
            false => possible.hold_for(None, of_roles(list, call), |value| possible.on_list(list, value)),
        };
        let lists = all(condition.lists.iter().flatten().map(listed)).ok_or(Mismatch::NotListed)?;
        Ok(reaches.min(paths).min(domains).min(lists))
    }

    pub(super) fn judged(&self) -> JudgedValue<'a> {
        JudgedValue { role: Some(self.role), given: self.given }
    }

    /// A folder that is moved, removed or gone through takes along what lies in it: a rule that asks or denies about that is
    /// meant, too.
    fn within(&self, paths: &PathsCondition, call: &ResolvedCall, possible: PossibleMatch) -> Option<Match> {
        let given = self.given?;
        let Resource::Path(path) = &given.value else { return None };
        let goes_down = || given.roles.meets(RoleSet::DESCENDING) || call.descends();
        possible.holds(paths.within.contains(path), || path.contains(&paths.within) && goes_down())
    }
}

/// The certainty with which a rule covers a call of a tool that names no resource, or why it does not.
pub(super) fn cover_call(rule: &Rule, call: &ResolvedCall, reach: ServerReach) -> Result<Match, Mismatch> {
    let condition = &rule.condition;
    let has_role = |roles: &Vec<Role>| roles.iter().any(|role| call.carried.contains(*role));
    let is_about_calls = condition.roles.as_ref().is_none_or(has_role)
        && condition.paths.is_none()
        && condition.domains.is_none();
    let possible = PossibleMatch::of(rule);
    let listed = |list: &ListCondition| {
        possible.hold_for(None, of_roles(list, call), |value| possible.on_list(list, value))
    };
    if !is_about_calls {
        return Err(Mismatch::NoResource);
    }
    let reaches = possible.reaching(condition, call, reach).ok_or(Mismatch::MayReach)?;
    let lists = all(condition.lists.iter().flatten().map(listed)).ok_or(Mismatch::NoResource)?;
    Ok(reaches.min(lists))
}

/// Returns `true` if a rule covers one of the values of a call, or the call as a whole when it names no resource, of a server
/// that reaches nothing.
pub(crate) fn covers_some(rule: &Rule, call: &ResolvedCall) -> bool {
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

fn of_roles<'a>(
    list: &'a ListCondition,
    call: &'a ResolvedCall,
) -> impl Iterator<Item = &'a ResolvedValue> + Clone {
    list.roles.iter().flat_map(|role| call.values(*role))
}

/// The weight of a possible match, by what its rule decides.
#[derive(Clone, Copy, PartialEq)]
enum PossibleMatch {
    /// The rule covers the value.
    Counts,
    /// It does not.
    CountsNot,
}

impl PossibleMatch {
    fn of(rule: &Rule) -> Self {
        match rule.then {
            Decision::Allow => Self::CountsNot,
            Decision::Escalate | Decision::Deny => Self::Counts,
        }
    }

    /// The certainty with which what a condition says of the reach of a call holds.
    fn reaching(self, condition: &RuleCondition, call: &ResolvedCall, reach: ServerReach) -> Option<Match> {
        if !condition.reaches_nothing {
            return Some(Match::Certain);
        }
        let names_nothing = call.names_nothing();
        self.holds(names_nothing && reach == ServerReach::Nothing, || {
            names_nothing && reach == ServerReach::Unknown
        })
    }

    /// The certainty with which a condition holds for every value; nothing when there is no value. Where doubt counts, other
    /// values do not hide it: it is enough that it holds for the value that is judged, or for any where none of them is.
    fn hold_for<'a>(
        self,
        judged: Option<&'a ResolvedValue>,
        values: impl Iterator<Item = &'a ResolvedValue> + Clone,
        holds: impl Fn(&Resource) -> Option<Match>,
    ) -> Option<Match> {
        let mut held = values.clone().map(|given| holds(&given.value)).peekable();
        held.peek()?;
        all(held).or_else(|| {
            let holds = |given: &ResolvedValue| holds(&given.value).is_some();
            let some = judged.map_or_else(|| values.clone().any(holds), holds);
            (self == Self::Counts && some).then_some(Match::Possible)
        })
    }

    fn in_domains(self, condition: &DomainsCondition, value: &Resource) -> Option<Match> {
        let allowed = &condition.allowed;
        match value {
            Resource::Url(destination) => {
                self.holds(allowed.cover(destination), || allowed.may_mean(destination))
            }
            Resource::Text(host) => self.holds(allowed.cover_host(host), || allowed.may_mean_host(host)),
            Resource::Shapeless => self.holds(false, || true),
            Resource::Path(_) => None,
        }
    }

    fn on_list(self, list: &ListCondition, value: &Resource) -> Option<Match> {
        let entries = || list.allowed.iter();
        self.holds(entries().any(|entry| entry.covers(value)), || {
            entries().any(|entry| entry.may_mean(value))
        })
    }

    fn holds(self, surely: bool, in_doubt: impl FnOnce() -> bool) -> Option<Match> {
        if surely {
            return Some(Match::Certain);
        }
        (self == Self::Counts && in_doubt()).then_some(Match::Possible)
    }
}

/// As surely as the least sure of them; surely when there is none.
fn all(mut conditions: impl Iterator<Item = Option<Match>>) -> Option<Match> {
    conditions.try_fold(Match::Certain, |sure, holds| Some(sure.min(holds?)))
}
