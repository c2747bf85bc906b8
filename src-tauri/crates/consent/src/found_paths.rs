//! Gathers facts about a call's values from the disk and from git before the call is judged.
//!
//! - Blocking. Facts can become outdated at any time, so they must be gathered again before a later use.
//! - Makes no decision. The caller limits where git is queried (`RemoteQuery::resolve_addresses` in `ironcurtain_git_facts`).

mod cache;
mod project;

pub use cache::cache_around;
pub use project::project_around;

use ironcurtain_paths::{CanonicalPath, Link, PathError, PathKind, Resolution};
use ironcurtain_policy::{CallPlan, Denial, Fact, Role};
use std::collections::BTreeMap;
use std::mem::discriminant;

/// Facts about a call: one fact for each planned value, in the plan's order.
#[derive(Debug)]
pub struct ResolvedValues {
    /// Input for [`CallPlan::resolve`].
    pub facts: Vec<Fact>,
    /// The call's paths and what they refer to.
    pub paths: FoundPaths,
}

/// A path in a call, and the object that was found on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPath {
    /// Name of the argument that contains the path.
    pub argument: String,
    /// Path as the client wrote it.
    pub written: String,
    /// Canonical path, with all symlinks resolved.
    pub path: CanonicalPath,
    /// Symlinks that were followed to the canonical path.
    pub links: Vec<Link>,
    /// Kind of file system object at the canonical path.
    pub target: PathKind,
}

/// All paths of a call, in the order of its values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundPaths(Vec<FoundPath>);

impl FoundPaths {
    /// Iterates over the paths.
    pub fn iter(&self) -> std::slice::Iter<'_, FoundPath> {
        self.0.iter()
    }

    /// Returns `true` if the call contains no path.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the distinct canonical paths of the call.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        let mut all: Vec<String> = self.iter().map(|found| found.path.as_str().to_owned()).collect();
        all.dedup();
        all
    }

    /// Returns the found path with this argument and canonical path.
    #[must_use]
    pub fn find(&self, argument: &str, path: &CanonicalPath) -> Option<&FoundPath> {
        self.iter().find(|found| found.argument == argument && found.path == *path)
    }

    /// Returns `true` if the call contains this path and the path is a folder. A grant for a file does not apply to a
    /// folder.
    #[must_use]
    pub fn has_folder(&self, path: &CanonicalPath) -> bool {
        self.iter().any(|found| found.path == *path && matches!(found.target, PathKind::Folder))
    }

    /// Returns `true` if every path that also occurs in `before` is still of the same kind: a file, a folder or
    /// missing.
    pub fn has_same_kinds(&self, before: &Self) -> bool {
        let is_same = |now: &FoundPath, then: &FoundPath| {
            now.argument != then.argument
                || now.path != then.path
                || discriminant(&now.target) == discriminant(&then.target)
        };
        self.iter().all(|now| before.iter().all(|then| is_same(now, then)))
    }

    /// Returns the first entry of `failed` whose path is, or contains, one of the call's paths.
    pub fn find_affected<'a>(
        &self,
        failed: &'a BTreeMap<CanonicalPath, String>,
    ) -> Option<(&'a CanonicalPath, &'a str)> {
        let concerns = |path: &CanonicalPath| self.iter().any(|found| path.contains(&found.path));
        failed.iter().find(|(path, _)| concerns(path)).map(|(path, reason)| (path, reason.as_str()))
    }
}

/// Resolves all paths in a call. Gives every other value the `other` fact.
///
/// # Errors
/// Returns a denial if a path cannot be resolved.
pub fn paths(
    plan: &CallPlan<'_>,
    other: &Fact,
    resolve: impl Fn(&str) -> Result<Resolution, PathError>,
) -> Result<ResolvedValues, Denial> {
    let mut found = ResolvedValues { facts: Vec::new(), paths: FoundPaths::default() };
    for value in plan.values() {
        let (true, Some(raw)) = (value.is_path(), value.raw) else {
            found.facts.push(other.clone());
            continue;
        };
        let resolution = resolve(raw).map_err(|e| Denial::unresolvable(value.argument, &e))?;
        if exceeds_path_limits(&resolution.path) {
            return Err(too_long(value.argument));
        }
        found.facts.push(Fact::Path(resolution.path.clone()));
        let (argument, written) = (value.argument.to_string(), raw.to_owned());
        found.paths.0.push(FoundPath {
            argument,
            written,
            path: resolution.path,
            links: resolution.links,
            target: resolution.target,
        });
    }
    Ok(found)
}

