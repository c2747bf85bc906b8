//! Checks that bubblewrap can create sandboxes on this machine, and that they can use FUSE.

use anyhow::{Context, bail};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// FUSE device. On a desktop, every user can open it. In a container, possibly only root can.
const FUSE: &str = "/dev/fuse";

const UBUNTU: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// Makes the FUSE device available and creates an empty sandbox. On failure, the error explains how to fix the problem.
pub(crate) fn must_work() -> anyhow::Result<()> {
    let found = std::fs::metadata(FUSE)
        .with_context(|| format!("failed to find `{FUSE}`; run: sudo modprobe fuse"))?;
    if found.permissions().mode() & 0o666 != 0o666 {
        std::fs::set_permissions(FUSE, Permissions::from_mode(0o666))
            .with_context(|| format!("failed to open `{FUSE}` to every user; run: sudo chmod 666 {FUSE}"))?;
    }
    let options = ["--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"];
    let tried = Command::new("bwrap").args(options).output().context("failed to start bubblewrap")?;
    if tried.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
    let restricted = std::fs::read_to_string(UBUNTU).is_ok_and(|value| value.trim() == "1");
    bail!("bubblewrap failed to create a sandbox: {said}\n{}", advice(restricted))
}

fn advice(restricted_by_apparmor: bool) -> &'static str {
    if restricted_by_apparmor {
        return "this system keeps user namespaces from programs; to allow them until the next start, run: \
                sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0";
    }
    "in a container, start it with user namespaces allowed (Docker: `--privileged`, or \
     `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --cap-add SYS_ADMIN`)"
}
