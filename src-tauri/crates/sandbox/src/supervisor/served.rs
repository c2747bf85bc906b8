//! Mounts the view of a run, or of a server whose file accesses require approval, and starts the process that serves
//! it.
//!
//! - INVARIANT: only the serving process holds `/dev/fuse`, so every request fails when that process dies.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    process::{Child, Command, Stdio},
};

use rustix::{
    fs::{Mode, OFlags, open},
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
        fsmount, fsopen,
    },
    process::{Pid, PidfdFlags, getgid, getpid, getuid, pidfd_open},
};

use super::SupervisorStartError;
use crate::sys;

/// Process that serves a view. Dropping this value kills the process.
#[derive(Debug)]
pub(super) struct ServedView {
    child: Child,
    exit_fd: OwnedFd,
    /// Detached mount of the view, or `None` once it was taken.
    mount: Option<OwnedFd>,
}

impl ServedView {
    /// Mounts the view in this process's user namespace and starts the process that serves it. `connection` leads to
    /// the trusted process.
    pub(super) fn start(
        (hidden, points, home): (&[String], &[String], &str),
        connection: Option<OwnedFd>,
    ) -> Result<Self, SupervisorStartError> {
        let missing = || SupervisorStartError::View(io::ErrorKind::NotConnected.into());
        let connection = connection.ok_or_else(missing)?;
        Self::mount_and_serve((hidden, points, home), &connection).map_err(SupervisorStartError::View)
    }

    fn mount_and_serve(
        (hidden, points, home): (&[String], &[String], &str),
        connection: &OwnedFd,
    ) -> io::Result<Self> {
        let device = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| io::Error::other(format!("`/dev/fuse`: {}", io::Error::from(error))))?;
        let mount = mount(&device)?;
        let program = File::open("/proc/self/exe")?;
        let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
        command.arg("--view").arg(getpid().as_raw_nonzero().to_string());
        command.args([device.as_raw_fd().to_string(), connection.as_raw_fd().to_string()]);
        command.arg(serde_json::to_string(hidden)?).arg(serde_json::to_string(points)?).arg(home);
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        sys::process::inherit(&mut command, &[device.as_fd(), connection.as_fd(), program.as_fd()]);
        let child = command.spawn()?;
        let exit_fd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        Ok(Self { child, exit_fd, mount: Some(mount) })
    }

    /// Returns a descriptor that becomes readable when the serving process exits.
    pub(super) fn exit_fd(&self) -> BorrowedFd<'_> {
        self.exit_fd.as_fd()
    }

    /// Takes the detached mount, if it was not taken yet.
    pub(super) fn take_mount(&mut self) -> Option<OwnedFd> {
        self.mount.take()
    }
}

impl Drop for ServedView {
    fn drop(&mut self) {
        // Ignores errors: the process may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates a FUSE mount whose requests arrive on `device`. Returns the detached mount.
fn mount(device: &OwnedFd) -> io::Result<OwnedFd> {
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let options = [
        ("source", "ironcurtain".to_owned()),
        ("fd", device.as_raw_fd().to_string()),
        ("rootmode", "40755".to_owned()),
        ("user_id", getuid().as_raw().to_string()),
        ("group_id", getgid().as_raw().to_string()),
    ];
    for (option, value) in &options {
        fsconfig_set_string(&context, *option, value.as_str())?;
    }
    // The kernel checks file modes, as for files on disk.
    fsconfig_set_flag(&context, "default_permissions")?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}
