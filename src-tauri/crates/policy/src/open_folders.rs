//! Folders to which a policy always grants a server access.

use crate::{Access, Decision, PathGrant, Policy, Role, Rule};
use ironcurtain_paths::CanonicalPath;

/// Folder to which a policy grants all of a server's tools access. It can therefore stay mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFolder {
    /// Path of the folder.
    pub path: CanonicalPath,
    /// `true` if the server may also change the folder.
    pub writable: bool,
    /// Name of the rule that grants access.
    pub rule: String,
}

/// Returns the folders to which a policy always grants a server access. Such a folder is the only condition of a rule
/// that allows reading, and no earlier rule requires approval or denies access there. If the rule is managed, no later
/// rule does so either. Other folders are mounted only while a call needs them.
#[must_use]
pub fn open_folders(policy: &Policy, server: &str) -> Vec<OpenFolder> {
    let mut open: Vec<OpenFolder> = Vec::new();
    for (index, rule) in policy.rules().iter().enumerate() {
        let (Decision::Allow, Some(path), true) = (rule.then, rule.within(), has_only_folder_condition(rule))
        else {
            continue;
        };
        let before =
            if rule.is_managed() { policy.rules() } else { policy.rules().get(..index).unwrap_or_default() };
        let is_unrestricted = |access: Access| {
            let mut of_access = Role::ALL.iter().filter(|role| role.access() == Some(access));
            of_access.any(|role| may_apply(rule, server, *role, path))
                && !Role::ALL.iter().filter(|role| role.access() == Some(access)).any(|role| {
                    before.iter().any(|earlier| {
                        earlier.then != Decision::Allow && may_apply(earlier, server, *role, path)
                    })
                })
        };
        let is_listed = open.iter().any(|open| open.path == *path);
        if is_unrestricted(Access::Read) && !is_listed {
            let writable = is_unrestricted(Access::Write) && is_unrestricted(Access::Delete);
            open.push(OpenFolder { path: path.clone(), writable, rule: rule.name().to_string() });
        }
    }
    open
}

/// Returns `true` if a managed rule overrides a server's grant for the granted path or for a path inside it, so that
/// the granted path must not stay mounted. Rules that apply only to some tools are left to the judge.
#[must_use]
pub fn is_suspended(policy: &Policy, server: &str, grant: &PathGrant) -> bool {
    let managed = policy.rules().iter().take_while(|rule| rule.is_managed());
    let general = managed.filter(|rule| has_only_folder_condition(rule) && !rule.condition.reaches_nothing);
    let general: Vec<&Rule> = general.collect();
    let covers_all = |rule: &Rule| rule.within().is_none_or(|within| within.contains(&grant.path));
    let granted = |role: &&Role| role.access().is_some_and(|access| grant.access.has(access));
    Role::ALL.iter().filter(granted).any(|role| {
        let mut applicable = general.iter().filter(|rule| may_apply(rule, server, *role, &grant.path));
        let overrides = |rule: &&&Rule| rule.overrides_grant_of(grant.created_ms);
        // A rule that covers the whole granted path precedes all later rules.
        let first = applicable.find(|rule| overrides(rule) || covers_all(rule));
        first.is_some_and(|rule| overrides(&rule))
    })
}

fn has_only_folder_condition(rule: &Rule) -> bool {
    let condition = &rule.condition;
    condition.tool.is_none() && condition.domains.is_none() && condition.lists.is_none()
}

/// Returns `true` if a rule could apply to a path in `folder`, for this server and role.
fn may_apply(rule: &Rule, server: &str, role: Role, folder: &CanonicalPath) -> bool {
    let condition = &rule.condition;
    let of_server = condition.server.as_ref().is_none_or(|servers| servers.iter().any(|s| s == server));
    let of_role = condition.roles.as_ref().is_none_or(|roles| roles.contains(&role));
    let of_folder = condition
        .paths
        .as_ref()
        .is_none_or(|paths| paths.roles.contains(&role) && paths.within.overlaps(folder));
    of_server && of_role && of_folder
}
