//! Denies calls that access a protected path or change a read-only one, regardless of rules, grants and
//! approvals.

use super::Context;
use crate::protected::ClosedReason;
use crate::{Access, Denial, ReadOnlyReason, ResolvedCall, Resource, Role, RoleSet};
use ironcurtain_paths::CanonicalPath;

/// Returns a denial if the call accesses a protected path or changes a read-only one.
pub(super) fn check(context: &Context<'_>, call: &ResolvedCall) -> Option<Denial> {
    deny_read_only(context, call).or_else(|| deny_protected(context, call))
}

/// Denies a call that changes a read-only path.
fn deny_read_only(context: &Context<'_>, call: &ResolvedCall) -> Option<Denial> {
    let changes = |role: Role| matches!(role.access(), Some(Access::Write | Access::Delete));
    let written = call.paths().filter(|(role, ..)| changes(*role));
    let mut read_only = written.filter_map(|(role, argument, path)| {
        let read_only = context.protected.read_only_path(path, role.descends())?;
        let why = match read_only.reason {
            ReadOnlyReason::Organization => match context.protected.read_only_rule(&read_only.path) {
                Some(rule) => return Some(Denial::by_rules(rule, Vec::new())),
                None => "your organization denies changes to it",
            },
            ReadOnlyReason::OurPrograms => {
                "it contains IronCurtain's own programs, which run outside every sandbox"
            }
            ReadOnlyReason::ClientConfiguration => {
                "it names programs that agent clients start, and those could bypass IronCurtain"
            }
        };
        let protected_path =
            if read_only.path == *path { String::new() } else { format!(" (`{}`)", read_only.path) };
        let reason =
            format!("argument `{argument}`: `{path}` cannot be changed by agents{protected_path}: {why}");
        Some(Denial::protected(reason))
    });
    read_only.next()
}

/// Denies a call that accesses a protected path.
fn deny_protected(context: &Context<'_>, call: &ResolvedCall) -> Option<Denial> {
    let closed_reason = |path: &CanonicalPath, is_removed: bool| {
        context.protected.closed_reason(path, call.descends() || is_removed, context.sandbox)
    };
    // Checks each value cheaply first, because the paths and their roles are needed only for the reason.
    let is_closed = |value: &Resource, is_removed: bool| matches!(value, Resource::Path(path) if closed_reason(path, is_removed).is_some());
    if !call.given().iter().any(|given| is_closed(&given.value, given.roles.meets(RoleSet::DESCENDING))) {
        return None;
    }
    call.paths().find_map(|(role, argument, path)| {
        let closed_reason = closed_reason(path, role.descends())?;
        let (contains_protected, relation) = match closed_reason {
            ClosedReason::Protected => (false, "is protected"),
            ClosedReason::ContainsProtected => (true, "contains protected files"),
        };
        if let Some(rule) = context.protected.denying_rule(path, contains_protected) {
            return Some(Denial::by_rules(rule, Vec::new()));
        }
        Some(Denial::protected(format!("argument `{argument}`: `{path}` {relation}")))
    })
}
