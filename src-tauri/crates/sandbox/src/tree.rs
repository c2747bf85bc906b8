//! Creates and attaches mount trees.

use std::os::fd::{AsFd, OwnedFd};

use rustix::{
    io::Errno,
    mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree},
};

use crate::sys::mount::{Attributes, set_attributes};

/// Creates a private copy of the mount at `target`, including submounts if `recursive`. Later mounts on the host do not
/// propagate into the copy, and setuid programs and devices do not work in it.
pub(crate) fn copy_mount(source: &OwnedFd, read_only: bool, recursive: bool) -> Result<OwnedFd, Errno> {
    let recurse = if recursive { OpenTreeFlags::AT_RECURSIVE } else { OpenTreeFlags::empty() };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | recurse;
    let tree = open_tree(source, "", flags)?;
    let read_only = if read_only { libc::MOUNT_ATTR_RDONLY } else { 0 };
    let attributes = Attributes {
        set: libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | read_only,
        propagation: libc::MS_PRIVATE,
        recursive,
        ..Attributes::default()
    };
    set_attributes(&tree, attributes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::PERM))?;
    Ok(tree)
}

/// Attaches the detached `tree` beneath the mount whose root is `top`, where it becomes visible when that mount is
/// removed. Requires Linux 6.5.
pub(crate) fn attach_beneath(tree: impl AsFd, top: impl AsFd) -> Result<(), Errno> {
    let empty = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", top, "", empty | MoveMountFlags::MOVE_MOUNT_BENEATH)
}

/// Attaches `tree` at `target`. The tree may already be mounted elsewhere.
pub(crate) fn attach(tree: impl AsFd, target: impl AsFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", target, "", flags)
}