/// Returns the plan and its facts without git remotes. The judge uses them to decide whether git may be queried.
#[must_use]
pub fn without_remotes<'a>(plan: &CallPlan<'a>, facts: &[Fact]) -> (CallPlan<'a>, Vec<Fact>) {
    let kept = plan.values().iter().zip(facts).filter(|(value, _)| !value.is_remote());
    (plan.without(Role::GitRemoteUrl), kept.map(|(_, fact)| fact.clone()).collect())
}

/// Returns `true` if the path exceeds `NAME_MAX` or `PATH_MAX`. No such file can exist, so there is no point in asking
/// the user.
fn exceeds_path_limits(path: &CanonicalPath) -> bool {
    path.as_str().len() > 4095 || path.components().any(|name| name.len() > 255)
}

fn too_long(argument: &str) -> Denial {
    let reason = format!("the path in `{argument}` is longer than Linux allows");
    Denial::invalid(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_policy::Annotations;
    use serde_json::{Value, json};
    use std::sync::Arc;

    /// Calls `inspect` with the plan for a push from a folder to a remote.
    fn planned<T>(arguments: &Value, inspect: impl FnOnce(CallPlan<'_>) -> T) -> T {
        let args = json!({ "path": ["read-path"], "remote": ["git-remote-url"] });
        let tools = json!([{ "toolName": "push", "serverName": "git", "args": args }]);
        let text = json!({ "servers": { "git": { "tools": tools } } }).to_string();
        let annotations = Annotations::from_json(&text, "tools").unwrap();
        let arguments = Arc::new(arguments.as_object().unwrap().clone());
        inspect(annotations.plan("git", "push", &arguments).unwrap())
    }

    #[test]
    fn a_path_of_maximum_length_is_found_and_a_longer_one_refused() {
        let found = |path: &str| {
            let path = CanonicalPath::assume_canonical(path).unwrap();
            let resolution = Resolution { path: path.clone(), links: Vec::new(), target: PathKind::Missing };
            let found = planned(&json!({ "path": "x" }), |plan| {
                paths(&plan, &Fact::Plain, |_| Ok(resolution.clone()))
            });
            found
                .map(|found| assert_eq!(found.paths.0[0].path, path))
                .map_err(|denial| denial.reason.to_string())
        };
        let refused = Err("the path in `path` is longer than Linux allows".to_owned());
        let name = |length: usize| format!("/{}", "x".repeat(length));
        let path = |length: usize| name(length - 4000) + &name(99).repeat(40);
        assert_eq!((path(4095).len(), path(4096).len()), (4095 + 1, 4096 + 1));
        for (path, expected) in [
            (name(255), Ok(())),
            (name(256), refused.clone()),
            (name(256) + "/x", refused.clone()),
            (path(4094), Ok(())),
            (path(4095), refused),
        ] {
            assert_eq!(found(&path), expected, "{}", path.len());
        }
    }

    #[test]
    fn without_remotes_a_call_is_judged_by_its_paths() {
        let arguments = json!({ "path": "/r", "remote": "origin" });
        let path = CanonicalPath::assume_canonical("/r").unwrap();
        let call = planned(&arguments, |plan| {
            let (plan, facts) =
                without_remotes(&plan, &[Fact::Path(path.clone()), Fact::Remotes(Vec::new())]);
            plan.resolve(facts).unwrap()
        });
        assert_eq!(call.roles(), [Role::ReadPath]);
        assert_eq!(call.paths().collect::<Vec<_>>(), [(Role::ReadPath, "path", &path)]);
    }
}
