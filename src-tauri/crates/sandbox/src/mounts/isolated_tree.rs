//! Mount trees made in a separate mount namespace.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream},
};

use crate::{
    fd_passing,
    mount_plan::MountPlan,
    sys::process::{leave_mount_namespace, try_in_fork},
};

/// Makes a tree in a child's mount namespace with `plan` applied; the namespace is destroyed with the child. Only for
/// single-threaded processes.
pub(super) fn build_isolated_tree(
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
