//! Finding persistence files that were not there before, and moving them out of the way.
//!
//! - Called when no process of the sandbox is left. No symlink is followed.
//! - INVARIANT: what other sandboxes have made for themselves stays. They write it down, in their turn, before they make it,
//!   so that it is known in ours.
//! - Nothing is deleted: what is moved keeps its name, in a directory of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, DirBuilder, Metadata},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, symlink},
    path::{Path, PathBuf},
};

use super::{
    ghosts::Ghosts,
    names::{Meaning, Names, has},
    repository,
};
use crate::{control::Event, place::Identity, state::StateDir};

/// Where to look, and what is in order.
pub(super) struct Searched<'a> {
    pub(super) root: &'a str,
    pub(super) names: &'a Names,
    /// What was there at the start and could not be written.
    pub(super) known: &'a BTreeSet<Identity>,
    /// When not everything was known at the start: what has not changed since then, in seconds, is in order, too.
    pub(super) since: Option<i64>,
}

/// Moves what is not in order below `searched.root` into the state directory.
pub(super) fn quarantine(searched: &Searched<'_>, ghosts: &Ghosts, state: &StateDir) -> Vec<Event> {
    let mut events = Vec::new();
    let mut found = Vec::new();
    if let Err(error) = searched.search(&mut found) {
        events.push(Event::Unfinished {
            reason: format!("`{}` could not be searched for new persistence files: {error}", searched.root),
        });
    }
    if found.is_empty() {
        return events;
    }
    let (_turn, others) = match state.lock().and_then(|turn| Ok((turn, ghosts.others()?))) {
        Ok(ready) => ready,
        Err(error) => {
            let reason = format!("`{}` has new files that start programs: {error}", searched.root);
            events.push(Event::Unfinished { reason });
            return events;
        }
    };
    for path in found {
        if path.to_str().is_some_and(|path| others.contains_key(path)) {
            continue;
        }
        events.push(match put_away(&path, state) {
            Ok(moved_to) => Event::Quarantined {
                path: path.display().to_string(),
                moved_to: moved_to.display().to_string(),
            },
            // Another sandbox had made it, and has ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => Event::Unfinished {
                reason: format!("`{}` is new, and could not be moved away: {error}", path.display()),
            },
        });
    }
    events
}

