//! Restores and deletes quarantined files at the user's request.
//!
//! - INVARIANT: a file is restored only to the path from which it was quarantined. No symlink in the path is followed,
//!   and a quarantined symlink is restored as a symlink.
//! - INVARIANT: nothing is overwritten. A newer file at the path is kept, or quarantined on request.
//! - No folder is created. A missing folder is an error.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, openat, renameat_with, statat},
    io::Errno,
};

use super::{
    name_text::to_os_str,
    quarantine::{BoundedCopy, QuarantineSlot},
    reopened_folders::{ReopenedFolders, open_listed, open_reopening},
};
use crate::state::StateDir;

/// Maximum length in bytes of the original path recorded in a slot.
const MAX_ORIGIN_LEN: u64 = 64 << 10;

/// Failure to restore or delete a quarantined file.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The file is not in quarantine.
    #[error("the file is no longer in quarantine")]
    NotInQuarantine,
    /// The file was quarantined from a different path.
    #[error("the file was quarantined from a different path")]
    WrongOrigin,
    /// Another file exists at the path.
    #[error("another file exists at that path; it was left unchanged")]
    Occupied,
    /// The folder does not exist, or a symlink was found in its path.
    #[error("the file's folder no longer exists or was replaced: {0}")]
    NoFolder(io::Error),
    /// Another I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for RestoreError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// Quarantined file and its location.
struct QuarantinedFile {
    dir: OwnedFd,
    /// Name of the file in `dir`.
    name: String,
    /// Quarantine slot that contains the file, or `None` if the file was disarmed in place.
    slot: Option<PathBuf>,
}

/// Restores the quarantined file `quarantined` to its original path `path`.
///
/// # Errors
/// On error, the file stays in quarantine.
pub fn restore(state_dir: &Path, path: &str, quarantined: &str) -> Result<(), RestoreError> {
    let quarantined = QuarantinedFile::find(state_dir, path, quarantined)?;
    let (dir, name, _reopened) = open_parent(path)?;
    quarantined.move_to(&dir, name)
}

/// Restores a file and quarantines the file currently at its path. Returns the path of the newly quarantined file, or
/// `None` if no file was at the path.
///
/// # Errors
/// On error, both files stay where they were. If the newly quarantined file cannot be moved back, the error message
/// says so.
pub fn exchange(state_dir: &Path, path: &str, quarantined: &str) -> Result<Option<String>, RestoreError> {
    let quarantined = QuarantinedFile::find(state_dir, path, quarantined)?;
    let (dir, name, _reopened) = open_parent(path)?;
    let moved = match QuarantineSlot::new(&open_state_dir(state_dir)?, path)?.move_in(&dir, name) {
        Ok(moved) => moved,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return quarantined.move_to(&dir, name).map(|()| None);
        }
        Err(error) => return Err(error.into()),
    };
    match quarantined.move_to(&dir, name) {
        Ok(()) => Ok(Some(moved)),
        Err(problem) => match restore(state_dir, path, &moved) {
            Ok(()) => Err(problem),
            Err(_) => {
                let message = format!("{problem}; the previous file was moved to `{moved}`");
                Err(io::Error::other(message).into())
            }
        },
    }
}

/// Permanently deletes the file that was quarantined from `path` as `quarantined`.
///
/// # Errors
/// Fails if `quarantined` was not quarantined from `path`, or on an I/O error. The file may then be partly deleted.
pub fn delete(state_dir: &Path, path: &str, quarantined: &str) -> Result<(), RestoreError> {
    let quarantined = QuarantinedFile::find(state_dir, path, quarantined)?;
    match &quarantined.slot {
        Some(slot) => fs::remove_dir_all(slot)?,
        None => remove(&quarantined.dir, &quarantined.name)?,
    }
    Ok(())
}

