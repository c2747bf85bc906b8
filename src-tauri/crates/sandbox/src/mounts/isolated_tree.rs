//! Creates mount trees in a separate mount namespace.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream},
};

use crate::{
    fd_passing,
    mount_plan::MountPlan,
    sys::process::{enter_private_mount_namespace, try_run_in_fork},
};

/// Applies `plan` in a child's mount namespace, then creates a tree there with `make`. The namespace disappears with
/// the child. The caller must be single-threaded.
pub(super) fn build_isolated_tree(
    plan: &MountPlan,
    make: impl FnOnce() -> io::Result<OwnedFd>,
) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    try_run_in_fork(|| {
        enter_private_mount_namespace()?;
        plan.apply()?;
        fd_passing::send(&theirs, make()?)
    })?;
    fd_passing::receive(&ours)
}
