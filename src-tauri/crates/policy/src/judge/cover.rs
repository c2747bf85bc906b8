//! Whether a rule covers one value of a call.
//!
//! - A condition whose role has no value never holds.
//! - A rule whose role conditions leave out the role that is judged does not speak about it.
//! - In doubt a rule that allows does not cover a value, and a rule that asks or denies does: an address that nobody
//!   understands, or a repository in another spelling, does not slip past a rule that is meant for it.

use super::tally::Finding;
use crate::{
    Decision, DomainsCondition, Given, ListCondition, Miss, PathsCondition, ResolvedCall, Resource, Role,
    RoleSet, Rule,
};

/// One value that is judged in one role; a role of the tool that the call gives no value for has none.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) role: Role,
    pub(super) given: Option<&'a Given>,
}

/// How surely a condition holds, the least sure first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holds {
    /// It may be meant for the value, which it does not name.
    InDoubt,
    /// It names the value.
    Surely,
}

/// The rule that decides, of the rules about something in their order: the first one that covers it. One that asks in
/// doubt decides only where a rule after it would allow: it never stands before one that denies.
pub(super) fn first<'a>(
    rules: impl Iterator<Item = &'a Rule>,
    mut cover: impl FnMut(&'a Rule) -> Option<Holds>,
) -> Option<&'a Rule> {
    let mut asks = None;
    for rule in rules {
        match (cover(rule), rule.then) {
            (None, _) => {}
            (Some(Holds::InDoubt), Decision::Escalate) => drop(asks.get_or_insert(rule)),
            (Some(_), Decision::Deny) => return Some(rule),
            (Some(_), Decision::Allow | Decision::Escalate) => return asks.or(Some(rule)),
        }
    }
    None
}

impl<'a> Scope<'a> {
    /// Whether a rule covers the value, and if not, why.
    pub(super) fn cover(&self, rule: &Rule, call: &ResolvedCall) -> Result<Holds, Miss> {
        let condition = &rule.condition;
        if !condition.speaks_about(self.role) {
            return Err(Miss::OtherRoles);
        }
        let doubt = Doubt::of(rule);
        let paths = all(condition.paths.iter().map(|paths| self.within(paths, call, doubt)))
            .ok_or(Miss::NotWithin)?;
        let values = || call.values(self.role);
        let domains = condition.domains.iter();
        let in_domains =
            |domains| doubt.hold_for(self.given, values(), |value| doubt.in_domains(domains, value));
        let domains = all(domains.map(in_domains)).ok_or(Miss::NotInDomains)?;
        // A list about the judged role is about its values; a list about other roles is about theirs.
        let listed = |list: &ListCondition| match list.roles.contains(&self.role) {
            true => doubt.hold_for(self.given, values(), |value| doubt.on_list(list, value)),
            false => doubt.hold_for(None, of_roles(list, call), |value| doubt.on_list(list, value)),
        };
        let lists = all(condition.lists.iter().flatten().map(listed)).ok_or(Miss::NotListed)?;
        Ok(paths.min(domains).min(lists))
    }

    pub(super) fn finding(&self) -> Finding<'a> {
        Finding { role: Some(self.role), given: self.given }
    }

    /// A folder that is moved, removed or gone through takes along what lies in it: a rule that asks or denies about that is
    /// meant, too.
    fn within(&self, paths: &PathsCondition, call: &ResolvedCall, doubt: Doubt) -> Option<Holds> {
        let given = self.given?;
        let Resource::Path(path) = &given.value else { return None };
        let goes_down = || given.roles.meets(RoleSet::DESCENDING) || call.descends();
        doubt.holds(paths.within.contains(path), || path.contains(&paths.within) && goes_down())
    }
}

/// Whether a rule covers a call of a tool that names no resource.
pub(super) fn cover_call(rule: &Rule, call: &ResolvedCall) -> Option<Holds> {
    let condition = &rule.condition;
    let has_role = |roles: &Vec<Role>| roles.iter().any(|role| call.carried.contains(*role));
    let is_about_calls = condition.roles.as_ref().is_none_or(has_role)
        && condition.paths.is_none()
        && condition.domains.is_none();
    let doubt = Doubt::of(rule);
    let listed =
        |list: &ListCondition| doubt.hold_for(None, of_roles(list, call), |value| doubt.on_list(list, value));
    is_about_calls.then(|| all(condition.lists.iter().flatten().map(listed)))?
}

/// Whether a rule covers one of the values of a call, or the call as a whole when it names no resource.
pub(crate) fn covers_some(rule: &Rule, call: &ResolvedCall) -> bool {
    let covers = |role: &Role| {
        let is_covered = |given| Scope { role: *role, given }.cover(rule, call).is_ok();
        let mut values = call.values(*role).map(Some).peekable();
        if values.peek().is_none() { is_covered(None) } else { values.any(is_covered) }
    };
    if call.roles().is_empty() { cover_call(rule, call).is_some() } else { call.roles().iter().any(covers) }
}

fn of_roles<'a>(list: &'a ListCondition, call: &'a ResolvedCall) -> impl Iterator<Item = &'a Given> + Clone {
    list.roles.iter().flat_map(|role| call.values(*role))
}

/// What becomes of what a rule may be meant for.
#[derive(Clone, Copy, PartialEq)]
enum Doubt {
    /// It is covered.
    Counts,
    /// It is not.
    DoesNot,
}

impl Doubt {
    fn of(rule: &Rule) -> Self {
        match rule.then {
            Decision::Allow => Self::DoesNot,
            Decision::Escalate | Decision::Deny => Self::Counts,
        }
    }

    /// Whether there is a value, and a condition holds for every one. Where doubt counts, one next to others does not
    /// hide it: it is enough that the condition holds for the value that is judged, or for any where none of them is.
    fn hold_for<'a>(
        self,
        judged: Option<&'a Given>,
        values: impl Iterator<Item = &'a Given> + Clone,
        holds: impl Fn(&Resource) -> Option<Holds>,
    ) -> Option<Holds> {
        let mut held = values.clone().map(|given| holds(&given.value)).peekable();
        held.peek()?;
        all(held).or_else(|| {
            let holds = |given: &Given| holds(&given.value).is_some();
            let some = judged.map_or_else(|| values.clone().any(holds), holds);
            (self == Self::Counts && some).then_some(Holds::InDoubt)
        })
    }

    fn in_domains(self, condition: &DomainsCondition, value: &Resource) -> Option<Holds> {
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

    fn on_list(self, list: &ListCondition, value: &Resource) -> Option<Holds> {
        let entries = || list.allowed.iter();
        self.holds(entries().any(|entry| entry.covers(value)), || {
            entries().any(|entry| entry.may_mean(value))
        })
    }

    fn holds(self, surely: bool, in_doubt: impl FnOnce() -> bool) -> Option<Holds> {
        if surely {
            return Some(Holds::Surely);
        }
        (self == Self::Counts && in_doubt()).then_some(Holds::InDoubt)
    }
}

/// As surely as the least sure of them; surely when there is none.
fn all(mut conditions: impl Iterator<Item = Option<Holds>>) -> Option<Holds> {
    conditions.try_fold(Holds::Surely, |sure, holds| Some(sure.min(holds?)))
}
