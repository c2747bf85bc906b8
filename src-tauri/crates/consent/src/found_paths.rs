//! Facts that the disk and git know about the values of a call, found out before it is judged.
//!
//! - Blocking, and true for the moment it was found: whoever uses it later finds it out again.
//! - Nothing is decided here. Where git is looked into is the caller's word (`ironcurtain_git_facts::RemoteQuestion::answer`).

mod project;

pub use project::project_around;

use ironcurtain_paths::{CanonicalPath, Link, PathError, PathKind, Resolution};
use ironcurtain_policy::{CallPlan, Denial, Fact, Role};
use std::collections::BTreeMap;
use std::mem::discriminant;

/// The facts of a call: one for each planned value, in order.
#[derive(Debug)]
pub struct ResolvedValues {
    /// The facts for [`CallPlan::resolve`].
    pub facts: Vec<Fact>,
    /// The paths of the call, each with what was found there.
    pub paths: FoundPaths,
}

/// The target of one path of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPath {
    /// The argument it came in.
    pub argument: String,
    /// As the client wrote it.
    pub written: String,
    /// The path that it leads to.
    pub path: CanonicalPath,
    /// The links on the way.
    pub links: Vec<Link>,
    /// The kind of thing at that path.
    pub target: PathKind,
}

/// Every path of a call, in the order of its values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundPaths(Vec<FoundPath>);

impl FoundPaths {
    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, FoundPath> {
        self.0.iter()
    }

    /// True if the call names no path.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every canonical path, once.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        let mut all: Vec<String> = self.iter().map(|found| found.path.as_str().to_owned()).collect();
        all.dedup();
        all
    }

    /// The path of an argument that leads there.
    #[must_use]
    pub fn find(&self, argument: &str, path: &CanonicalPath) -> Option<&FoundPath> {
        self.iter().find(|found| found.argument == argument && found.path == *path)
    }

    /// True if the call names this path, and a folder is there: a grant for a file says nothing of what lies in that.
    #[must_use]
    pub fn has_folder(&self, path: &CanonicalPath) -> bool {
        self.iter().any(|found| found.path == *path && matches!(found.target, PathKind::Folder))
    }

    /// True if every path in common with an earlier look has the same kind of thing as then: a file is a file, a folder a
    /// folder, and what is missing is missing.
    pub fn stands_as(&self, before: &Self) -> bool {
        let is_same = |now: &FoundPath, then: &FoundPath| {
            now.argument != then.argument
                || now.path != then.path
                || discriminant(&now.target) == discriminant(&then.target)
        };
        self.iter().all(|now| before.iter().all(|then| is_same(now, then)))
    }

    /// The first path of a map that is one of them, or holds one.
    pub fn first_of<'a>(
        &self,
        failed: &'a BTreeMap<CanonicalPath, String>,
    ) -> Option<(&'a CanonicalPath, &'a str)> {
        let concerns = |path: &CanonicalPath| self.iter().any(|found| path.contains(&found.path));
        failed.iter().find(|(path, _)| concerns(path)).map(|(path, reason)| (path, reason.as_str()))
    }
}

/// Finds where every path of a call leads; every other value gets `other`.
///
/// # Errors
/// A denial, when one of them leads nowhere.
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
        let led = resolve(raw).map_err(|e| Denial::unresolvable(value.argument, &e))?;
        if cannot_be(&led.path) {
            return Err(too_long(value.argument));
        }
        found.facts.push(Fact::Path(led.path.clone()));
        let (argument, written) = (value.argument.to_string(), raw.to_owned());
        found.paths.0.push(FoundPath {
            argument,
            written,
            path: led.path,
            links: led.links,
            target: led.target,
        });
    }
    Ok(found)
}

/// The call without its git remotes, to judge by its paths alone whether git may be asked about them.
#[must_use]
pub fn without_remotes<'a>(plan: &CallPlan<'a>, facts: &[Fact]) -> (CallPlan<'a>, Vec<Fact>) {
    let kept = plan.values().iter().zip(facts).filter(|(value, _)| !value.is_remote());
    (plan.without(Role::GitRemoteUrl), kept.map(|(_, fact)| fact.clone()).collect())
}

/// True if a path is longer than Linux allows (`NAME_MAX`, `PATH_MAX`): nobody needs to be asked about it.
fn cannot_be(path: &CanonicalPath) -> bool {
    path.as_str().len() > 4095 || path.components().any(|name| name.len() > 255)
}

fn too_long(argument: &str) -> Denial {
    let reason = format!("the path in `{argument}` is longer than a path can be");
    Denial::invalid(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_policy::Annotations;
    use serde_json::{Value, json};
    use std::sync::Arc;

    /// A push from a folder to a remote, as it is planned.
    fn planned<T>(arguments: &Value, look: impl FnOnce(CallPlan<'_>) -> T) -> T {
        let args = json!({ "path": ["read-path"], "remote": ["git-remote-url"] });
        let tools = json!([{ "toolName": "push", "serverName": "git", "args": args }]);
        let text = json!({ "servers": { "git": { "tools": tools } } }).to_string();
        let annotations = Annotations::from_json(&text, "tools").unwrap();
        let arguments = Arc::new(arguments.as_object().unwrap().clone());
        look(annotations.plan("git", "push", &arguments).unwrap())
    }

    #[test]
    fn a_path_as_long_as_one_can_be_is_found_and_a_longer_one_is_refused() {
        let found = |path: &str| {
            let path = CanonicalPath::assume_canonical(path).unwrap();
            let led = Resolution { path: path.clone(), links: Vec::new(), target: PathKind::Missing };
            let found =
                planned(&json!({ "path": "x" }), |plan| paths(&plan, &Fact::Plain, |_| Ok(led.clone())));
            found
                .map(|found| assert_eq!(found.paths.0[0].path, path))
                .map_err(|denial| denial.reason.to_string())
        };
        let refused = Err("the path in `path` is longer than a path can be".to_owned());
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
    fn without_its_remotes_a_call_is_judged_by_its_paths() {
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
