//! Refuses a call that touches a protected path, whatever rules, grants and people say.

use super::{Context, PROTECTED_PATH};
use crate::protected::Closed;
use crate::{Denial, ResolvedCall, Resource, RoleSet};
use ironcurtain_paths::CanonicalPath;

/// Why the call is refused, when it is.
pub(super) fn refuse(context: &Context<'_>, call: &ResolvedCall) -> Option<Denial> {
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
        Some(Denial::new(PROTECTED_PATH, format!("argument `{argument}`: `{path}` {relation}")))
    })
}
