//! Moves files to quarantine, where no program runs them.
//!
//! - Nothing is deleted. A quarantined file keeps its name, in a slot folder that also contains an `origin` file with
//!   the original path. A file that cannot be moved is disarmed in place: it is renamed so that no program recognizes
//!   it.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Read},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{
            ffi::OsStrExt,
            fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink},
        },
    },
    path::{Path, PathBuf},
    sync::atomic::AtomicU64,
};

use rustix::{
    fs::{CWD, Dir, Mode, OFlags, openat, readlinkat, renameat},
    io::Errno,
};

use super::{
    name_text::{from_os_path, to_os_str},
    reopened_folders::{ReopenedFolders, open_reopening},
};
use crate::state::{StateDir, create_numbered};

/// Maximum size in bytes of a file that is copied to a different file system. Copying blocks the watcher, so a larger
/// file is disarmed in place.
const MAX_COPIED: u64 = 16 << 20;
const MAX_ENTRIES: usize = 10_000;
const MAX_DEPTH: usize = 64;

/// Sequence number of the next slot.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Quarantines a file at the user's request. Returns its new path.
pub fn quarantine(state_dir: &Path, path: &str) -> io::Result<String> {
    let (above, name) = path.rsplit_once('/').ok_or(io::ErrorKind::InvalidInput)?;
    let text = state_dir.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    let state = StateDir::open(text, rustix::process::getuid().as_raw())?;
    let (dir, _reopened) = open_reopening(if above.is_empty() { "/" } else { above })?;
    QuarantineSlot::new(&state, path)?.move_in(&dir, name)
}

/// Folder in quarantine that holds one file.
#[derive(Debug)]
pub(super) struct QuarantineSlot {
    slot_dir: PathBuf,
}

impl QuarantineSlot {
    /// Creates a slot for the file at `path`.
    pub(super) fn new(state: &StateDir, path: &str) -> io::Result<Self> {
        let base = state.subdir("quarantine")?;
        let slot_dir = create_numbered(&NEXT, |number| {
            let slot_dir = base.join(format!("{}-{number}", std::process::id()));
            DirBuilder::new().mode(0o700).create(&slot_dir).map(|()| slot_dir)
        })?;
        fs::write(slot_dir.join("origin"), to_os_str(path).as_bytes())?;
        Ok(Self { slot_dir })
    }

    /// Returns the path of a file with this name in the slot.
    pub(super) fn path_for(&self, name: &str) -> PathBuf {
        self.slot_dir.join(&*to_os_str(name))
    }

    /// Writes text to a file in the slot.
    pub(super) fn write(self, name: &str, text: &[u8]) -> io::Result<()> {
        fs::write(self.path_for(name), text)
    }

    /// Disarms a file in place by renaming it. Returns its new path.
    pub(super) fn disarm(self, dir: &OwnedFd, name: &str) -> io::Result<String> {
        let disarmed = disarmed_name(name, &self.slot_dir);
        let mut moved = renameat(dir, &*to_os_str(name), dir, &*to_os_str(&disarmed));
        let mut reopened = ReopenedFolders::default();
        if moved.is_err_and(|error| error != Errno::NOENT) {
            reopened.open_for_moving(dir, name);
            moved = renameat(dir, &*to_os_str(name), dir, &*to_os_str(&disarmed));
        }
        let _ = fs::remove_dir_all(&self.slot_dir);
        moved?;
        let folder = fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd()))?;
        Ok(from_os_path(&folder.join(&*to_os_str(&disarmed))))
    }

    /// Moves a file from a folder into the slot. Returns its new path.
    pub(super) fn move_in(self, dir: &OwnedFd, name: &str) -> io::Result<String> {
        let to = self.path_for(name);
        let mut reopened = ReopenedFolders::default();
        let mut moved = renameat(dir, &*to_os_str(name), CWD, &to);
        // Makes the folder accessible after any error, because the kernel reports `EXDEV` before missing permissions.
        if moved.is_err_and(|error| error != Errno::NOENT) {
            reopened.open_for_moving(dir, name);
            moved = renameat(dir, &*to_os_str(name), CWD, &to);
        }
        match moved {
            Ok(()) => return Ok(from_os_path(&to)),
            Err(Errno::NOENT) => {
                // The slot contains only the `origin` file.
                let _ = fs::remove_dir_all(&self.slot_dir);
                return Err(io::ErrorKind::NotFound.into());
            }
            Err(_) => {}
        }
        // The rename below disarms the file, even if a later step fails.
        let disarmed = disarmed_name(name, &self.slot_dir);
        if let Err(error) = renameat(dir, &*to_os_str(name), dir, &*to_os_str(&disarmed)) {
            let _ = fs::remove_dir_all(&self.slot_dir);
            return Err(error.into());
        }
        let here = Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(&*to_os_str(&disarmed));
        let partial = self.slot_dir.join("half");
        let copied = BoundedCopy::new().copy(dir, Path::new(&*to_os_str(&disarmed)), &partial, 0);
        if copied.and_then(|()| fs::rename(&partial, &to)).is_err() {
            let _ = fs::remove_dir_all(&self.slot_dir);
            let folder = fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd()))?;
            return Ok(from_os_path(&folder.join(&*to_os_str(&disarmed))));
        }
        // If this fails, no program recognizes the leftover's disarmed name.
        let _ = fs::remove_dir_all(&here).or_else(|_| fs::remove_file(&here));
        Ok(from_os_path(&to))
    }
}

