//! Keeping persistence files from one sandbox, from its start to after its end.
//!
//! - A writable root is covered before it is shown; the cover is a [`Shape`] to be applied with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::fd::OwnedFd,
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
    time::{ClockId, clock_gettime},
};

use super::{
    ghosts::Ghosts,
    look::{Found, look},
    marks::{Mark, Marks, ask},
    names::Names,
    quarantine::Aside,
    search::{Searched, go_deep},
};
use crate::{
    control::Event,
    place::{is_at_or_below, open_plain},
    shape::Shape,
    state::StateDir,
    untold::Keeping,
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
    /// What the sandbox may have made, found since: never taken for what was there before.
    suspects: Marks,
    /// Whether the sandbox may have run.
    running: bool,
    /// When it began, by the clock that files are stamped with.
    since: i64,
    record: Recording,
}

/// Where it is noted what is to be searched, for the case that it is not.
#[derive(Debug)]
enum Recording {
    /// Nowhere.
    No,
    /// By this name, from when the server starts.
    Asked(String),
    Begun(Keeping),
}

/// What was found at a root when it was covered.
#[derive(Debug)]
struct Known {
    /// The root itself, if it is a directory.
    itself: Option<Mark>,
    marks: Marks,
    whole: bool,
    writable_now: bool,
    /// Whether not all was looked at when it was last writable.
    unseen: bool,
}

impl Guard {
    /// Cleans up after dead supervisors, and is ready.
    pub(crate) fn new(allow: &[String], state: StateDir, record: Option<String>) -> io::Result<Self> {
        let ghosts = Ghosts::open(state.clone())?;
        // Files are stamped by a clock that is a tick behind.
        let since = clock_gettime(ClockId::RealtimeCoarse).tv_sec - 1;
        let record = record.map_or(Recording::No, Recording::Asked);
        let (names, roots, suspects) = (Names::but(allow), BTreeMap::new(), Marks::default());
        Ok(Self { names, state, ghosts, roots, suspects, running: false, since, record })
    }

    /// Where it keeps what must outlive it.
    pub(crate) fn state(&self) -> StateDir {
        self.state.clone()
    }

    /// Notes what the server can write to, before it can: from now on it may have made what is found.
    pub(crate) fn begin_record(&mut self) -> io::Result<()> {
        self.running = true;
        if let Recording::Asked(name) = &self.record {
            let mut keeping = Keeping::begin(&self.state, name)?;
            let noted = keeping.writable(self.roots.keys());
            // It is taken away where the server does not start.
            self.record = Recording::Begun(keeping);
            noted?;
        }
        Ok(())
    }

    /// Where that was noted, for what is to be told.
    pub(crate) fn take_record(&mut self) -> Option<Keeping> {
        match std::mem::replace(&mut self.record, Recording::No) {
            Recording::Begun(keeping) => Some(keeping),
            Recording::No | Recording::Asked(_) => None,
        }
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
        let (news, before): (Vec<&String>, Vec<&String>) =
            found.frozen.iter().partition(|path| self.may_have_made(path));
        let marks = Marks::of(before.into_iter().chain(&made)).map_err(failed)?;
        self.suspects.extend(Marks::of(news.into_iter()).map_err(failed)?);
        let opened = open_plain(CWD, root).map_err(|error| failed(error.into()))?;
        let about = ask(opened, "").map_err(|error| failed(error.into()))?;
        let is_dir = FileType::from_raw_mode(about.stx_mode.into()).is_dir();
        let itself = is_dir.then(|| Mark::of(&about));
        if let Recording::Begun(keeping) = &mut self.record
            && !self.roots.contains_key(root)
        {
            keeping.writable([&root.to_owned()]).map_err(failed)?;
        }
        // What an earlier look did not come to is not known by a later one either.
        let related =
            |(other, _): &(&String, &Known)| is_at_or_below(root, other) || is_at_or_below(other, root);
        let whole = found.whole && self.roots.iter().filter(related).all(|(_, known)| known.whole);
        let known = Known { itself, marks, whole, writable_now: true, unseen: false };
        self.roots.insert(root.to_owned(), known);
        Ok(shape)
    }

    /// Whether a file may be the sandbox's doing: it was not there before, and the sandbox could write there since. What came
    /// while it could not is not.
    fn may_have_made(&self, path: &str) -> bool {
        let Ok(about) = ask(CWD, path) else { return false };
        let is_known = || self.roots.values().any(|known| known.marks.have(&about));
        let could = |(root, known): (&String, &Known)| {
            is_at_or_below(path, root)
                && (known.writable_now || known.unseen)
                && (known.whole || about.stx_ctime.tv_sec >= self.since)
        };
        self.running && !is_known() && (self.suspects.have(&about) || self.roots.iter().any(could))
    }

    /// Finds what the sandbox may have made where it can write no longer.
    fn suspect(&mut self, root: &str) {
        let Ok(found) = look(root, &self.names, &Shape::default()) else {
            return self.roots.get_mut(root).into_iter().for_each(|known| known.unseen = true);
        };
        let news: Vec<&String> = found.frozen.iter().filter(|path| self.may_have_made(path)).collect();
        let marks = Marks::of(news.into_iter());
        let unseen = !found.whole || marks.is_err();
        self.suspects.extend(marks.unwrap_or_default());
        if let Some(known) = self.roots.get_mut(root) {
            known.unseen |= unseen;
        }
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
        self.suspect(root);
        if let Some(known) = self.roots.get_mut(root) {
            known.writable_now = false;
        }
        let writable = self.roots.iter().filter(|(_, known)| known.writable_now);
        let kept: Vec<&String> = writable.map(|(other, _)| other).collect();
        if kept.iter().any(|other| is_at_or_below(root, other)) {
            return Ok(());
        }
        let released = self.ghosts.release(root, &kept)?;
        for known in self.roots.values_mut() {
            known.marks.forget_gone(&released);
        }
        Ok(())
    }

    /// After the last process of the sandbox has ended: removes what was made, and moves away what the sandbox made. What is
    /// done is told as it is. A file at one of the `untouched` paths is not the sandbox's doing.
    pub(crate) fn finish(mut self, untouched: &BTreeSet<String>, tell: &mut dyn FnMut(Event)) {
        if let Err(error) = self.ghosts.release_all() {
            tell(Event::Unfinished { reason: format!("cleaning up did not succeed: {error}") });
        }
        go_deep();
        let known: Vec<&Marks> = self.roots.values().map(|known| &known.marks).collect();
        let mut aside = Aside::new(&self.ghosts, &self.state, tell);
        for (root, found) in &self.roots {
            let around = |(other, _): (&String, &Known)| other != root && is_at_or_below(root, other);
            if self.roots.iter().any(around) || self.names.protect(root) {
                continue;
            }
            let Some(itself) = &found.itself else { continue };
            let since = (!found.whole).then_some(self.since);
            let searched = Searched {
                root,
                names: &self.names,
                known: &known,
                untouched,
                suspects: &self.suspects,
                since,
            };
            match open_again(root, itself) {
                Ok(opened) => searched.search(opened, &mut aside),
                Err(error) => aside.not_searched(root.as_ref(), &error),
            }
        }
    }
}

/// A root that is a directory, and that no symlink leads to.
fn open_root(root: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(CWD, root, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)
}

/// The same root as before. Something else at its path is not ours to search, whoever put it there.
fn open_again(root: &str, before: &Mark) -> io::Result<OwnedFd> {
    let opened = open_root(root)?;
    if Mark::of(&ask(&opened, "")?) != *before {
        return Err(io::Error::other("another folder is there by now"));
    }
    Ok(opened)
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
