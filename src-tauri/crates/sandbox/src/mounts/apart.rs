//! Trees that are made in a mount namespace of their own.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream},
};

use crate::{
    fd_passing,
    mount_plan::MountPlan,
    sys::process::{leave_mount_namespace, try_in_fork},
};

/// A tree that a child makes in a mount namespace of its own, where `plan` is applied, and which ends with it. Only for a process
/// with one thread.
pub(super) fn tree_made_apart(
    plan: &MountPlan,
    make: impl FnOnce() -> io::Result<OwnedFd>,
) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    try_in_fork(|| {
        leave_mount_namespace()?;
        plan.apply()?;
        fd_passing::send(&theirs, make()?)
    })?;
    fd_passing::receive(&ours)
}
