//! Keeping persistence files from one sandbox, from its start to after its end.
//!
//! - A writable root is covered before it is shown; the cover is a [`Shape`] to be applied with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use rustix::{
    fs::{CWD, fstat},
    time::{ClockId, clock_gettime},
};

use super::{
    ghosts::Ghosts,
    look::{Found, look},
    names::Names,
    quarantine::{Searched, quarantine},
};
use crate::{
    control::Event,
    place::{Identity, is_at_or_below, open_plain_end},
    shape::Shape,
    state::StateDir,
};

/// How often a root is looked at whose files change meanwhile.
const LOOKS: usize = 50;

/// Why a writable root could not be covered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GuardError {
    #[error("`{0}` is never writable: programs of the person's run what it says")]
    Protected(String),
    #[error("what must not be written in `{path}` could not be closed: {source}")]
    Cover { path: String, source: io::Error },
}

/// The guard of one sandbox.
#[derive(Debug)]
pub(crate) struct Guard {
    names: Names,
    state: StateDir,
    ghosts: Ghosts,
    /// Every root that ever was writable.
    roots: BTreeMap<String, Known>,
    /// When it began, by the clock that files are stamped with.
    since: i64,
}

/// What was found at a root when it was covered.
#[derive(Debug)]
struct Known {
    identities: BTreeSet<Identity>,
    whole: bool,
    writable_now: bool,
}

impl Guard {
    /// Cleans up after dead supervisors, and is ready.
    pub(crate) fn new(allow: &[String], state: StateDir) -> io::Result<Self> {
        let ghosts = Ghosts::open(state.clone())?;
        // Files are stamped by a clock that is a tick behind.
        let since = clock_gettime(ClockId::RealtimeCoarse).tv_sec - 1;
        Ok(Self { names: Names::but(allow), state, ghosts, roots: BTreeMap::new(), since })
    }

    /// Whether a path is one that never can be written, whatever is granted.
    pub(crate) fn protects(&self, path: &str) -> bool {
        self.names.protect(path)
    }

    /// What is to be closed at `root` and below it, so that the rest can be writable; `missing` are more names that
    /// nothing has and that nothing is to have.
    pub(crate) fn cover(
        &mut self,
        root: &str,
        missing: &[String],
        view: &Shape,
    ) -> Result<Shape, GuardError> {
        let failed = |source| GuardError::Cover { path: root.to_owned(), source };
        let (found, made) = self.find_and_make(root, missing, view).map_err(failed)?;
        let mut shape = Shape::default();
        let pinned: BTreeSet<&String> = found.pinned.iter().collect();
        for path in found.frozen.iter().chain(made.iter().filter(|path| !pinned.contains(path))) {
            shape.freeze(path.clone());
        }
        for path in &found.pinned {
            shape.pin(path.clone());
        }
        let identities = found.frozen.iter().chain(&made).filter_map(|path| identity(path)).collect();
        self.roots.insert(root.to_owned(), Known { identities, whole: found.whole, writable_now: true });
        Ok(shape)
    }

    /// What is there to be closed, and what was made so that the rest can be.
    fn find_and_make(
        &mut self,
        root: &str,
        missing: &[String],
        view: &Shape,
    ) -> io::Result<(Found, Vec<String>)> {
        let is_there = |path: &String| std::fs::symlink_metadata(path).is_ok();
        for _ in 0..LOOKS {
            let mut found = look(root, &self.names, view)?;
            found.missing.extend(missing.iter().map(|path| (first_missing(path), false)));
            let there: Vec<String> = found.frozen.iter().chain(&found.pinned).cloned().collect();
            let made = self.ghosts.make(&found.missing, &there)?;
            // What another sandbox had made may have gone with it before our turn came; what is ours by now stays.
            if there.iter().all(is_there) {
                return Ok((found, made));
            }
        }
        Err(io::Error::other("files that start programs come and go there"))
    }

    /// A root is not writable any more.
    pub(crate) fn uncover(&mut self, root: &str) -> io::Result<()> {
        if let Some(known) = self.roots.get_mut(root) {
            known.writable_now = false;
        }
        let around = |(other, known): (&String, &Known)| known.writable_now && is_at_or_below(root, other);
        if self.roots.iter().any(around) {
            return Ok(());
        }
        self.ghosts.release(root)
    }

    /// After the last process of the sandbox has ended: removes what was made, and moves away what the sandbox made.
    pub(crate) fn finish(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        if let Err(error) = self.ghosts.release_all() {
            events.push(Event::Unfinished { reason: format!("cleaning up did not succeed: {error}") });
        }
        let identities: BTreeSet<Identity> =
            self.roots.values().flat_map(|known| known.identities.iter().copied()).collect();
        for (root, known) in &self.roots {
            let around = |(other, _): (&String, &Known)| other != root && is_at_or_below(root, other);
            if self.roots.iter().any(around) || self.names.protect(root) {
                continue;
            }
            let searched = Searched {
                root,
                names: &self.names,
                known: &identities,
                since: (!known.whole).then_some(self.since),
            };
            events.extend(quarantine(&searched, &self.ghosts, &self.state));
        }
        events
    }
}

fn identity(path: &str) -> Option<Identity> {
    open_plain_end(CWD, path).and_then(fstat).ok().map(|stat| Identity::of(&stat))
}

/// The first part of `path` that does not exist.
fn first_missing(path: &str) -> String {
    let ends = path.match_indices('/').skip(1).map(|(at, _)| at).chain([path.len()]);
    let mut parts = ends.filter_map(|end| path.get(..end));
    parts.find(|part| std::fs::symlink_metadata(part).is_err()).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_missing_part_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().to_str().unwrap();
        assert_eq!(first_missing(&format!("{base}/a/b/c")), format!("{base}/a"));
        std::fs::create_dir(dir.path().join("a")).unwrap();
        assert_eq!(first_missing(&format!("{base}/a/b/c")), format!("{base}/a/b"));
    }
}
