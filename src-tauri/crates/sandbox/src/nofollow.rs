//! Opens and compares files and directories without following symlinks.
//!
//! - INVARIANT: files are opened by their canonical path. A symlink in the path was created after the path was
//!   resolved, and is an error.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags, lstat, openat2, statx},
    io::Errno,
    path::Arg,
};
use serde::{Deserialize, Serialize};

/// Kind of file that can be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileKind {
    Directory,
    File,
}

/// Identity of a file, unaffected by renames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileId {
    pub(crate) fn from_stat(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }

    /// Returns the identity of the file at `path`, without following a symlink there.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        lstat(path).ok().map(|stat| Self::from_stat(&stat))
    }
}

impl FileKind {
    pub(crate) fn from_stat(stat: &Stat) -> Option<Self> {
        let file_type = FileType::from_raw_mode(stat.st_mode);
        if file_type.is_dir() {
            return Some(Self::Directory);
        }
        file_type.is_file().then_some(Self::File)
    }
}

/// Opens a path with `O_PATH`. Fails if any component is a symlink.
pub(crate) fn open_no_symlinks(from: impl AsFd, path: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(from, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)
}

/// Opens a path with `O_PATH`. The last component may be a symlink, which is then opened itself.
pub(crate) fn open_nofollow(from: impl AsFd, path: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat2(from, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)
}

/// Returns the id of the descriptor's mount, as in `/proc/PID/mountinfo`.
pub(crate) fn mount_id(fd: impl AsFd) -> Result<u64, Errno> {
    Ok(statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id)
}

/// Returns `true` if `path` is strictly below `above`.
pub(crate) fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns `true` if `path` equals `above` or is below it.
pub(crate) fn is_at_or_below(path: &str, above: &str) -> bool {
    path == above || is_below(path, above)
}
