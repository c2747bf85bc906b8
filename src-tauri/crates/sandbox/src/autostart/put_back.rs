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
    name_text::raw,
    quarantine::{BoundedCopy, QuarantineSlot},
    reopened_folders::{ReopenedFolders, open_listed, open_reopening},
};
use crate::state::StateDir;

/// Maximum length in bytes of the original path recorded in a slot.
const MAX_ORIGIN_LEN: u64 = 64 << 10;

/// Failure to restore or delete a quarantined file.
#[derive(Debug, thiserror::Error)]
pub enum PutBackError {
    /// The file is not in quarantine.
    #[error("the file is no longer in quarantine")]
    NotKept,
    /// The file was quarantined from a different path.
    #[error("the file was quarantined from a different path")]
    NotFromThere,
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

impl From<Errno> for PutBackError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// Quarantined file and its location.
struct Kept {
    dir: OwnedFd,
    /// Name of the file in `dir`.
    name: String,
    /// Quarantine slot that contains the file, or `None` if the file was disarmed in place.
    slot: Option<PathBuf>,
}

/// Restores the quarantined file `kept` to its original path `path`.
///
/// # Errors
/// On error, the file stays in quarantine.
pub fn put_back(state_dir: &Path, path: &str, kept: &str) -> Result<(), PutBackError> {
    let kept = Kept::find(state_dir, path, kept)?;
    let (dir, name, _shut) = folder_of(path)?;
    kept.move_to(&dir, name)
}

/// Restores a file and quarantines the file currently at its path. Returns the path of the newly quarantined file, or
/// `None` if no file was at the path.
///
/// # Errors
/// On error, both files stay where they were. If the newly quarantined file cannot be moved back, the error message
/// says so.
pub fn exchange(state_dir: &Path, path: &str, kept: &str) -> Result<Option<String>, PutBackError> {
    let kept = Kept::find(state_dir, path, kept)?;
    let (dir, name, _shut) = folder_of(path)?;
    let moved = match QuarantineSlot::new(&open_state(state_dir)?, path)?.move_away(&dir, name) {
        Ok(moved) => moved,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return kept.move_to(&dir, name).map(|()| None);
        }
        Err(error) => return Err(error.into()),
    };
    match kept.move_to(&dir, name) {
        Ok(()) => Ok(Some(moved)),
        Err(problem) => match put_back(state_dir, path, &moved) {
            Ok(()) => Err(problem),
            Err(_) => {
                let told = format!("{problem}; the previous file was moved to `{moved}`");
                Err(io::Error::other(told).into())
            }
        },
    }
}

/// Permanently deletes the file that was quarantined from `path` as `kept`.
///
/// # Errors
/// Fails if `kept` was not quarantined from `path`, or on an I/O error. The file may then be partly deleted.
pub fn delete(state_dir: &Path, path: &str, kept: &str) -> Result<(), PutBackError> {
    let kept = Kept::find(state_dir, path, kept)?;
    match &kept.slot {
        Some(slot) => fs::remove_dir_all(slot)?,
        None => remove(&kept.dir, &kept.name)?,
    }
    Ok(())
}

