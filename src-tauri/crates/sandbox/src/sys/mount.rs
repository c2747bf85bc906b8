//! Mount attributes, and the user namespace that owns a namespace.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
};

/// Changes to a mount's attributes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) set: u64,
    pub(crate) clear: u64,
    pub(crate) propagation: u64,
    pub(crate) recursive: bool,
}

/// Changes the attributes of the mount whose root is `tree` and, if requested, of its submounts.
pub(crate) fn set_attributes(tree: impl AsFd, change: Attributes) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: change.set,
        attr_clr: change.clear,
        propagation: change.propagation,
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | if change.recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the descriptor is open for the length of the call; the path is a constant C string; `attributes` is
    // initialised, lives until the call returns, and its true size is passed. The kernel only reads it.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the user namespace that owns `namespace`.
pub(crate) fn owning_user_namespace(namespace: impl AsFd) -> io::Result<OwnedFd> {
    const NS_GET_USERNS: libc::Ioctl = 0xb701;
    // SAFETY: the descriptor is open for the length of the call, and this request takes no argument.
    let number = unsafe { libc::ioctl(namespace.as_fd().as_raw_fd(), NS_GET_USERNS) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor for us, close-on-exec, and no other code knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
