//! Refuses a call that touches a protected path, whatever rules, grants and people say.

use super::{Context, PROTECTED_PATH};
use crate::protected::Closed;
use crate::{Denial, ResolvedCall, Role};

/// Why the call is refused, when it is.
pub(super) fn refuse(context: &Context<'_>, call: &ResolvedCall) -> Option<Denial> {
    call.paths().find_map(|(role, argument, path)| {
        let descends = call.descends || Role::descends(role);
        let relation = match context.protected.closes(path, descends, context.sandbox)? {
            Closed::Inside => "is protected",
            Closed::Above => "has protected files in it",
        };
        Some(Denial::new(PROTECTED_PATH, format!("argument `{argument}`: `{path}` {relation}")))
    })
}