impl Kept {
    fn find(state_dir: &Path, path: &str, kept: &str) -> Result<Self, PutBackError> {
        let (above, name) = parts(path)?;
        let (holder, held) = parts(kept)?;
        if holder == above {
            let is_disarmed = held.strip_prefix(name).is_some_and(|rest| rest.starts_with(".quarantined-"));
            if !is_disarmed {
                return Err(PutBackError::NotFromThere);
            }
            let (dir, _) = open_reopening(above).map_err(|error| PutBackError::NoFolder(error.into()))?;
            return Self { dir, name: held.to_owned(), slot: None }.there();
        }
        let state = open_state(state_dir)?;
        let base = state.path().join("quarantine");
        let holder = raw(holder);
        let slot = Path::new(&*holder).strip_prefix(&base).map_err(|_| PutBackError::NotFromThere)?;
        if slot.components().count() != 1 || held != name {
            return Err(PutBackError::NotFromThere);
        }
        let below = format!("quarantine/{}", slot.to_str().ok_or(PutBackError::NotFromThere)?);
        let opened = open_listed(File::open(state.path())?, &below, ResolveFlags::BENEATH);
        let dir = opened.map_err(|_| PutBackError::NotKept)?;
        let mut origin = Vec::new();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&dir, "origin", flags, Mode::empty()).map_err(|_| PutBackError::NotFromThere)?;
        File::from(file).take(MAX_ORIGIN_LEN).read_to_end(&mut origin)?;
        if origin != raw(path).as_bytes() {
            return Err(PutBackError::NotFromThere);
        }
        Self { dir, name: held.to_owned(), slot: Some(base.join(slot)) }.there()
    }

    fn there(self) -> Result<Self, PutBackError> {
        match statat(&self.dir, &*raw(&self.name), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(self),
            Err(Errno::NOENT) => Err(PutBackError::NotKept),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves the file to an unused name, or copies it if that name is on a different file system.
    fn move_to(&self, dir: &OwnedFd, name: &str) -> Result<(), PutBackError> {
        let here = raw(&self.name);
        match renameat_with(&self.dir, &*here, dir, &*raw(name), RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(PutBackError::Occupied),
            Err(Errno::XDEV) => self.copy_to(dir, name)?,
            Err(error) => return Err(error.into()),
        }
        if let Some(slot) = &self.slot {
            // Unless the file was copied, the slot now contains only the original path.
            let _ = fs::remove_dir_all(slot);
        }
        Ok(())
    }

    fn copy_to(&self, dir: &OwnedFd, name: &str) -> Result<(), PutBackError> {
        // No program recognizes this name, so an incomplete copy is never run.
        let half = format!("{name}.put-back-{}", std::process::id());
        let to = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(&*raw(&half));
        let copied = BoundedCopy::new().copy(&self.dir, Path::new(&*raw(&self.name)), &to, 0);
        let moved = copied.map_err(PutBackError::Io).and_then(|()| {
            renameat_with(dir, &*raw(&half), dir, &*raw(name), RenameFlags::NOREPLACE)
                .map_err(|error| if error == Errno::EXIST { PutBackError::Occupied } else { error.into() })
        });
        if moved.is_err() {
            // Even if this fails, no program recognizes the name of the leftover copy.
            let _ = remove(dir, &half);
        }
        moved
    }
}

fn open_state(state_dir: &Path) -> io::Result<StateDir> {
    let text = state_dir.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    StateDir::open(text, rustix::process::getuid().as_raw())
}

/// Opens the parent folder of a path. Returns the folder, the last path component, and a guard that keeps the folder
/// accessible until dropped.
fn folder_of(path: &str) -> Result<(OwnedFd, &str, ReopenedFolders), PutBackError> {
    let (above, name) = parts(path)?;
    let (dir, shut) = open_reopening(above).map_err(|error| PutBackError::NoFolder(error.into()))?;
    Ok((dir, name, shut))
}

fn parts(path: &str) -> Result<(&str, &str), PutBackError> {
    let (above, name) = path.rsplit_once('/').ok_or(PutBackError::NotFromThere)?;
    let is_plain = !matches!(name, "" | "." | "..");
    if is_plain {
        Ok((if above.is_empty() { "/" } else { above }, name))
    } else {
        Err(PutBackError::NotFromThere)
    }
}

fn remove(dir: &OwnedFd, name: &str) -> io::Result<()> {
    let here = Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(&*raw(name));
    fs::remove_file(&here).or_else(|_| fs::remove_dir_all(&here))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autostart::quarantine;
    use std::os::unix::fs::symlink;

    struct Place {
        dir: tempfile::TempDir,
    }

    impl Place {
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
            let kept = quarantine(&self.state(), &path).unwrap();
            (path, kept)
        }

        fn put_back(&self, path: &str, kept: &str) -> Result<(), PutBackError> {
            put_back(&self.state(), path, kept)
        }
    }

    #[test]
    fn put_back_restores_the_file_and_empties_quarantine() {
        let place = Place::new();
        let (path, kept) = place.moved("p/.envrc", "run");
        place.put_back(&path, &kept).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "run");
        assert_eq!(fs::read_dir(place.state().join("quarantine")).unwrap().count(), 0);
        assert!(matches!(place.put_back(&path, &kept), Err(PutBackError::NotKept)));
        // A symlink is restored as a symlink.
        fs::write(place.at("secret"), "secret").unwrap();
        symlink(place.at("secret"), place.at("p/link")).unwrap();
        let kept = quarantine(&place.state(), &place.at("p/link")).unwrap();
        place.put_back(&place.at("p/link"), &kept).unwrap();
        assert_eq!(fs::read_link(place.at("p/link")).unwrap().to_str(), Some(&*place.at("secret")));
        assert_eq!(fs::read_to_string(place.at("secret")).unwrap(), "secret");
    }

    #[test]
    fn put_back_never_overwrites_but_exchange_swaps() {
        let place = Place::new();
        let (path, kept) = place.moved("p/Makefile", "evil");
        fs::write(&path, "mine").unwrap();
        assert!(matches!(place.put_back(&path, &kept), Err(PutBackError::Occupied)));
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), fs::read_to_string(&kept).unwrap()),
            ("mine".into(), "evil".into())
        );
        // A symlink at the path also blocks the restoration, even if it is dangling.
        fs::remove_file(&path).unwrap();
        symlink("nowhere", &path).unwrap();
        assert!(matches!(place.put_back(&path, &kept), Err(PutBackError::Occupied)));
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        let moved = exchange(&place.state(), &path, &kept).unwrap().unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), fs::read_to_string(&moved).unwrap()),
            ("evil".into(), "mine".into())
        );
        let moved = exchange(&place.state(), &path, &moved).unwrap().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        fs::remove_file(&path).unwrap();
        assert_eq!(exchange(&place.state(), &path, &moved).unwrap(), None, "expected no file at the path");
        let moved = quarantine(&place.state(), &path).unwrap();
        fs::write(&path, "mine").unwrap();
        delete(&place.state(), &path, &moved).unwrap();
        assert!(matches!(delete(&place.state(), &path, &moved), Err(PutBackError::NotKept)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn refuses_symlinks_missing_folders_and_other_paths() {
        let place = Place::new();
        let (path, kept) = place.moved("p/x", "run");
        fs::rename(place.at("p"), place.at("q")).unwrap();
        assert!(matches!(place.put_back(&path, &kept), Err(PutBackError::NoFolder(_))));
        symlink(place.at("q"), place.at("p")).unwrap();
        assert!(matches!(place.put_back(&path, &kept), Err(PutBackError::NoFolder(_))));
        assert!(!Path::new(&place.at("q/x")).exists() && Path::new(&kept).exists());
        fs::remove_file(place.at("p")).unwrap();
        fs::rename(place.at("q"), place.at("p")).unwrap();
        // Refuses a file from another path, a file outside quarantine, and a path that leaves the quarantine.
        fs::write(place.at("other"), "mine").unwrap();
        let slot = Path::new(&kept).parent().unwrap();
        let out = format!("{}/../../../other", slot.display());
        for (to, from) in [
            (place.at("p/y"), kept.clone()),
            (place.at("q/x"), kept.clone()),
            (place.at("p/other"), place.at("other")),
            (place.at("p/other"), out),
            (place.at("p/.."), kept.clone()),
            (path.clone(), place.at("p/z")),
        ] {
            for refused in [place.put_back(&to, &from), delete(&place.state(), &to, &from)] {
                assert!(matches!(refused, Err(PutBackError::NotFromThere)), "{to} {from}: {refused:?}");
            }
        }
        // Refuses a slot that is a symlink.
        fs::rename(slot, place.at("slot")).unwrap();
        symlink(place.at("slot"), slot).unwrap();
        assert!(matches!(place.put_back(&path, &kept), Err(PutBackError::NotKept)));
        fs::remove_file(slot).unwrap();
        fs::rename(place.at("slot"), slot).unwrap();
        place.put_back(&path, &kept).unwrap();
        assert_eq!(fs::read_to_string(place.at("other")).unwrap(), "mine");
    }

    #[test]
    fn restores_name_of_file_disarmed_in_place() {
        let place = Place::new();
        let (path, beside) = (place.at("p/big"), place.at("p/big.quarantined-1-0"));
        fs::write(&beside, "run").unwrap();
        place.put_back(&path, &beside).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "run");
        fs::write(&beside, "run").unwrap();
        delete(&place.state(), &path, &beside).unwrap();
        assert!(!Path::new(&beside).exists() && Path::new(&path).exists());
    }
}
