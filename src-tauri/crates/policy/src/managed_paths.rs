//! Paths that an organization's rules close to every server.
//!
//! - Such a path is treated like a protected path: calls that access it are denied, and sandboxes do not show it.
//! - Only a rule whose single condition is a folder closes a path, and only if no earlier managed rule for all servers
//!   and tools allows or requires approval for something in it. All other rules are applied only by the judge.
//! - A sandbox shows the same files to all tools, so an earlier rule for certain servers or tools has no effect here.

use crate::protected::ManagedPath;
use crate::{Access, Decision, Layer, Policy, ProtectedPaths, ReadOnlyPath, ReadOnlyReason, Role, Rule};
use ironcurtain_paths::CanonicalPath;

impl ProtectedPaths {
    /// Returns a copy that also contains the paths that the managed rules in `policy` close for reading or for changes.
    #[must_use]
    pub fn with_managed(self, policy: &Policy) -> Self {
        let managed: Vec<&Rule> = policy.rules().iter().filter(|rule| rule.layer == Layer::Managed).collect();
        let (mut closed, mut read_only) = (Vec::new(), Vec::new());
        for (position, rule) in managed.iter().enumerate() {
            let Some(path) = rule.within().filter(|_| rule.denies() && has_only_folder_condition(rule))
            else {
                continue;
            };
            let earlier = managed.iter().take(position);
            let earlier: Vec<&&Rule> = earlier.filter(|earlier| may_exempt(earlier, path)).collect();
            let denies = |access: Access| {
                let mut roles = Role::ALL.iter().filter(|role| role.access() == Some(access));
                roles.any(|role| {
                    let is_exempt = earlier.iter().any(|earlier| earlier.condition.applies_to_role(*role));
                    rule.condition.applies_to_role(*role) && !is_exempt
                })
            };
            let managed =
                |is_closed| ManagedPath { path: path.clone(), is_closed, rule: rule.reason.clone() };
            if denies(Access::Read) {
                closed.push(managed(true));
            } else if denies(Access::Write) || denies(Access::Delete) {
                read_only.push(managed(false));
            }
        }
        if closed.is_empty() && read_only.is_empty() {
            return self;
        }
        let read_only_paths = read_only.iter().map(|managed| managed.path.clone());
        let read_only_paths =
            read_only_paths.map(|path| ReadOnlyPath { path, reason: ReadOnlyReason::Organization });
        let read_only_paths = self.read_only().iter().cloned().chain(read_only_paths).collect();
        let all = self
            .with_protected(closed.iter().map(|managed| managed.path.clone()))
            .with_read_only(read_only_paths);
        all.with_managed_paths(closed.into_iter().chain(read_only).collect())
    }
}

fn has_only_folder_condition(rule: &Rule) -> bool {
    let condition = &rule.condition;
    condition.server.is_none()
        && condition.tool.is_none()
        && condition.domains.is_none()
        && condition.lists.is_none()
        && !condition.reaches_nothing
}

/// Returns `true` if an earlier rule can exempt a file operation on a path from a later deny rule, regardless of the
/// server and tool.
fn may_exempt(earlier: &Rule, path: &CanonicalPath) -> bool {
    let condition = &earlier.condition;
    earlier.then != Decision::Deny
        && condition.server.is_none()
        && condition.tool.is_none()
        && !condition.reaches_nothing
        && earlier.within().is_none_or(|within| within.overlaps(path))
}
