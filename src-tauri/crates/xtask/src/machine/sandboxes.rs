//! Checks that bubblewrap can create sandboxes on this machine.

use anyhow::{Context, bail};
use std::process::Command;

const UBUNTU: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// Creates an empty sandbox; the error explains what prevents it.
pub(crate) fn must_work() -> anyhow::Result<()> {
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
