//! Finds, creates and removes mount points in a sandbox.
//!
//! - The sandbox's root is read-only for all its processes. Mount points are created through a detached, writable copy
//!   that only the child has.
//! - Nothing is created in the host's trees. A grant that would need a mount point there is refused.

use std::os::fd::{AsFd, OwnedFd};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, fstat, mkdirat, openat, unlinkat},
    io::Errno,
    mount::{OpenTreeFlags, open_tree},
};
use serde::{Deserialize, Serialize};

use super::{EnteredSandbox, MountError};
use crate::{
    control::MountRefusal,
    nofollow::{FileKind, mount_id, open_no_symlinks},
    sys::mount::{Attributes, set_attributes},
};

/// File or directory created as a mount point, or as a parent of a mount point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct CreatedPoint {
    path: String,
    kind: FileKind,
}

impl EnteredSandbox<'_> {
    /// Returns the file or directory on which to mount `path`, creating it if necessary.
    pub(in super::super) fn mount_point(
        &mut self,
        path: &str,
        kind: FileKind,
    ) -> Result<OwnedFd, MountError> {
        let root =
            open_no_symlinks(&self.root, ".").map_err(|error| no_mount_point(path, &error.to_string()))?;
        self.mount_point_below(root, "", path, kind)
    }

    /// Like [`mount_point`](Self::mount_point), but starts at `dir`, the open directory at the path `parent`. A mount
    /// may cover this directory.
    pub(super) fn mount_point_below(
        &mut self,
        dir: OwnedFd,
        parent: &str,
        path: &str,
        kind: FileKind,
    ) -> Result<OwnedFd, MountError> {
        let refused = |why: &str| no_mount_point(path, why);
        let (mut dir, mut end) = (dir, parent.len());
        for name in path.get(end..).unwrap_or_default().split('/').skip(1) {
            end += 1 + name.len();
            let so_far = path.get(..end).unwrap_or(path);
            let next = match open_no_symlinks(&dir, name) {
                Err(Errno::NOENT) => {
                    let kind = if end == path.len() { kind } else { FileKind::Directory };
                    self.create_point(&dir, so_far, name, kind)
                        .map_err(|error| refused(&creation_failure(error, so_far)))?;
                    open_no_symlinks(&dir, name)
                }
                found => found,
            };
            dir = next.map_err(|error| refused(&format!("`{so_far}`: {error}")))?;
        }
        let found = fstat(&dir).ok().and_then(|stat| FileKind::from_stat(&stat));
        if found != Some(kind) {
            return Err(refused("a file of another kind exists there"));
        }
        Ok(dir)
    }

    /// Creates `path`, whose last component is `name`, in `dir`.
    pub(super) fn create_point(
        &mut self,
        dir: &OwnedFd,
        path: &str,
        name: &str,
        kind: FileKind,
    ) -> Result<(), Errno> {
        let mount = mount_id(dir)?;
        if mount == self.sandbox.root_id {
            create(self.writable_root()?, path.trim_start_matches('/'), kind)?;
        } else if Some(mount) == self.sandbox.tmp_id {
            create(dir, name, kind)?;
        } else {
            return Err(Errno::ROFS);
        }
        self.created_points.push(CreatedPoint { path: path.to_owned(), kind });
        Ok(())
    }

    /// Removes unused mount points that this crate created.
    pub(super) fn remove_unused_points(&mut self) {
        let mut created_points = std::mem::take(&mut self.created_points);
        created_points.sort_by(|a, b| b.path.cmp(&a.path));
        created_points.retain(|point| {
            self.remove_point(point).is_err_and(|error| error == Errno::BUSY || error == Errno::NOTEMPTY)
        });
        self.created_points = created_points;
    }

    fn remove_point(&mut self, point: &CreatedPoint) -> Result<(), Errno> {
        let flags = if point.kind == FileKind::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let relative = point.path.trim_start_matches('/');
        match unlinkat(self.writable_root()?, relative, flags) {
            // The mount point is not on the root, so it is in the private `/tmp`.
            Err(Errno::NOENT) => {}
            done => return done,
        }
        let (parent, name) = point.path.rsplit_once('/').ok_or(Errno::INVAL)?;
        let parent = open_no_symlinks(&self.root, parent)?;
        if Some(mount_id(&parent)?) != self.sandbox.tmp_id {
            // A grant covers the private `/tmp`, so the mount point cannot be removed yet.
            return Err(Errno::BUSY);
        }
        unlinkat(&parent, name, flags)
    }

    fn writable_root(&mut self) -> Result<&OwnedFd, Errno> {
        if self.writable_root.is_none() {
            let copy = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
            let root = open_tree(CWD, "/", copy)?;
            let writable = Attributes { clear: libc::MOUNT_ATTR_RDONLY, ..Attributes::default() };
            set_attributes(&root, writable)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::PERM))?;
            self.writable_root = Some(root);
        }
        self.writable_root.as_ref().ok_or(Errno::PERM)
    }
}

fn no_mount_point(path: &str, why: &str) -> MountError {
    let message = format!("cannot mount `{path}` in the running sandbox: {why}");
    MountError::refused(MountRefusal::NoMountPoint, message)
}

fn create(dir: impl AsFd, name: &str, kind: FileKind) -> Result<(), Errno> {
    match kind {
        FileKind::Directory => mkdirat(dir, name, Mode::from_raw_mode(0o755)),
        FileKind::File => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(dir, name, flags, Mode::from_raw_mode(0o444)).map(drop)
        }
    }
}

fn creation_failure(error: Errno, path: &str) -> String {
    match error {
        Errno::ROFS => format!("`{path}` does not exist in the tree mounted there"),
        _ => format!("failed to create `{path}`: {error}"),
    }
}
