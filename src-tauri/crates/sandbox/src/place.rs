//! Places of the file system: opened without following a symlink, told apart, compared.
//!
//! - INVARIANT: a place is opened by its canonical path. A symlink on the way was put there since, and is an error.

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

/// The kinds of file that can be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileKind {
    Directory,
    File,
}

/// The identity of a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileId {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }

    /// The thing at a path, which may be a symlink.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        lstat(path).ok().map(|stat| Self::of(&stat))
    }
}

impl FileKind {
    pub(crate) fn of(stat: &Stat) -> Option<Self> {
        let file_type = FileType::from_raw_mode(stat.st_mode);
        if file_type.is_dir() {
            return Some(Self::Directory);
        }
        file_type.is_file().then_some(Self::File)
    }
}

/// Opens a place, not its content. A symlink anywhere in the path, its end included, is an error.
pub(crate) fn open_plain(from: impl AsFd, path: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(from, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)
}

/// The same, but what is at the end may be a symlink, and then is it that is opened.
pub(crate) fn open_plain_end(from: impl AsFd, path: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat2(from, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)
}

/// The id of the mount a descriptor is on, as `mountinfo` counts.
pub(crate) fn mount_id(place: impl AsFd) -> Result<u64, Errno> {
    Ok(statx(place, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id)
}

/// True when `path` lies strictly below `above`.
pub(crate) fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

/// True when `path` is `above` or lies below it.
pub(crate) fn is_at_or_below(path: &str, above: &str) -> bool {
    path == above || is_below(path, above)
}
