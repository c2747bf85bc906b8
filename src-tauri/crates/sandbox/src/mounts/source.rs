//! The host's side of a grant: opening exactly the path that was judged, and making a private copy of its mount.
//!
//! - No component of the path may be a symlink: a canonical path has none, so one that is there now was put there since.
//! - The copy never receives later mounts of the host, and carries neither setuid programs nor devices.

use std::{io, os::fd::OwnedFd};

use rustix::{
    fs::{CWD, FileType, fstat},
    io::Errno,
};

use super::{MountError, apart::tree_made_apart};
use crate::{
    control::MountRefusal,
    mount_plan::MountPlan,
    place::{FileId, FileKind, mount_id, open_plain},
    spec::MountAccess,
    tree,
};

/// A path of the host, ready to be moved into a sandbox.
#[derive(Debug)]
pub(super) struct MountSource {
    pub(super) tree: OwnedFd,
    pub(super) kind: FileKind,
    pub(super) mount_id: u64,
    pub(super) identity: FileId,
}

impl MountSource {
    /// Opens `path` with `plan` applied to what is below it.
    pub(super) fn open(path: &str, access: MountAccess, plan: &MountPlan) -> Result<Self, MountError> {
        let place = open_plain(CWD, path).map_err(|error| cannot_open(path, error))?;
        let stat = fstat(&place).map_err(|error| MountError::kernel("looking at", path, error))?;
        let kind = FileKind::of(&stat).ok_or_else(|| {
            let kind = kind_name(FileType::from_raw_mode(stat.st_mode));
            let message = format!("`{path}` is {kind}; only regular files and folders can be allowed");
            MountError::refused(MountRefusal::Kind, message)
        })?;
        let identity = FileId::of(&stat);
        let opened =
            if plan.is_empty() { copy(&place, access) } else { copy_with_plan(path, access, plan, identity) };
        let tree = opened.map_err(|error| MountError::kernel("opening", path, error))?;
        let mount_id = mount_id(&tree).map_err(|error| MountError::kernel("looking at", path, error))?;
        Ok(Self { tree, kind, mount_id, identity })
    }

    /// Refuses a directory where a file was given: it stands there since.
    pub(super) fn check_kind(&self, path: &str, file: bool) -> Result<(), MountError> {
        match self.kind {
            FileKind::Directory if file => Err(MountError::refused(
                MountRefusal::Kind,
                format!("`{path}` is a directory now, and was given as a file"),
            )),
            FileKind::Directory | FileKind::File => Ok(()),
        }
    }

    /// Refuses a folder that took the place of something else after the watch for pipes and sockets was asked for.
    pub(super) fn check_watched(&self, path: &str, watched: bool) -> Result<(), MountError> {
        match self.kind {
            FileKind::Directory if !watched => Err(MountError::refused(
                MountRefusal::Kind,
                format!("`{path}` became a folder just now; try again"),
            )),
            FileKind::Directory | FileKind::File => Ok(()),
        }
    }
}

/// A private copy of the mount at `place`.
fn copy(place: &OwnedFd, access: MountAccess) -> io::Result<OwnedFd> {
    Ok(tree::copy(place, access == MountAccess::ReadOnly, true)?)
}

/// The same with the plan applied, unless something else stands there by then.
fn copy_with_plan(
    path: &str,
    access: MountAccess,
    plan: &MountPlan,
    identity: FileId,
) -> io::Result<OwnedFd> {
    tree_made_apart(plan, || {
        let place = open_plain(CWD, path)?;
        if FileId::of(&fstat(&place)?) != identity {
            return Err(io::Error::other("it was exchanged just now"));
        }
        copy(&place, access)
    })
}

fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::RegularFile | FileType::Directory | FileType::Symlink | FileType::Unknown => {
            "a special file"
        }
    }
}

fn cannot_open(path: &str, error: Errno) -> MountError {
    let (code, what) = match error {
        Errno::NOENT | Errno::NOTDIR => (MountRefusal::Missing, "does not exist"),
        Errno::LOOP => (MountRefusal::Symlink, "has a symlink in it now: it is not what was asked about"),
        Errno::ACCESS | Errno::PERM => (MountRefusal::Denied, "cannot be reached with your own rights"),
        _ => return MountError::kernel("opening", path, error),
    };
    MountError::refused(code, format!("`{path}` {what}"))
}