/// Returns the current path of a file whose move to `moved_to` was journaled but not completed.
pub(super) fn disarmed_path(path: &str, moved_to: &str) -> Option<String> {
    let begun = disarmed_name(path, Path::new(moved_to).parent()?);
    fs::symlink_metadata(&*to_os_str(&begun)).is_ok().then_some(begun)
}

/// Returns the disarmed name for the file `name`. `slot_dir` is the file's slot in quarantine.
fn disarmed_name(name: &str, slot_dir: &Path) -> String {
    format!("{name}.quarantined-{}", slot_dir.file_name().unwrap_or_default().display())
}

/// Limits of a copy. A sandboxed process may write to the files during the copy.
pub(super) struct BoundedCopy {
    bytes: u64,
    names: usize,
}

impl BoundedCopy {
    pub(super) fn new() -> Self {
        Self { bytes: MAX_COPIED, names: MAX_ENTRIES }
    }

    /// Copies a file, folder tree or symlink. Sockets are skipped and symlinks are not followed. Fails if a limit is
    /// exceeded, and never blocks.
    pub(super) fn copy(&mut self, dir: &OwnedFd, name: &Path, to: &Path, depth: usize) -> io::Result<()> {
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        self.names = self.names.checked_sub(1).filter(|_| depth < MAX_DEPTH).ok_or_else(too_large)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(dir, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::LOOP) => {
                let link = readlinkat(dir, name, Vec::new())?;
                return symlink(OsStr::from_bytes(link.as_bytes()), to);
            }
            // Sockets are useless without the process that created them.
            Err(Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let metadata = file.metadata()?;
        if metadata.is_file() {
            let mut copy = File::options().write(true).create_new(true).open(to)?;
            let copied = io::copy(&mut (&file).take(self.bytes + 1), &mut copy)?;
            self.bytes = self.bytes.checked_sub(copied).ok_or_else(too_large)?;
            copy.set_permissions(Permissions::from_mode(metadata.mode() & 0o777))?;
        } else if metadata.is_dir() {
            DirBuilder::new().mode(0o700).create(to)?;
            let folder = OwnedFd::from(file);
            for entry in Dir::read_from(&folder)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name != "." && name != ".." {
                    self.copy(&folder, name.as_ref(), &to.join(name), depth + 1)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_file_keeps_name_and_records_origin() {
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
    fn refuses_symlinks_in_the_path() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        fs::write(dir.path().join("real/x"), "run").unwrap();
        symlink(dir.path().join("real"), dir.path().join("link")).unwrap();
        let path = dir.path().join("link/x");
        assert!(quarantine(&dir.path().join("state"), path.to_str().unwrap()).is_err());
        assert!(dir.path().join("real/x").exists());
    }

    #[test]
    fn slots_are_never_reused_and_existing_ones_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let state =
            StateDir::open(dir.path().join("state").to_str().unwrap(), rustix::process::getuid().as_raw());
        let state = state.unwrap();
        let prepared = || QuarantineSlot::new(&state, "/x").unwrap();
        let first = prepared();
        fs::remove_dir_all(&first.slot_dir).unwrap();
        let second = prepared();
        let number = |slot: &QuarantineSlot| -> u64 {
            slot.slot_dir.to_str().unwrap().rsplit_once('-').unwrap().1.parse().unwrap()
        };
        let last = number(&second);
        assert!(last > number(&first), "{last} after {first:?}");
        for number in last + 1..last + 50 {
            let taken = second.slot_dir.with_file_name(format!("{}-{number}", std::process::id()));
            fs::create_dir(taken).unwrap();
        }
        assert!(number(&prepared()) >= last + 50);
    }

    #[test]
    fn copy_stops_at_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("folder/a"), "1234").unwrap();
        fs::write(at("folder/b"), "5678").unwrap();
        let here = OwnedFd::from(File::open(dir.path()).unwrap());
        let copied = |to: &str, bytes: u64, names: usize| {
            let copied = BoundedCopy { bytes, names }.copy(&here, "folder".as_ref(), &at(to), 0);
            copied.map_err(|error| error.kind())
        };
        assert_eq!(copied("seven", 7, 3), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(copied("two", 8, 2), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(copied("eight", 8, 3), Ok(()));
        assert_eq!(fs::read_to_string(at("eight/b")).unwrap(), "5678");
        let deep = "d/".repeat(MAX_DEPTH + 1);
        fs::create_dir_all(at("folder").join(deep)).unwrap();
        assert_eq!(copied("deep", 8, 1_000), Err(io::ErrorKind::FileTooLarge));
    }
}