impl Searched<'_> {
    fn search(&self, found: &mut Vec<PathBuf>) -> io::Result<()> {
        let mut waiting = vec![PathBuf::from(self.root)];
        if let Some(Meaning::Parts(parts)) =
            Path::new(self.root).file_name().and_then(|n| n.to_str()).map(|n| self.names.meaning(n))
        {
            self.parts(Path::new(self.root), parts, false, found)?;
        }
        self.bare(Path::new(self.root), found)?;
        while let Some(dir) = waiting.pop() {
            let entries = match fs::read_dir(&dir) {
                Ok(entries) => entries,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound
                            | io::ErrorKind::NotADirectory
                            | io::ErrorKind::PermissionDenied
                    ) =>
                {
                    continue;
                }
                Err(error) => return Err(error),
            };
            for entry in entries {
                let entry = entry?;
                let is_dir = entry.file_type()?.is_dir();
                let path = entry.path();
                let meaning =
                    entry.file_name().to_str().map_or(Meaning::None, |name| self.names.meaning(name));
                match meaning {
                    Meaning::Whole => self.judge(path, false, found)?,
                    Meaning::Parts(_) if !is_dir => self.judge(path, false, found)?,
                    Meaning::Parts(parts) => {
                        let moved = self.is_new(&fs::symlink_metadata(&path)?);
                        self.parts(&path, parts, moved, found)?;
                        if !repository::is_git_dir(&path) {
                            waiting.push(path);
                        }
                    }
                    Meaning::None if is_dir => {
                        self.bare(&path, found)?;
                        waiting.push(path);
                    }
                    Meaning::None => {}
                }
            }
        }
        Ok(())
    }

    /// What is new in a directory that git takes for a repository although it is not called one.
    fn bare(&self, path: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
        let Some(parts) = self.names.of_repository().filter(|_| repository::is_bare(path)) else {
            return Ok(());
        };
        self.parts(path, parts, self.is_new(&fs::symlink_metadata(path)?), found)
    }

    /// What is new of the parts of `above`; all of it when that came as a whole.
    fn parts(
        &self,
        above: &Path,
        parts: &BTreeMap<&'static str, bool>,
        moved: bool,
        found: &mut Vec<PathBuf>,
    ) -> io::Result<()> {
        for entry in fs::read_dir(above)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_name().to_str().is_some_and(|name| has(parts, name))
                && !(repository::is_git_dir(above) && repository::is_harmless(&path))
            {
                self.judge(path, moved, found)?;
            }
        }
        Ok(())
    }

    fn judge(&self, path: PathBuf, moved: bool, found: &mut Vec<PathBuf>) -> io::Result<()> {
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let is_known = self.known.contains(&Identity { device: metadata.dev(), inode: metadata.ino() });
        if !is_known && (moved || self.is_new(&metadata) || self.has_new(&path)?) {
            found.push(path);
        }
        Ok(())
    }

    fn is_new(&self, metadata: &Metadata) -> bool {
        self.since.is_none_or(|since| metadata.ctime() >= since)
    }

    /// Whether anything below a directory is new.
    fn has_new(&self, path: &Path) -> io::Result<bool> {
        let mut waiting = vec![path.to_owned()];
        while let Some(path) = waiting.pop() {
            let metadata = fs::symlink_metadata(&path)?;
            if self.is_new(&metadata) {
                return Ok(true);
            }
            if metadata.is_dir() {
                for entry in fs::read_dir(&path)? {
                    waiting.push(entry?.path());
                }
            }
        }
        Ok(false)
    }
}

/// Moves `path` to where no sandbox reaches; returns where that is.
fn put_away(path: &Path, state: &StateDir) -> io::Result<PathBuf> {
    let base = state.below("quarantine")?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut number = 0;
    let dir = loop {
        let dir = base.join(format!("{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
            Ok(()) => break dir,
        }
    };
    fs::write(dir.join("origin"), path.as_os_str().as_encoded_bytes())?;
    let to = dir.join(name);
    match fs::rename(path, &to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy(path, &to)?;
            if fs::symlink_metadata(path)?.is_dir() {
                fs::remove_dir_all(path)?
            } else {
                fs::remove_file(path)?
            }
        }
        done => done?,
    }
    Ok(to)
}

/// A copy of what people would miss: files, directories and symlinks.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(from)?;
    if found.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if found.is_file() {
        return fs::copy(from, to).map(drop);
    }
    if found.is_dir() {
        DirBuilder::new().mode(0o700).create(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sandbox_that_begins_has_made_stays_and_what_one_that_ends_has_made_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let uid = rustix::process::getuid().as_raw();
        let state = StateDir::open(Some(&path("state")), uid).unwrap();
        let root = path("root");
        fs::create_dir(&root).unwrap();
        let ended = Ghosts::open(state.clone()).unwrap();
        let mut begins = Ghosts::open(state.clone()).unwrap();
        let made = path("root/.bash_aliases");
        begins.make(&[(made.clone(), false)], &[]).unwrap();
        let new = path("root/.envrc");
        fs::write(&new, "run").unwrap();

        let (names, known) = (Names::but(&[]), BTreeSet::new());
        let searched = Searched { root: &root, names: &names, known: &known, since: None };
        let events = quarantine(&searched, &ended, &state);
        let [Event::Quarantined { path: moved, moved_to }] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((moved, fs::read_to_string(moved_to).unwrap().as_str()), (&new, "run"));
        assert!(Path::new(&made).exists() && !Path::new(&new).exists());
    }
}
