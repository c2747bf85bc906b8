//! Whether a rule covers one value of a call.
//!
//! - A condition whose role has no value never holds.
//! - A rule whose role conditions leave out the role that is judged does not speak about it.

use super::tally::Finding;
use crate::rules::{Conditions, DomainsCondition, ListCondition};
use crate::{Miss, ResolvedCall, Resource, Role, RoleValues, Rule, SharedStr};

/// One value that is judged: which role it stands in, and whether the call gives it at all.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) of: &'a RoleValues,
    pub(super) argument: Option<&'a SharedStr>,
    pub(super) value: Option<&'a Resource>,
}

impl<'a> Scope<'a> {
    /// A role of the tool that the call gives no value for.
    pub(super) fn absent(of: &'a RoleValues) -> Self {
        Self { of, argument: None, value: None }
    }

    pub(super) fn is_covered_by(&self, rule: &Rule, call: &ResolvedCall) -> bool {
        self.misses(rule, call).is_none()
    }

    /// Why a rule does not cover the value; nothing when it does.
    pub(super) fn misses(&self, rule: &Rule, call: &ResolvedCall) -> Option<Miss> {
        let condition = &rule.condition;
        if !speaks_about(condition, self.of.role) {
            return Some(Miss::OtherRoles);
        }
        if !self.is_within(condition) {
            return Some(Miss::NotWithin);
        }
        if !condition.domains.as_ref().is_none_or(|domains| all_in_domains(domains, &self.of.values)) {
            return Some(Miss::NotInDomains);
        }
        (!condition.lists.iter().flatten().all(|list| self.is_listed(list, call))).then_some(Miss::NotListed)
    }

    pub(super) fn finding(&self) -> Finding<'a> {
        Finding { role: Some(self.of.role), argument: self.argument, value: self.value }
    }

    fn is_within(&self, condition: &Conditions) -> bool {
        let Some(paths) = &condition.paths else { return true };
        matches!(self.value, Some(Resource::Path(path)) if paths.within.contains(path))
    }

    /// A list about the judged role is about its values; a list about other roles is about theirs.
    fn is_listed(&self, list: &ListCondition, call: &ResolvedCall) -> bool {
        if list.roles.contains(&self.of.role) {
            return all_listed(list, std::iter::once(self.of.values.as_slice()));
        }
        all_listed(list, list.roles.iter().map(|role| call.values(*role)))
    }
}

/// Whether a rule covers one of the values of a call, or the call as a whole when it names no resource.
pub(crate) fn covers_some(rule: &Rule, call: &ResolvedCall) -> bool {
    let covers = |of: &RoleValues| {
        let mut values = of.values.iter();
        let given = |(argument, value)| Scope { of, argument: Some(argument), value: Some(value) };
        values.any(|(argument, value)| given((argument, value)).is_covered_by(rule, call))
            || (of.values.is_empty() && Scope::absent(of).is_covered_by(rule, call))
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
            .all(|list| all_listed(list, list.roles.iter().map(|role| call.values(*role))))
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

fn all_in_domains(condition: &DomainsCondition, values: &[(SharedStr, Resource)]) -> bool {
    !values.is_empty()
        && values.iter().all(|(_, value)| match value {
            Resource::Url(destination) => condition.allowed.cover(destination),
            Resource::Text(host) => condition.allowed.cover_host(host),
            Resource::Path(_) | Resource::Shapeless => false,
        })
}

fn all_listed<'a>(list: &ListCondition, values: impl Iterator<Item = &'a [(SharedStr, Resource)]>) -> bool {
    let mut any = false;
    for (_, value) in values.flatten() {
        any = true;
        if !list.allowed.iter().any(|entry| entry.covers(value)) {
            return false;
        }
    }
    any
}
