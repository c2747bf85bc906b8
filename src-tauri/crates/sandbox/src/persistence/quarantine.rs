//! Moving persistence files that are not in order out of the way.
//!
//! - INVARIANT: what other sandboxes have made for themselves stays. They write it down, in their turn, before they make it,
//!   so that it is known in ours.
//! - Nothing is deleted: what is moved keeps its name, in a directory of its own. What cannot be moved there gets another
//!   name where it is, by which nothing finds it.
//! - What is done is told at once, since the time for it may be limited.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, symlink},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, renameat};

use super::{ghosts::Ghosts, search::by_descriptor};
use crate::{control::Event, state::StateDir};

/// The most bytes that are copied of one name to another file system, which others wait for. What is larger stays beside, under
/// the name by which nothing finds it.
const MOST_COPIED: u64 = 16 << 20;

/// Where things go that are not in order, and whom that is told.
pub(super) struct Aside<'a> {
    ghosts: &'a Ghosts,
    state: &'a StateDir,
    tell: &'a mut dyn FnMut(Event),
    /// The number of the next directory.
    next: u64,
}

impl<'a> Aside<'a> {
    pub(super) fn new(ghosts: &'a Ghosts, state: &'a StateDir, tell: &'a mut dyn FnMut(Event)) -> Self {
        Self { ghosts, state, tell, next: 0 }
    }

    /// Tells of a directory in which there may be more.
    pub(super) fn not_searched(&mut self, path: &Path, why: &io::Error) {
        let reason =
            format!("`{}` could not be searched for new files that start programs: {why}", shown(path));
        (self.tell)(Event::Unfinished { reason });
    }

    /// Moves those names in a directory away; `path` is where it is.
    pub(super) fn put_away(&mut self, dir: &OwnedFd, path: &Path, names: Vec<OsString>) {
        if names.is_empty() {
            return;
        }
        let (_turn, others) = match self.state.lock().and_then(|turn| Ok((turn, self.ghosts.others()?))) {
            Ok(ready) => ready,
            Err(error) => {
                let reason = format!("`{}` has new files that start programs: {error}", shown(path));
                return (self.tell)(Event::Unfinished { reason });
            }
        };
        for name in names {
            let path = path.join(&name);
            if path.to_str().is_some_and(|path| others.contains_key(path)) {
                continue;
            }
            let event = match self.move_away(dir, &path, &name) {
                Ok(moved_to) => Event::Quarantined { path: shown(&path), moved_to: shown(&moved_to) },
                // Another sandbox had made it, and has ended.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => Event::Unfinished {
                    reason: format!("`{}` is new, and could not be moved away: {error}", shown(&path)),
                },
            };
            (self.tell)(event);
        }
    }

    /// Moves a file to where no sandbox reaches; returns where that is.
    fn move_away(&mut self, dir: &OwnedFd, path: &Path, name: &OsStr) -> io::Result<PathBuf> {
        let (kept, number) = self.fresh()?;
        let to = kept.join(name);
        fs::write(kept.join("origin"), path.as_os_str().as_encoded_bytes())?;
        match renameat(dir, name, CWD, &to) {
            Ok(()) => return Ok(to),
            Err(rustix::io::Errno::NOENT) => {
                // It is ours, and there is nothing in it but the origin.
                let _ = fs::remove_dir_all(&kept);
                return Err(io::ErrorKind::NotFound.into());
            }
            Err(_) => {}
        }
        // From here on nothing finds it, whatever comes of the rest.
        let disarmed = disarm(dir, name, number)?;
        let from = by_descriptor(dir, &disarmed);
        if copy(&from, &to, &mut { MOST_COPIED }).is_err() {
            let _ = fs::remove_dir_all(&kept);
            return Ok(path.with_file_name(disarmed));
        }
        // What is left of it has the other name.
        let _ = if fs::symlink_metadata(&from)?.is_dir() {
            fs::remove_dir_all(&from)
        } else {
            fs::remove_file(&from)
        };
        Ok(to)
    }

    /// A new directory, and its number.
    fn fresh(&mut self) -> io::Result<(PathBuf, u64)> {
        let base = self.state.below("quarantine")?;
        loop {
            let number = self.next;
            self.next += 1;
            let dir = base.join(format!("{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&dir) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => return Ok((dir, number)),
            }
        }
    }
}

/// Gives a file a name by which nothing finds it; returns that.
fn disarm(dir: &OwnedFd, name: &OsStr, number: u64) -> io::Result<OsString> {
    let mut disarmed = name.to_owned();
    disarmed.push(format!(".quarantined-{}-{number}", std::process::id()));
    renameat(dir, name, dir, &disarmed)?;
    Ok(disarmed)
}

