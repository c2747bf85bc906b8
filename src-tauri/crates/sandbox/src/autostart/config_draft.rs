//! Atomic file replacement through a draft in the same folder, under git's lock for that file.
//!
//! - INVARIANT: the journal records the draft's unpredictable name before the draft is created, so any process may
//!   remove a recorded draft. The lock is a hard link to the draft, which proves that this code created the lock.

use std::{
    fs::{File, Permissions},
    io::{self, Write},
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    time::{Duration, Instant},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, linkat, openat, renameat, unlinkat},
    io::Errno,
};

use super::{file_stamp::FileStamp, name_text::to_os_str};

/// Maximum time to wait for git's lock.
const TIMEOUT: Duration = Duration::from_millis(200);

/// Draft of a file's new version. Dropping a draft that has not replaced its target deletes the draft.
#[derive(Debug)]
pub(super) struct ConfigDraft<'a> {
    dir: &'a OwnedFd,
    target: &'a str,
    name: String,
    file: File,
}

impl<'a> ConfigDraft<'a> {
    /// Creates an empty draft of `target`, named `name`.
    pub(super) fn new(dir: &'a OwnedFd, target: &'a str, name: String) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(dir, &*to_os_str(&name), flags, Mode::from_raw_mode(0o600))?);
        Ok(Self { dir, target, name, file })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Acquires git's lock. Proceeds without it after [`TIMEOUT`], or if hard links are unsupported.
    pub(super) fn lock(&mut self) {
        let deadline = Instant::now() + TIMEOUT;
        let link = || {
            linkat(
                self.dir,
                &*to_os_str(&self.name),
                self.dir,
                &*to_os_str(&lock_name(self.target)),
                AtFlags::empty(),
            )
        };
        while link() == Err(Errno::EXIST) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn write(&mut self, text: &[u8], mode: u32) -> io::Result<()> {
        self.file.write_all(text)?;
        self.file.set_permissions(Permissions::from_mode(mode))
    }

    /// Replaces the target with the draft.
    pub(super) fn commit(&self) -> io::Result<()> {
        Ok(renameat(self.dir, &*to_os_str(&self.name), self.dir, &*to_os_str(self.target))?)
    }
}

impl Drop for ConfigDraft<'_> {
    fn drop(&mut self) {
        remove(self.dir, self.target, &self.name);
    }
}

/// Removes a draft of `target` that a killed process left behind, and its lock.
pub(super) fn remove(dir: &OwnedFd, target: &str, name: &str) {
    let lock = lock_name(target);
    if let Ok(locked) = FileStamp::at(dir, &lock) {
        // The lock is a hard link to the draft, even after the draft was renamed to `target`.
        let is_ours = |name: &str| FileStamp::at(dir, name).is_ok_and(|draft| draft.is_same_file(&locked));
        if is_ours(name) || is_ours(target) {
            let _ = unlinkat(dir, &*to_os_str(&lock), AtFlags::empty());
        }
    }
    let _ = unlinkat(dir, &*to_os_str(name), AtFlags::empty());
}

fn lock_name(target: &str) -> String {
    format!("{target}.lock")
}
