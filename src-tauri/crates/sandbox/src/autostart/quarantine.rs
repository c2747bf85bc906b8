//! Moving files to where nothing runs them.
//!
//! - Nothing is deleted: what is moved keeps its name, in a folder of its own beside a file `origin` that names its path.
//!   What cannot be moved there gets another name where it is, by which nothing finds it.

use std::{
    fs::{self, DirBuilder},
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::{DirBuilderExt, symlink},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::{
    fs::{CWD, renameat},
    io::Errno,
};

use super::shut::{Shut, open_shut};
use crate::state::StateDir;

/// The most bytes that are copied of one name to another file system, which others wait for. What is larger stays beside, under
/// the name by which nothing finds it.
const MOST_COPIED: u64 = 16 << 20;

/// The number of the next place. None is tried twice, since a sandbox decides how many files there are to be moved.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Moves a file to quarantine because the person said so; returns where it is then.
pub fn quarantine(state_dir: &Path, path: &str) -> io::Result<String> {
    let (above, name) = path.rsplit_once('/').ok_or(io::ErrorKind::InvalidInput)?;
    let text = state_dir.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    let state = StateDir::open(text, rustix::process::getuid().as_raw())?;
    let (dir, _shut) = open_shut(if above.is_empty() { "/" } else { above })?;
    Prepared::new(&state, path)?.move_away(&dir, name)
}

/// A place for one file.
#[derive(Debug)]
pub(super) struct Prepared {
    kept: PathBuf,
    number: u64,
}

impl Prepared {
    /// A new one, for what is at `path`.
    pub(super) fn new(state: &StateDir, path: &str) -> io::Result<Self> {
        let base = state.below("quarantine")?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let kept = base.join(format!("{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&kept) {
                // Of an earlier process that had our number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    fs::write(kept.join("origin"), path)?;
                    return Ok(Self { kept, number });
                }
            }
        }
    }

    /// Where a name will be.
    pub(super) fn to(&self, name: &str) -> PathBuf {
        self.kept.join(name)
    }

    /// Keeps a text there.
    pub(super) fn keep(self, name: &str, text: &[u8]) -> io::Result<()> {
        fs::write(self.to(name), text)
    }

    /// Moves a name of a folder there; returns where it is then.
    pub(super) fn move_away(self, dir: &OwnedFd, name: &str) -> io::Result<String> {
        let to = self.to(name);
        let mut shut = Shut::default();
        let mut moved = renameat(dir, name, CWD, &to);
        // Whatever the reason, since another file system is told of before the modes are.
        if moved.is_err_and(|error| error != Errno::NOENT) {
            shut.unshut_for_moving(dir, name);
            moved = renameat(dir, name, CWD, &to);
        }
        match moved {
            Ok(()) => return Ok(to.display().to_string()),
            Err(Errno::NOENT) => {
                // It is ours, and there is nothing in it but the origin.
                let _ = fs::remove_dir_all(&self.kept);
                return Err(io::ErrorKind::NotFound.into());
            }
            Err(_) => {}
        }
        // From here on nothing finds it, whatever comes of the rest.
        let disarmed = format!("{name}.quarantined-{}-{}", std::process::id(), self.number);
        if let Err(error) = renameat(dir, name, dir, &disarmed) {
            let _ = fs::remove_dir_all(&self.kept);
            return Err(error.into());
        }
        let from = by_descriptor(dir, &disarmed);
        if copy(&from, &to, &mut { MOST_COPIED }).is_err() {
            let _ = fs::remove_dir_all(&self.kept);
            let here = fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd()))?;
            return Ok(here.join(disarmed).display().to_string());
        }
        // What is left of it has the other name.
        let _ = if fs::symlink_metadata(&from)?.is_dir() {
            fs::remove_dir_all(&from)
        } else {
            fs::remove_file(&from)
        };
        Ok(to.display().to_string())
    }
}

/// A path by which the standard library finds `name` in a folder, wherever that is.
pub(super) fn by_descriptor(dir: &OwnedFd, name: &str) -> PathBuf {
    Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name)
}

/// A copy of what people would miss: files, folders and symlinks, of at most so many bytes.
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
    use super::*;

    #[test]
    fn what_is_moved_keeps_its_name_and_says_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".husky");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("pre-commit"), "run").unwrap();
        let to = quarantine(&dir.path().join("state"), path.to_str().unwrap()).unwrap();
        assert_eq!(fs::read_to_string(format!("{to}/pre-commit")).unwrap(), "run");
        let origin = Path::new(&to).parent().unwrap().join("origin");
        assert_eq!(fs::read_to_string(origin).unwrap(), path.to_str().unwrap());
        assert!(!path.exists());
        let again = quarantine(&dir.path().join("state"), path.to_str().unwrap()).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn no_symlink_on_the_way_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        fs::write(dir.path().join("real/x"), "run").unwrap();
        symlink(dir.path().join("real"), dir.path().join("link")).unwrap();
        let path = dir.path().join("link/x");
        assert!(quarantine(&dir.path().join("state"), path.to_str().unwrap()).is_err());
        assert!(dir.path().join("real/x").exists());
    }

    #[test]
    fn no_place_is_tried_twice_and_one_that_is_taken_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let state =
            StateDir::open(dir.path().join("state").to_str().unwrap(), rustix::process::getuid().as_raw());
        let state = state.unwrap();
        let prepared = || Prepared::new(&state, "/x").unwrap();
        let first = prepared();
        fs::remove_dir_all(&first.kept).unwrap();
        let second = prepared();
        assert!(second.number > first.number, "{} after {}", second.number, first.number);
        for number in second.number + 1..second.number + 50 {
            let taken = second.kept.with_file_name(format!("{}-{number}", std::process::id()));
            fs::create_dir(taken).unwrap();
        }
        assert!(prepared().number >= second.number + 50);
    }

    #[test]
    fn no_more_is_copied_than_it_may_be() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("folder/a"), "1234").unwrap();
        fs::write(at("folder/b"), "5678").unwrap();
        let copied =
            |to: &str, most: u64| copy(&at("folder"), &at(to), &mut { most }).map_err(|error| error.kind());
        assert_eq!(copied("seven", 7), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(copied("eight", 8), Ok(()));
        assert_eq!(fs::read_to_string(at("eight/b")).unwrap(), "5678");
    }
}
