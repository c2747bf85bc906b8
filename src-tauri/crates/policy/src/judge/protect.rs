//! Denies calls that access a protected path or change a read-only one, regardless of rules, grants and
//! approvals.

use super::Context;
use crate::protected::Closed;
use crate::{Access, Denial, ReadOnlyReason, ResolvedCall, Resource, Role, RoleSet};
use ironcurtain_paths::CanonicalPath;

/// Returns a denial if the call accesses a protected path or changes a read-only one.
pub(super) fn refuse(context: &Context<'_>, call: &ResolvedCall) -> Option<Denial> {
    changed(context, call).or_else(|| touched(context, call))
}

/// Denies a call that changes a read-only path.
fn changed(context: &Context<'_>, call: &ResolvedCall) -> Option<Denial> {
    let changes = |role: Role| matches!(role.access(), Some(Access::Write | Access::Delete));
    let written = call.paths().filter(|(role, ..)| changes(*role));
    let mut kept = written.filter_map(|(role, argument, path)| {
        let kept = context.protected.keeps(path, role.descends())?;
        let why = match kept.is {
            ReadOnlyReason::Organization => match context.protected.kept_by_organization(&kept.path) {
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
        let what = if kept.path == *path { String::new() } else { format!(" (`{}`)", kept.path) };
        let reason = format!("argument `{argument}`: `{path}` cannot be changed by agents{what}: {why}");
        Some(Denial::protected(reason))
    });
    kept.next()
}

/// Denies a call that accesses a protected path.
fn touched(context: &Context<'_>, call: &ResolvedCall) -> Option<Denial> {
    let closed = |path: &CanonicalPath, taken_away: bool| {
        context.protected.closes(path, call.descends() || taken_away, context.sandbox)
    };
    // Checks each value cheaply first, because the paths and their roles are needed only for the reason.
    let is_closed = |value: &Resource, taken_away: bool| matches!(value, Resource::Path(path) if closed(path, taken_away).is_some());
    if !call.given().iter().any(|given| is_closed(&given.value, given.roles.meets(RoleSet::DESCENDING))) {
        return None;
    }
    call.paths().find_map(|(role, argument, path)| {
        let closed = closed(path, role.descends())?;
        let (is_above, relation) = match closed {
            Closed::Inside => (false, "is protected"),
            Closed::Above => (true, "contains protected files"),
        };
        if let Some(rule) = context.protected.closed_by_organization(path, is_above) {
            return Some(Denial::by_rules(rule, Vec::new()));
        }
        Some(Denial::protected(format!("argument `{argument}`: `{path}` {relation}")))
    })
}
