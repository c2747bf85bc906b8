//! What the disk and git know about the values of a call, found out before it is judged.
//!
//! - Blocking, and true for the moment it was found: whoever uses it later finds it out again.
//! - Nothing is decided here. Where git is looked into is the caller's word ([`RemoteQuestion::answer`]).

mod git;

pub use git::{Git, RemoteQuestion};

use ironcurtain_paths::{CanonicalPath, Link, PathError, Resolution, Target};
use ironcurtain_policy::{CallPlan, Denial, Fact, Role};

/// The facts of a call: one for each planned value, in order.
#[derive(Debug)]
pub struct Found {
    /// What goes to [`CallPlan::with_facts`].
    pub facts: Vec<Fact>,
    /// What was found at each path.
    pub paths: Vec<FoundPath>,
}

/// Where one path of a call leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPath {
    /// The argument it came in.
    pub argument: String,
    /// As the client wrote it.
    pub written: String,
    /// Where it leads.
    pub path: CanonicalPath,
    /// The links on the way.
    pub links: Vec<Link>,
    /// What is there.
    pub target: Target,
}

/// Whether a folder was found at a path.
#[must_use]
pub fn has_folder(found: &[FoundPath], path: &CanonicalPath) -> bool {
    found
        .iter()
        .any(|f| f.path == *path && crate::consent::Target::from(f.target) == crate::consent::Target::Folder)
}

/// Finds where every path of a call leads; every other value gets `other`.
///
/// # Errors
/// A denial, when one of them leads nowhere.
pub fn paths(
    plan: &CallPlan<'_>,
    other: &Fact,
    resolve: impl Fn(&str) -> Result<Resolution, PathError>,
) -> Result<Found, Denial> {
    let mut found = Found { facts: Vec::new(), paths: Vec::new() };
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
        found.paths.push(FoundPath {
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

/// Whether a path is longer than Linux allows (`NAME_MAX`, `PATH_MAX`): nobody needs to be asked about it.
fn cannot_be(path: &CanonicalPath) -> bool {
    path.as_str().len() > 4095 || path.components().any(|name| name.len() > 255)
}

fn too_long(argument: &str) -> Denial {
    Denial {
        rule: "structural-invalid-argument".into(),
        reason: format!("the path in `{argument}` is longer than a path can be").into(),
    }
}
