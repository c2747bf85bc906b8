//! Opens the exact host path that was approved for a grant and copies its mount.
//!
//! - An approved path is canonical. A symlink in the path was created after the approval, and is an error.
//! - Later mounts on the host do not propagate into the copy, and setuid programs and devices do not work in it.

use std::{io, os::fd::OwnedFd};

use rustix::{
    fs::{CWD, FileType, fstat},
    io::Errno,
};

use super::{MountError, isolated_tree::build_isolated_tree};
use crate::{
    control::MountRefusal,
    mount_plan::MountPlan,
    nofollow::{FileId, FileKind, mount_id, open_no_symlinks},
    spec::MountAccess,
    tree,
};

/// Copy of a host path, ready to be mounted in a sandbox.
#[derive(Debug)]
pub(super) struct MountSource {
    pub(super) tree: OwnedFd,
    pub(super) kind: FileKind,
    pub(super) mount_id: u64,
    pub(super) identity: FileId,
}

impl MountSource {
    /// Opens and copies `path` and applies `plan` below it.
    pub(super) fn open(path: &str, access: MountAccess, plan: &MountPlan) -> Result<Self, MountError> {
        let fd = open_no_symlinks(CWD, path).map_err(|error| cannot_open(path, error))?;
        let stat = fstat(&fd).map_err(|error| MountError::kernel("inspecting", path, error))?;
        let kind = FileKind::from_stat(&stat).ok_or_else(|| {
            let kind = kind_name(FileType::from_raw_mode(stat.st_mode));
            let message = format!("`{path}` is {kind}; only regular files and folders can be granted");
            MountError::refused(MountRefusal::Kind, message)
        })?;
        let identity = FileId::from_stat(&stat);
        let opened =
            if plan.is_empty() { copy(&fd, access) } else { copy_with_plan(path, access, plan, identity) };
        let tree = opened.map_err(|error| MountError::kernel("opening", path, error))?;
        let mount_id = mount_id(&tree).map_err(|error| MountError::kernel("inspecting", path, error))?;
        Ok(Self { tree, kind, mount_id, identity })
    }

    /// Fails if a file is required and the path is a directory.
    pub(super) fn check_kind(&self, path: &str, file: bool) -> Result<(), MountError> {
        match self.kind {
            FileKind::Directory if file => Err(MountError::refused(
                MountRefusal::Kind,
                format!("`{path}` is a directory, expected a file"),
            )),
            FileKind::Directory | FileKind::File => Ok(()),
        }
    }

    /// Fails if the path became a folder after the caller decided that it needs no watch for pipes and sockets.
    pub(super) fn check_watched(&self, path: &str, watched: bool) -> Result<(), MountError> {
        match self.kind {
            FileKind::Directory if !watched => Err(MountError::refused(
                MountRefusal::Kind,
                format!("`{path}` has just become a folder; try again"),
            )),
            FileKind::Directory | FileKind::File => Ok(()),
        }
    }
}

/// Copies the mount at `fd`.
fn copy(fd: &OwnedFd, access: MountAccess) -> io::Result<OwnedFd> {
    Ok(tree::copy_mount(fd, access == MountAccess::ReadOnly, true)?)
}

/// Copies the mount and applies `plan`. Fails if the path was replaced after it was opened.
fn copy_with_plan(
    path: &str,
    access: MountAccess,
    plan: &MountPlan,
    identity: FileId,
) -> io::Result<OwnedFd> {
    build_isolated_tree(plan, || {
        let fd = open_no_symlinks(CWD, path)?;
        if FileId::from_stat(&fstat(&fd)?) != identity {
            return Err(io::Error::other("it has just been replaced"));
        }
        copy(&fd, access)
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
        Errno::LOOP => {
            (MountRefusal::Symlink, "now contains a symlink, so it is no longer the path that was approved")
        }
        Errno::ACCESS | Errno::PERM => (MountRefusal::Denied, "is not accessible with your permissions"),
        _ => return MountError::kernel("opening", path, error),
    };
    MountError::refused(code, format!("`{path}` {what}"))
}
