//! Replaces a file atomically with a draft from the same folder, under git's lock for the file.
//!
//! - INVARIANT: the journal records the draft's unpredictable name before the draft exists, so any process that finds a
//!   recorded draft may remove it. The lock is a hard link to the draft, which identifies it as ours.

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

use super::{file_stamp::FileStamp, name_text::raw};

/// Maximum time to wait for git's lock.
const PATIENCE: Duration = Duration::from_millis(200);

/// Draft of a new version of a file. Dropping it removes a draft that was not put in place.
#[derive(Debug)]
pub(super) struct ConfigDraft<'a> {
    dir: &'a OwnedFd,
    target: &'a str,
    name: String,
    file: File,
}

impl<'a> ConfigDraft<'a> {
    /// Creates a draft of `target` under the name `name`.
    pub(super) fn new(dir: &'a OwnedFd, target: &'a str, name: String) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(dir, &*raw(&name), flags, Mode::from_raw_mode(0o600))?);
        Ok(Self { dir, target, name, file })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Waits for git's lock and takes it. Continues without it if its holder keeps it too long or hard links are
    /// unsupported.
    pub(super) fn lock(&mut self) {
        let until = Instant::now() + PATIENCE;
        let link =
            || linkat(self.dir, &*raw(&self.name), self.dir, &*raw(&lock_of(self.target)), AtFlags::empty());
        while link() == Err(Errno::EXIST) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn write(&mut self, text: &[u8], mode: u32) -> io::Result<()> {
        self.file.write_all(text)?;
        self.file.set_permissions(Permissions::from_mode(mode))
    }

    /// Replaces the file with the draft.
    pub(super) fn place(&self) -> io::Result<()> {
        Ok(renameat(self.dir, &*raw(&self.name), self.dir, &*raw(self.target))?)
    }
}

impl Drop for ConfigDraft<'_> {
    fn drop(&mut self) {
        remove(self.dir, self.target, &self.name);
    }
}

/// Removes a leftover draft of `target`, and the lock that belongs to it.
pub(super) fn remove(dir: &OwnedFd, target: &str, name: &str) {
    let lock = lock_of(target);
    if let Ok(locked) = FileStamp::of(dir, &lock) {
        // The lock is a link to the draft, before or after the draft became `target`.
        let is_ours = |name: &str| FileStamp::of(dir, name).is_ok_and(|draft| draft.is_same_file(&locked));
        if is_ours(name) || is_ours(target) {
            let _ = unlinkat(dir, &*raw(&lock), AtFlags::empty());
        }
    }
    let _ = unlinkat(dir, &*raw(name), AtFlags::empty());
}

fn lock_of(target: &str) -> String {
    format!("{target}.lock")
}