impl QuarantinedFile {
    fn find(state_dir: &Path, path: &str, quarantined: &str) -> Result<Self, RestoreError> {
        let (above, name) = split_path(path)?;
        let (quarantined_parent, quarantined_name) = split_path(quarantined)?;
        if quarantined_parent == above {
            let is_disarmed =
                quarantined_name.strip_prefix(name).is_some_and(|rest| rest.starts_with(".quarantined-"));
            if !is_disarmed {
                return Err(RestoreError::WrongOrigin);
            }
            let (dir, _) = open_reopening(above).map_err(|error| RestoreError::NoFolder(error.into()))?;
            return Self { dir, name: quarantined_name.to_owned(), slot: None }.check_exists();
        }
        let state = open_state_dir(state_dir)?;
        let base = state.path().join("quarantine");
        let quarantined_parent = to_os_str(quarantined_parent);
        let slot =
            Path::new(&*quarantined_parent).strip_prefix(&base).map_err(|_| RestoreError::WrongOrigin)?;
        if slot.components().count() != 1 || quarantined_name != name {
            return Err(RestoreError::WrongOrigin);
        }
        let below = format!("quarantine/{}", slot.to_str().ok_or(RestoreError::WrongOrigin)?);
        let opened = open_listed(File::open(state.path())?, &below, ResolveFlags::BENEATH);
        let dir = opened.map_err(|_| RestoreError::NotInQuarantine)?;
        let mut origin = Vec::new();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&dir, "origin", flags, Mode::empty()).map_err(|_| RestoreError::WrongOrigin)?;
        File::from(file).take(MAX_ORIGIN_LEN).read_to_end(&mut origin)?;
        if origin != to_os_str(path).as_bytes() {
            return Err(RestoreError::WrongOrigin);
        }
        Self { dir, name: quarantined_name.to_owned(), slot: Some(base.join(slot)) }.check_exists()
    }

    fn check_exists(self) -> Result<Self, RestoreError> {
        match statat(&self.dir, &*to_os_str(&self.name), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(self),
            Err(Errno::NOENT) => Err(RestoreError::NotInQuarantine),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves the file to an unused name, or copies it if that name is on a different file system.
    fn move_to(&self, dir: &OwnedFd, name: &str) -> Result<(), RestoreError> {
        let current_path = to_os_str(&self.name);
        match renameat_with(&self.dir, &*current_path, dir, &*to_os_str(name), RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(RestoreError::Occupied),
            Err(Errno::XDEV) => self.copy_to(dir, name)?,
            Err(error) => return Err(error.into()),
        }
        if let Some(slot) = &self.slot {
            // Unless the file was copied, the slot now contains only the original path.
            let _ = fs::remove_dir_all(slot);
        }
        Ok(())
    }

    fn copy_to(&self, dir: &OwnedFd, name: &str) -> Result<(), RestoreError> {
        // No program recognizes this name, so an incomplete copy is never run.
        let partial_name = format!("{name}.put-back-{}", std::process::id());
        let to = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(&*to_os_str(&partial_name));
        let copied = BoundedCopy::new().copy(&self.dir, Path::new(&*to_os_str(&self.name)), &to, 0);
        let moved = copied.map_err(RestoreError::Io).and_then(|()| {
            renameat_with(dir, &*to_os_str(&partial_name), dir, &*to_os_str(name), RenameFlags::NOREPLACE)
                .map_err(|error| if error == Errno::EXIST { RestoreError::Occupied } else { error.into() })
        });
        if moved.is_err() {
            // Even if this fails, no program recognizes the name of the leftover copy.
            let _ = remove(dir, &partial_name);
        }
        moved
    }
}

fn open_state_dir(state_dir: &Path) -> io::Result<StateDir> {
    let text = state_dir.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    StateDir::open(text, rustix::process::getuid().as_raw())
}

/// Opens the parent folder of a path. Returns the folder, the last path component, and a guard that keeps the folder
/// accessible until dropped.
fn open_parent(path: &str) -> Result<(OwnedFd, &str, ReopenedFolders), RestoreError> {
    let (above, name) = split_path(path)?;
    let (dir, reopened) = open_reopening(above).map_err(|error| RestoreError::NoFolder(error.into()))?;
    Ok((dir, name, reopened))
}

fn split_path(path: &str) -> Result<(&str, &str), RestoreError> {
    let (above, name) = path.rsplit_once('/').ok_or(RestoreError::WrongOrigin)?;
    let is_plain = !matches!(name, "" | "." | "..");
    if is_plain {
        Ok((if above.is_empty() { "/" } else { above }, name))
    } else {
        Err(RestoreError::WrongOrigin)
    }
}

fn remove(dir: &OwnedFd, name: &str) -> io::Result<()> {
    let current_path = Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(&*to_os_str(name));
    fs::remove_file(&current_path).or_else(|_| fs::remove_dir_all(&current_path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autostart::quarantine;
    use std::os::unix::fs::symlink;

    struct Fixture {
        dir: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("p")).unwrap();
            Self { dir }
        }

        fn state(&self) -> PathBuf {
            self.dir.path().join("state")
        }

        fn at(&self, name: &str) -> String {
            self.dir.path().join(name).to_str().unwrap().to_owned()
        }

        /// Quarantines a new file. Returns its original path and its path in quarantine.
        fn moved(&self, name: &str, text: &str) -> (String, String) {
            let path = self.at(name);
            fs::write(&path, text).unwrap();
            let quarantined = quarantine(&self.state(), &path).unwrap();
            (path, quarantined)
        }

        fn restore(&self, path: &str, quarantined: &str) -> Result<(), RestoreError> {
            restore(&self.state(), path, quarantined)
        }
    }

    #[test]
    fn put_back_restores_the_file_and_empties_quarantine() {
        let fixture = Fixture::new();
        let (path, quarantined) = fixture.moved("p/.envrc", "run");
        fixture.restore(&path, &quarantined).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "run");
        assert_eq!(fs::read_dir(fixture.state().join("quarantine")).unwrap().count(), 0);
        assert!(matches!(fixture.restore(&path, &quarantined), Err(RestoreError::NotInQuarantine)));
        // A symlink is restored as a symlink.
        fs::write(fixture.at("secret"), "secret").unwrap();
        symlink(fixture.at("secret"), fixture.at("p/link")).unwrap();
        let quarantined = quarantine(&fixture.state(), &fixture.at("p/link")).unwrap();
        fixture.restore(&fixture.at("p/link"), &quarantined).unwrap();
        assert_eq!(fs::read_link(fixture.at("p/link")).unwrap().to_str(), Some(&*fixture.at("secret")));
        assert_eq!(fs::read_to_string(fixture.at("secret")).unwrap(), "secret");
    }

    #[test]
    fn put_back_never_overwrites_but_exchange_swaps() {
        let fixture = Fixture::new();
        let (path, quarantined) = fixture.moved("p/Makefile", "evil");
        fs::write(&path, "mine").unwrap();
        assert!(matches!(fixture.restore(&path, &quarantined), Err(RestoreError::Occupied)));
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), fs::read_to_string(&quarantined).unwrap()),
            ("mine".into(), "evil".into())
        );
        // A symlink at the path also blocks the restoration, even if it is dangling.
        fs::remove_file(&path).unwrap();
        symlink("nowhere", &path).unwrap();
        assert!(matches!(fixture.restore(&path, &quarantined), Err(RestoreError::Occupied)));
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        let moved = exchange(&fixture.state(), &path, &quarantined).unwrap().unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), fs::read_to_string(&moved).unwrap()),
            ("evil".into(), "mine".into())
        );
        let moved = exchange(&fixture.state(), &path, &moved).unwrap().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        fs::remove_file(&path).unwrap();
        assert_eq!(exchange(&fixture.state(), &path, &moved).unwrap(), None, "expected no file at the path");
        let moved = quarantine(&fixture.state(), &path).unwrap();
        fs::write(&path, "mine").unwrap();
        delete(&fixture.state(), &path, &moved).unwrap();
        assert!(matches!(delete(&fixture.state(), &path, &moved), Err(RestoreError::NotInQuarantine)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn refuses_symlinks_missing_folders_and_other_paths() {
        let fixture = Fixture::new();
        let (path, quarantined) = fixture.moved("p/x", "run");
        fs::rename(fixture.at("p"), fixture.at("q")).unwrap();
        assert!(matches!(fixture.restore(&path, &quarantined), Err(RestoreError::NoFolder(_))));
        symlink(fixture.at("q"), fixture.at("p")).unwrap();
        assert!(matches!(fixture.restore(&path, &quarantined), Err(RestoreError::NoFolder(_))));
        assert!(!Path::new(&fixture.at("q/x")).exists() && Path::new(&quarantined).exists());
        fs::remove_file(fixture.at("p")).unwrap();
        fs::rename(fixture.at("q"), fixture.at("p")).unwrap();
        // Refuses a file from another path, a file outside quarantine, and a path that leaves the quarantine.
        fs::write(fixture.at("other"), "mine").unwrap();
        let slot = Path::new(&quarantined).parent().unwrap();
        let out = format!("{}/../../../other", slot.display());
        for (to, from) in [
            (fixture.at("p/y"), quarantined.clone()),
            (fixture.at("q/x"), quarantined.clone()),
            (fixture.at("p/other"), fixture.at("other")),
            (fixture.at("p/other"), out),
            (fixture.at("p/.."), quarantined.clone()),
            (path.clone(), fixture.at("p/z")),
        ] {
            for refused in [fixture.restore(&to, &from), delete(&fixture.state(), &to, &from)] {
                assert!(matches!(refused, Err(RestoreError::WrongOrigin)), "{to} {from}: {refused:?}");
            }
        }
        // Refuses a slot that is a symlink.
        fs::rename(slot, fixture.at("slot")).unwrap();
        symlink(fixture.at("slot"), slot).unwrap();
        assert!(matches!(fixture.restore(&path, &quarantined), Err(RestoreError::NotInQuarantine)));
        fs::remove_file(slot).unwrap();
        fs::rename(fixture.at("slot"), slot).unwrap();
        fixture.restore(&path, &quarantined).unwrap();
        assert_eq!(fs::read_to_string(fixture.at("other")).unwrap(), "mine");
    }

    #[test]
    fn restores_name_of_file_disarmed_in_place() {
        let fixture = Fixture::new();
        let (path, disarmed) = (fixture.at("p/big"), fixture.at("p/big.quarantined-1-0"));
        fs::write(&disarmed, "run").unwrap();
        fixture.restore(&path, &disarmed).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "run");
        fs::write(&disarmed, "run").unwrap();
        delete(&fixture.state(), &path, &disarmed).unwrap();
        assert!(!Path::new(&disarmed).exists() && Path::new(&path).exists());
    }
}
