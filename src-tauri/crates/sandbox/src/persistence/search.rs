//! Searching what a sandbox could write for persistence files that were not there before.
//!
//! - Called when no process of the sandbox is left.
//! - INVARIANT: directories are entered by descriptor and name, and no symlink is: whatever else moves meanwhile, nothing
//!   outside of the root is reached, and no path is too long.
//! - What cannot be searched is told of, and the rest is searched.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Dir, FileType, Mode, OFlags, Statx, openat},
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

use super::{
    marks::{Marks, ask},
    names::{Meaning, Names, has},
    quarantine::Aside,
    repository,
};

/// Where to look, and what is in order.
pub(super) struct Searched<'a> {
    pub(super) root: &'a str,
    pub(super) names: &'a Names,
    /// What was there at the start and could not be written.
    pub(super) known: &'a [&'a Marks],
    /// Paths that nothing but programs outside could put a file at.
    pub(super) untouched: &'a BTreeSet<String>,
    /// What the sandbox may have made, also if it is at such a path by now.
    pub(super) suspects: &'a Marks,
    /// When not everything was known at the start: what has not changed since then, in seconds, is in order, too.
    pub(super) since: Option<i64>,
}

/// The parts of a directory that are protected, and whether it came there as a whole.
struct Parts<'a> {
    names: &'a BTreeMap<&'static str, bool>,
    moved: bool,
}

/// A directory that is being searched, and the directories in it that are still to be.
struct Level {
    dir: OwnedFd,
    inside: Vec<OsString>,
}

/// Lets us go down as far as we may: a level takes a descriptor, and there is no further use for the old limit.
pub(super) fn go_deep() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // With fewer, what lies too deep is told of.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// A path by which the standard library finds `name` in a directory, wherever that is.
pub(super) fn by_descriptor(dir: &OwnedFd, name: &OsStr) -> PathBuf {
    Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name)
}

impl Searched<'_> {
    /// Hands everything that is not in order to `aside`; `root` is the directory itself.
    pub(super) fn search(&self, root: OwnedFd, aside: &mut Aside<'_>) {
        let mut path = PathBuf::from(self.root);
        let mut levels = vec![self.level(root, &path, false, aside)];
        while let Some(level) = levels.last_mut() {
            let Some(name) = level.inside.pop() else {
                levels.pop();
                path.pop();
                continue;
            };
            path.push(&name);
            match enter(&level.dir, &name) {
                Ok((dir, about)) => levels.push(self.level(dir, &path, self.is_new(&about), aside)),
                Err(error) => {
                    if !is_out_of_reach(error) {
                        aside.not_searched(&path, &error.into());
                    }
                    path.pop();
                }
            }
        }
    }

    /// Looks at every name in a directory.
    fn level(&self, dir: OwnedFd, path: &Path, moved: bool, aside: &mut Aside<'_>) -> Level {
        let names = names_in(&dir).unwrap_or_else(|error| {
            aside.not_searched(path, &error.into());
            vec![]
        });
        let parts = self.parts(path, &names, moved);
        let is_git = is_git(path);
        let git_dir = is_git || repository::is_one(|sign| names.iter().any(|name| name == sign));
        let (mut new, mut inside) = (Vec::new(), Vec::new());
        for name in names {
            let Ok(about) = ask(&dir, &name) else { continue };
            let is_dir = FileType::from_raw_mode(about.stx_mode.into()).is_dir();
            let text = name.to_str().unwrap_or_default();
            if let Some(parts) = parts.as_ref().filter(|parts| has(parts.names, text)) {
                let harmless = || git_dir && repository::is_harmless(&by_descriptor(&dir, &name));
                let moved = parts.moved;
                if self.is_out_of_order((&dir, path), &name, &about, moved) && !harmless() {
                    new.push(name);
                }
                continue;
            }
            let whole = match self.names.meaning(text) {
                Meaning::Whole => true,
                Meaning::Parts(_) => !is_dir,
                Meaning::None => false,
            };
            if whole {
                if self.is_out_of_order((&dir, path), &name, &about, false) {
                    new.push(name);
                }
            } else if is_dir && !is_git {
                inside.push(name);
            }
        }
        aside.put_away(&dir, path, new);
        Level { dir, inside }
    }

    /// What is protected in a directory by its name, or because git takes it for a repository.
    fn parts(&self, path: &Path, names: &[OsString], moved: bool) -> Option<Parts<'_>> {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let names = match self.names.meaning(name) {
            Meaning::Parts(parts) => Some(parts),
            Meaning::None | Meaning::Whole => {
                let has = |sign: &str| names.iter().any(|name| name == sign);
                self.names.of_repository().filter(|_| repository::is_one(has))
            }
        };
        names.map(|names| Parts { names, moved })
    }

    fn is_out_of_order(
        &self,
        (dir, path): (&OwnedFd, &Path),
        name: &OsStr,
        about: &Statx,
        moved: bool,
    ) -> bool {
        let is_known =
            self.known.iter().any(|known| known.have(about)) || self.is_untouched(&path.join(name), about);
        !is_known && (moved || self.is_new(about) || self.has_new(dir, name, about))
    }

    /// Whether it is a file where only programs outside could put one. With another name, it could be changed by that.
    fn is_untouched(&self, path: &Path, about: &Statx) -> bool {
        let is_file = FileType::from_raw_mode(about.stx_mode.into()).is_file();
        let is_one = is_file && about.stx_nlink == 1 && !self.suspects.have(about);
        is_one && path.to_str().is_some_and(|path| self.untouched.contains(path))
    }

    fn is_new(&self, about: &Statx) -> bool {
        self.since.is_none_or(|since| about.stx_ctime.tv_sec >= since)
    }

    /// Whether anything below a directory is new; what cannot be told is.
    fn has_new(&self, dir: &OwnedFd, name: &OsStr, about: &Statx) -> bool {
        if !FileType::from_raw_mode(about.stx_mode.into()).is_dir() {
            return false;
        }
        let Ok(root) = enter(dir, name).map(|(root, _)| root) else { return true };
        let Ok(names) = names_in(&root) else { return true };
        let mut levels = vec![Level { dir: root, inside: names }];
        while let Some(level) = levels.last_mut() {
            let Some(name) = level.inside.pop() else {
                levels.pop();
                continue;
            };
            let Ok(about) = ask(&level.dir, &name) else { return true };
            if self.is_new(&about) {
                return true;
            }
            if FileType::from_raw_mode(about.stx_mode.into()).is_dir() {
                match enter(&level.dir, &name).and_then(|(dir, _)| Ok((names_in(&dir)?, dir))) {
                    Ok((inside, dir)) => levels.push(Level { dir, inside }),
                    // Who cannot look into what has not changed could not have changed anything in it.
                    Err(error) if is_out_of_reach(error) => {}
                    Err(_) => return true,
                }
            }
        }
        false
    }
}

/// Whether a directory's own name says that git keeps a repository in it.
fn is_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

/// Opens a directory that is no symlink, and tells about it.
fn enter(dir: &OwnedFd, name: &OsStr) -> Result<(OwnedFd, Statx), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let dir = openat(dir, name, flags, Mode::empty())?;
    let about = ask(&dir, "")?;
    Ok((dir, about))
}

fn names_in(dir: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

/// Gone, no directory any more, or another user's: the sandbox could not make anything there either.
fn is_out_of_reach(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM)
}
