//! The supervisor's own namespaces, from which it still sees the host's tree.
//!
//! - One user is mapped, to itself; the privileges gained are over these namespaces only.
//! - The supervisor stays in the host's pid namespace, and so do its children but for bubblewrap, which is the first process of
//!   a new one.

use std::{fs, io};

use rustix::{
    mount::{MountPropagationFlags, mount_change},
    process::{Gid, Pid, Uid},
    thread::{UnshareFlags, set_no_new_privs},
};

use crate::sys;

pub(super) fn enter(parent: Option<Pid>, uid: Uid, gid: Gid) -> io::Result<()> {
    set_no_new_privs(true)?;
    // A working directory somewhere in the host's tree would keep it from being unmounted.
    std::env::set_current_dir("/")?;
    sys::process::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    let (uid, gid) = (uid.as_raw(), gid.as_raw());
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    // The kernel forgets the death signal when credentials change.
    if let Some(parent) = parent {
        sys::process::bind_to_parent(parent)?;
    }
    // Later mounts of the host are to be seen here; ours are not to be seen there.
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM)?;
    Ok(())
}
