//! The host's side of a grant: opening exactly the path that was judged, and making a private copy of its mount.
//!
//! - No component of the path may be a symlink: a canonical path has none, so one that is there now was put there since.
//! - The copy never receives later mounts of the host, and carries neither setuid programs nor devices.

use std::os::fd::{AsFd, OwnedFd};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags, fstat, openat2, statx},
    io::Errno,
    mount::{OpenTreeFlags, open_tree},
    path::Arg,
};
use serde::{Deserialize, Serialize};

use super::MountError;
use crate::{
    control::Refusal,
    spec::Access,
    sys::mount::{Attributes, set_attributes},
};

/// A path of the host, ready to be moved into a sandbox.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) tree: OwnedFd,
    pub(super) kind: Kind,
    pub(super) mount_id: u64,
    pub(super) identity: Identity,
}

/// What can be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Directory,
    File,
}

/// Which file it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Source {
    pub(super) fn open(path: &str, access: Access) -> Result<Self, MountError> {
        let place = open_plain(CWD, path).map_err(|error| cannot_open(path, error))?;
        let stat = fstat(&place).map_err(|error| MountError::kernel("looking at", path, error))?;
        let kind = Kind::of(&stat).ok_or_else(|| {
            MountError::refused(Refusal::Kind, format!("`{path}` is neither a regular file nor a directory"))
        })?;
        let copy = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_EMPTY_PATH;
        let tree = open_tree(&place, "", copy).map_err(|error| MountError::kernel("opening", path, error))?;
        let read_only = if access == Access::ReadOnly { libc::MOUNT_ATTR_RDONLY } else { 0 };
        let attributes = Attributes {
            set: libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | read_only,
            propagation: libc::MS_PRIVATE,
            recursive: true,
            ..Attributes::default()
        };
        set_attributes(&tree, attributes).map_err(|error| MountError::kernel("restricting", path, error))?;
        let mount_id = mount_id(&tree).map_err(|error| MountError::kernel("looking at", path, error))?;
        Ok(Self { tree, kind, mount_id, identity: Identity { device: stat.st_dev, inode: stat.st_ino } })
    }
}

impl Kind {
    pub(super) fn of(stat: &Stat) -> Option<Self> {
        let file_type = FileType::from_raw_mode(stat.st_mode);
        if file_type.is_dir() {
            return Some(Self::Directory);
        }
        file_type.is_file().then_some(Self::File)
    }
}

/// Opens a place, not its content. A symlink anywhere in the path, its end included, is an error.
pub(super) fn open_plain(from: impl AsFd, path: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(from, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)
}

/// The id of the mount a descriptor is on, as `mountinfo` counts.
pub(super) fn mount_id(place: impl AsFd) -> Result<u64, Errno> {
    Ok(statx(place, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id)
}

fn cannot_open(path: &str, error: Errno) -> MountError {
    let (code, what) = match error {
        Errno::NOENT | Errno::NOTDIR => (Refusal::Missing, "does not exist"),
        Errno::LOOP => (Refusal::Symlink, "has a symlink in it now: it is not what was asked about"),
        Errno::ACCESS | Errno::PERM => (Refusal::Denied, "cannot be reached with your own rights"),
        _ => return MountError::kernel("opening", path, error),
    };
    MountError::refused(code, format!("`{path}` {what}"))
}