/// A path for people. One can be longer than any that a program takes, and is cut in the middle then.
fn shown(path: &Path) -> String {
    const MOST: usize = 4096;
    let text = path.display().to_string();
    let cut = |at: usize| (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    if text.len() <= MOST {
        return text;
    }
    let (start, end) = text.split_at(cut(MOST / 2));
    let (_, end) = end.split_at(cut(text.len() - MOST / 2).saturating_sub(start.len()));
    format!("{start}…{end}")
}

/// A copy of what people would miss: files, directories and symlinks, of at most so many bytes.
fn copy(from: &Path, to: &Path, left: &mut u64) -> io::Result<()> {
    let found = fs::symlink_metadata(from)?;
    if found.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if found.is_file() {
        *left = left.checked_sub(found.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        return fs::copy(from, to).map(drop);
    }
    if found.is_dir() {
        DirBuilder::new().mode(0o700).create(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()), left)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::persistence::{
        marks::Marks,
        names::Names,
        search::{Searched, go_deep},
    };

    struct Scene {
        dir: tempfile::TempDir,
        state: StateDir,
        ghosts: Ghosts,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let uid = rustix::process::getuid().as_raw();
            let state = StateDir::open(dir.path().join("state").to_str().unwrap(), uid).unwrap();
            fs::create_dir(dir.path().join("root")).unwrap();
            Self { ghosts: Ghosts::open(state.clone()).unwrap(), dir, state }
        }

        fn path(&self, name: &str) -> String {
            self.dir.path().join(name).to_str().unwrap().to_owned()
        }

        /// What the search of the root tells, by somebody who knows nothing.
        fn search(&self) -> Vec<Event> {
            let (names, root) = (Names::but(&[]), self.path("root"));
            let mut told = Vec::new();
            let mut tell = |event| told.push(event);
            let (known, untouched, suspects) = (&[], &BTreeSet::new(), &Marks::default());
            let searched = Searched { root: &root, names: &names, known, untouched, suspects, since: None };
            let opened = fs::File::open(&root).unwrap().into();
            searched.search(opened, &mut Aside::new(&self.ghosts, &self.state, &mut tell));
            told
        }
    }

    #[test]
    fn what_a_sandbox_that_begins_has_made_stays_and_what_one_that_ends_has_made_goes() {
        let scene = Scene::new();
        let mut begins = Ghosts::open(scene.state.clone()).unwrap();
        let made = scene.path("root/.bash_aliases");
        begins.make(&[(made.clone(), false)], &[]).unwrap();
        let new = scene.path("root/.envrc");
        fs::write(&new, "run").unwrap();

        let events = scene.search();
        let [Event::Quarantined { path: moved, moved_to }] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((moved, fs::read_to_string(moved_to).unwrap().as_str()), (&new, "run"));
        assert!(Path::new(&made).exists() && !Path::new(&new).exists());
    }

    #[test]
    fn no_more_is_copied_than_it_may_be() {
        let scene = Scene::new();
        let sparse = scene.path("root/sparse");
        fs::create_dir(scene.path("root/folder")).unwrap();
        fs::write(scene.path("root/folder/a"), "1234").unwrap();
        fs::write(scene.path("root/folder/b"), "5678").unwrap();
        fs::File::create(&sparse).unwrap().set_len(MOST_COPIED + 1).unwrap();
        let copied = |from: &str, to: &str, most: u64| {
            copy(scene.path(from).as_ref(), scene.path(to).as_ref(), &mut { most })
                .map_err(|error| error.kind())
        };
        assert_eq!(copied("root/sparse", "big", MOST_COPIED), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(copied("root/folder", "seven", 7), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(copied("root/folder", "eight", 8), Ok(()));
        assert_eq!(fs::read_to_string(scene.path("eight/b")).unwrap(), "5678");
    }

    #[test]
    fn a_path_that_is_too_long_hides_nothing_in_it_or_beside_it() {
        let scene = Scene::new();
        let (root, name) = (scene.path("root"), "a".repeat(200));
        let mut dir: OwnedFd = fs::File::open(&root).unwrap().into();
        for _ in 0..25 {
            fs::create_dir(by_descriptor(&dir, OsStr::new(&name))).unwrap();
            dir = fs::File::open(by_descriptor(&dir, OsStr::new(&name))).unwrap().into();
        }
        fs::write(by_descriptor(&dir, OsStr::new(".envrc")), "deep").unwrap();
        fs::write(by_descriptor(&dir, OsStr::new("fine")), "fine").unwrap();
        fs::create_dir(format!("{root}/e")).unwrap();
        fs::write(format!("{root}/e/.envrc"), "beside").unwrap();

        go_deep();
        let events = scene.search();
        let moved = events.iter().filter_map(|event| {
            let Event::Quarantined { moved_to, .. } = event else { return None };
            Some(fs::read_to_string(moved_to).unwrap())
        });
        let mut moved: Vec<String> = moved.collect();
        moved.sort();
        assert_eq!(moved, ["beside", "deep"], "{events:?}");
        assert_eq!(events.len(), 2);
        assert!(by_descriptor(&dir, OsStr::new("fine")).exists());
    }

    #[test]
    fn a_repository_whose_objects_are_elsewhere_is_one() {
        let scene = Scene::new();
        for (path, text) in [
            ("root/docs/HEAD", "ref: refs/heads/m"),
            ("root/docs/commondir", "c"),
            ("root/docs/config.worktree", "[core]\nfsmonitor = evil"),
            ("root/notes/commondir", "c"),
            ("root/notes/config", "[core]\nfsmonitor = evil"),
        ] {
            fs::create_dir_all(Path::new(&scene.path(path)).parent().unwrap()).unwrap();
            fs::write(scene.path(path), text).unwrap();
        }
        assert_eq!(scene.search().len(), 2);
        let left = |dir: &str| fs::read_dir(scene.path(dir)).unwrap().count();
        assert_eq!((left("root/docs"), left("root/notes")), (1, 2));
    }

    #[test]
    fn another_name_takes_the_whole_of_it_along() {
        let scene = Scene::new();
        fs::create_dir_all(scene.path("root/a/.vscode")).unwrap();
        fs::write(scene.path("root/a/.vscode/tasks.json"), "evil").unwrap();
        let dir: OwnedFd = fs::File::open(scene.path("root/a")).unwrap().into();
        let to = disarm(&dir, OsStr::new(".vscode"), 7).unwrap();
        assert!(to.to_str().unwrap().starts_with(".vscode.quarantined-"));
        assert_eq!(
            fs::read_to_string(Path::new(&scene.path("root/a")).join(&to).join("tasks.json")).unwrap(),
            "evil"
        );
        assert!(!Path::new(&scene.path("root/a/.vscode")).exists());
    }
}
