//! Paths that no call touches, whatever rules, grants and people say.
//!
//! - A path is refused when it is in a protected path, and also when it is above one and the call goes down into it.
//! - The session sandbox lies in a protected folder of ours: that folder does not protect it, one inside it does.

use super::{Context, PROTECTED_PATH};
use crate::{Denial, ResolvedCall, Role};
use ironcurtain_paths::CanonicalPath;

/// Refuses a call that touches a protected path.
pub(super) fn refuse(context: &Context<'_>, call: &ResolvedCall) -> Option<Denial> {
    call.paths().find_map(|(role, argument, path)| {
        let descends = call.descends || Role::descends(role);
        let protected =
            context.protected.iter().find(|protected| is_hit(context, protected, path, descends))?;
        let relation = if protected.contains(path) { "is protected" } else { "has protected files in it" };
        Some(Denial::new(PROTECTED_PATH, format!("argument `{argument}`: `{path}` {relation}")))
    })
}

fn is_hit(context: &Context<'_>, protected: &CanonicalPath, path: &CanonicalPath, descends: bool) -> bool {
    if descends && path.contains(protected) {
        return true;
    }
    let excepted =
        context.sandbox.is_some_and(|sandbox| protected.contains(sandbox) && sandbox.contains(path));
    protected.contains(path) && !excepted
}
