//! Whether a rule covers one value of a call.
//!
//! - A condition whose role has no value never holds.
//! - A rule whose role conditions leave out the role that is judged does not speak about it.

use super::tally::Finding;
use crate::rules::{Conditions, DomainsCondition, ListCondition};
use crate::{Given, Miss, ResolvedCall, Resource, Role, Rule};

/// One value that is judged in one role; a role of the tool that the call gives no value for has none.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) role: Role,
    pub(super) given: Option<&'a Given>,
}

impl<'a> Scope<'a> {
    pub(super) fn is_covered_by(&self, rule: &Rule, call: &ResolvedCall) -> bool {
        self.misses(rule, call).is_none()
    }

    /// Why a rule does not cover the value; nothing when it does.
    pub(super) fn misses(&self, rule: &Rule, call: &ResolvedCall) -> Option<Miss> {
        let condition = &rule.condition;
        if !speaks_about(condition, self.role) {
            return Some(Miss::OtherRoles);
        }
        if !self.is_within(condition) {
            return Some(Miss::NotWithin);
        }
        if !condition.domains.as_ref().is_none_or(|domains| all_in_domains(domains, call.values(self.role))) {
            return Some(Miss::NotInDomains);
        }
        (!condition.lists.iter().flatten().all(|list| self.is_listed(list, call))).then_some(Miss::NotListed)
    }

    pub(super) fn finding(&self) -> Finding<'a> {
        Finding { role: Some(self.role), given: self.given }
    }

    fn is_within(&self, condition: &Conditions) -> bool {
        let Some(paths) = &condition.paths else { return true };
        let value = self.given.map(|given| &given.value);
        matches!(value, Some(Resource::Path(path)) if paths.within.contains(path))
    }

    /// A list about the judged role is about its values; a list about other roles is about theirs.
    fn is_listed(&self, list: &ListCondition, call: &ResolvedCall) -> bool {
        if list.roles.contains(&self.role) {
            return all_listed(list, call.values(self.role));
        }
        all_listed(list, list.roles.iter().flat_map(|role| call.values(*role)))
    }
}

/// Whether a rule covers one of the values of a call, or the call as a whole when it names no resource.
pub(crate) fn covers_some(rule: &Rule, call: &ResolvedCall) -> bool {
    let covers = |role: &Role| {
        let is_covered = |given| Scope { role: *role, given }.is_covered_by(rule, call);
        let mut values = call.values(*role).map(Some).peekable();
        if values.peek().is_none() { is_covered(None) } else { values.any(is_covered) }
    };
    if call.roles().is_empty() { covers_call(rule, call) } else { call.roles().iter().any(covers) }
}

/// Whether a rule covers a call of a tool that names no resource.
pub(super) fn covers_call(rule: &Rule, call: &ResolvedCall) -> bool {
    let condition = &rule.condition;
    condition.roles.as_ref().is_none_or(|roles| roles.iter().any(|role| call.carried.contains(*role)))
        && condition.paths.is_none()
        && condition.domains.is_none()
        && condition
            .lists
            .iter()
            .flatten()
            .all(|list| all_listed(list, list.roles.iter().flat_map(|role| call.values(*role))))
}

/// The judged roles that a rule speaks about.
pub(crate) fn spoken_about(rule: &Rule) -> impl Iterator<Item = Role> {
    Role::ALL.iter().copied().filter(|role| role.is_resource() && speaks_about(&rule.condition, *role))
}

/// Every role condition must name the role; one of the lists is enough.
fn speaks_about(condition: &Conditions, role: Role) -> bool {
    condition.roles.as_ref().is_none_or(|roles| roles.contains(&role))
        && condition.paths.as_ref().is_none_or(|paths| paths.roles.contains(&role))
        && condition.domains.as_ref().is_none_or(|domains| domains.roles.contains(&role))
        && condition
            .lists
            .as_ref()
            .is_none_or(|lists| lists.is_empty() || lists.iter().any(|list| list.roles.contains(&role)))
}

fn all_in_domains<'a>(condition: &DomainsCondition, values: impl Iterator<Item = &'a Given>) -> bool {
    some_and_all(values, |value| match value {
        Resource::Url(destination) => condition.allowed.cover(destination),
        Resource::Text(host) => condition.allowed.cover_host(host),
        Resource::Path(_) | Resource::Shapeless => false,
    })
}

fn all_listed<'a>(list: &ListCondition, values: impl Iterator<Item = &'a Given>) -> bool {
    some_and_all(values, |value| list.allowed.iter().any(|entry| entry.covers(value)))
}

/// Whether there is a value, and the condition holds for every one.
fn some_and_all<'a>(
    values: impl Iterator<Item = &'a Given>,
    mut holds: impl FnMut(&Resource) -> bool,
) -> bool {
    let mut values = values.peekable();
    values.peek().is_some() && values.all(|given| holds(&given.value))
}
