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

use super::{Inside, MountError};
use crate::{
    control::MountRefusal,
    place::{FileKind, mount_id, open_plain},
    sys::mount::{Attributes, set_attributes},
};

/// File or directory created as a mount point, or as a parent of a mount point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct CreatedPoint {
    path: String,
    kind: FileKind,
}

impl Inside<'_> {
    /// Returns the file or directory on which to mount `path`, creating it if necessary.
    pub(in super::super) fn mount_point(
        &mut self,
        path: &str,
        kind: FileKind,
    ) -> Result<OwnedFd, MountError> {
        let root = open_plain(&self.root, ".").map_err(|error| no_place(path, &error.to_string()))?;
        self.point_below(root, "", path, kind)
    }

    /// Like [`mount_point`](Self::mount_point), but starts at `place`, the open directory at the path `above`. A mount
    /// may cover this directory.
    pub(super) fn point_below(
        &mut self,
        place: OwnedFd,
        above: &str,
        path: &str,
        kind: FileKind,
    ) -> Result<OwnedFd, MountError> {
        let refused = |why: &str| no_place(path, why);
        let (mut place, mut end) = (place, above.len());
        for name in path.get(end..).unwrap_or_default().split('/').skip(1) {
            end += 1 + name.len();
            let so_far = path.get(..end).unwrap_or(path);
            let next = match open_plain(&place, name) {
                Err(Errno::NOENT) => {
                    let kind = if end == path.len() { kind } else { FileKind::Directory };
                    self.make(&place, so_far, name, kind)
                        .map_err(|error| refused(&why_not_made(error, so_far)))?;
                    open_plain(&place, name)
                }
                found => found,
            };
            place = next.map_err(|error| refused(&format!("`{so_far}`: {error}")))?;
        }
        let there = fstat(&place).ok().and_then(|stat| FileKind::of(&stat));
        if there != Some(kind) {
            return Err(refused("a file of another kind exists there"));
        }
        Ok(place)
    }

    /// Creates `path`, whose last component is `name`, in `place`.
    pub(super) fn make(
        &mut self,
        place: &OwnedFd,
        path: &str,
        name: &str,
        kind: FileKind,
    ) -> Result<(), Errno> {
        let on = mount_id(place)?;
        if on == self.sandbox.root_id {
            create(self.writable_root()?, path.trim_start_matches('/'), kind)?;
        } else if Some(on) == self.sandbox.tmp_id {
            create(place, name, kind)?;
        } else {
            return Err(Errno::ROFS);
        }
        self.made.push(CreatedPoint { path: path.to_owned(), kind });
        Ok(())
    }

    /// Removes unused mount points that this crate created.
    pub(super) fn tidy(&mut self) {
        let mut made = std::mem::take(&mut self.made);
        made.sort_by(|a, b| b.path.cmp(&a.path));
        made.retain(|made| {
            self.unmake(made).is_err_and(|error| error == Errno::BUSY || error == Errno::NOTEMPTY)
        });
        self.made = made;
    }

    fn unmake(&mut self, made: &CreatedPoint) -> Result<(), Errno> {
        let flags = if made.kind == FileKind::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let relative = made.path.trim_start_matches('/');
        match unlinkat(self.writable_root()?, relative, flags) {
            // The mount point is not on the root, so it is in the private `/tmp`.
            Err(Errno::NOENT) => {}
            done => return done,
        }
        let (above, name) = made.path.rsplit_once('/').ok_or(Errno::INVAL)?;
        let above = open_plain(&self.root, above)?;
        if Some(mount_id(&above)?) != self.sandbox.tmp_id {
            // A grant covers the private `/tmp`, so the mount point cannot be removed yet.
            return Err(Errno::BUSY);
        }
        unlinkat(&above, name, flags)
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

fn no_place(path: &str, why: &str) -> MountError {
    let message = format!("cannot mount `{path}` in the running sandbox: {why}");
    MountError::refused(MountRefusal::NoMountPoint, message)
}

fn create(place: impl AsFd, name: &str, kind: FileKind) -> Result<(), Errno> {
    match kind {
        FileKind::Directory => mkdirat(place, name, Mode::from_raw_mode(0o755)),
        FileKind::File => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(place, name, flags, Mode::from_raw_mode(0o444)).map(drop)
        }
    }
}

fn why_not_made(error: Errno, path: &str) -> String {
    match error {
        Errno::ROFS => format!("`{path}` does not exist in the tree mounted there"),
        _ => format!("failed to create `{path}`: {error}"),
    }
}
