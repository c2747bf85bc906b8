//! Checks that bubblewrap can create sandboxes on this machine, and that they can use FUSE and TUN devices.

use anyhow::{Context, bail};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Devices that sandboxes need, and the kernel modules that provide them. On a desktop, every user can open these
/// devices. In a container, possibly only root can.
const DEVICES: [(&str, &str); 2] = [("/dev/fuse", "fuse"), ("/dev/net/tun", "tun")];

const UBUNTU: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// Makes the devices available and creates an empty sandbox. On failure, the error explains how to fix the problem.
pub(crate) fn must_work() -> anyhow::Result<()> {
    for (device, module) in DEVICES {
        let found = std::fs::metadata(device)
            .with_context(|| format!("failed to find `{device}`; run: sudo modprobe {module}"))?;
        if found.permissions().mode() & 0o666 != 0o666 {
            std::fs::set_permissions(device, Permissions::from_mode(0o666)).with_context(|| {
                format!("failed to open `{device}` to every user; run: sudo chmod 666 {device}")
            })?;
        }
    }
    let options = ["--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"];
    let tried = Command::new("bwrap").args(options).output().context("failed to start bubblewrap")?;
    if tried.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
    let restricted = std::fs::read_to_string(UBUNTU).is_ok_and(|value| value.trim() == "1");
    bail!("bubblewrap failed to create a sandbox: {stderr}\n{}", advice(restricted))
}

fn advice(restricted_by_apparmor: bool) -> &'static str {
    if restricted_by_apparmor {
        return "this system keeps user namespaces from programs; to allow them until the next start, run: \
                sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0";
    }
    "in a container, start it with user namespaces allowed (Docker: `--privileged`, or \
     `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --cap-add SYS_ADMIN`)"
}
