//! Namespaces of the supervisor itself, in which the host's file system stays visible.
//!
//! - The user's id is mapped to itself. Privileges that the supervisor gains are limited to these namespaces.
//! - The supervisor and its children stay in the host's pid namespace, except for bubblewrap, which is the init of a
//!   new pid namespace.

use std::{fs, io};

use rustix::{
    mount::{MountPropagationFlags, mount_change},
    process::{Gid, Pid, Uid},
    thread::{UnshareFlags, set_no_new_privs},
};

use crate::sys;

pub(super) fn enter(parent: Option<Pid>, uid: Uid, gid: Gid) -> io::Result<()> {
    set_no_new_privs(true)?;
    // A working directory on one of the host's file systems would prevent unmounting that file system.
    std::env::set_current_dir("/")?;
    sys::process::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    let (uid, gid) = (uid.as_raw(), gid.as_raw());
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    // The kernel clears the parent-death signal when credentials change.
    if let Some(parent) = parent {
        sys::process::bind_to_parent(parent)?;
    }
    // Later mounts on the host propagate here, but mounts made here do not propagate back.
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM)?;
    Ok(())
}
