//! Refuses a call that touches a protected path, or changes one that is kept, whatever rules, grants and people say.

use super::Context;
use crate::protected::Closed;
use crate::{Access, Denial, ReadOnlyReason, ResolvedCall, Resource, Role, RoleSet};
use ironcurtain_paths::CanonicalPath;

/// Why the call is refused, when it is.
pub(super) fn refuse(context: &Context<'_>, call: &ResolvedCall) -> Option<Denial> {
    changed(context, call).or_else(|| touched(context, call))
}

/// The refusal to change what is kept.
fn changed(context: &Context<'_>, call: &ResolvedCall) -> Option<Denial> {
    let changes = |role: Role| matches!(role.access(), Some(Access::Write | Access::Delete));
    let written = call.paths().filter(|(role, ..)| changes(*role));
    let mut kept = written.filter_map(|(role, argument, path)| {
        let kept = context.protected.keeps(path, role.descends())?;
        let why = match kept.is {
            ReadOnlyReason::OurPrograms => {
                "IronCurtain's own programs are started from there, outside every sandbox"
            }
            ReadOnlyReason::ClientConfiguration => {
                "it says which programs an agent's client starts, and what is started from there could go around IronCurtain"
            }
        };
        let what = if kept.path == *path { String::new() } else { format!(" (`{}`)", kept.path) };
        let reason = format!("argument `{argument}`: `{path}` is not changed for any agent{what}: {why}");
        Some(Denial::protected(reason))
    });
    kept.next()
}

/// The refusal to touch what is protected.
fn touched(context: &Context<'_>, call: &ResolvedCall) -> Option<Denial> {
    let closed = |path: &CanonicalPath, taken_away: bool| {
        context.protected.closes(path, call.descends() || taken_away, context.sandbox)
    };
    // Each value is looked up once; what is wrong with one is said role by role.
    let is_closed = |value: &Resource, taken_away: bool| matches!(value, Resource::Path(path) if closed(path, taken_away).is_some());
    if !call.given().iter().any(|given| is_closed(&given.value, given.roles.meets(RoleSet::DESCENDING))) {
        return None;
    }
    call.paths().find_map(|(role, argument, path)| {
        let relation = match closed(path, role.descends())? {
            Closed::Inside => "is protected",
            Closed::Above => "has protected files in it",
        };
        Some(Denial::protected(format!("argument `{argument}`: `{path}` {relation}")))
    })
}
