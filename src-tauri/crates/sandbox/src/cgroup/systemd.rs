//! Requests a scope from systemd's user manager, once per process.
//!
//! - Uses `busctl`, which is part of systemd, because a D-Bus client would be far more code for a single request.

use ironcurtain_paths::SYSTEM_PATH;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Maximum time to wait for systemd to move this process into the scope. Systemd replies before it does so.
const TIMEOUT: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(2);

/// Requests a scope, waits until this process is in it, and returns its control group, or `None` on failure.
pub(super) fn request_scope(before: &Path, now: impl Fn() -> Option<PathBuf>) -> Option<PathBuf> {
    // The user manager exists only on systems that systemd has booted.
    fs::symlink_metadata("/run/systemd/system").ok()?;
    let status = Command::new("busctl")
        .args(busctl_arguments(std::process::id()))
        .env("PATH", SYSTEM_PATH)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return None;
    }
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        if let Some(now) = now().filter(|now| now != before) {
            return Some(now);
        }
        thread::sleep(STEP);
    }
    None
}

fn busctl_arguments(pid: u32) -> Vec<String> {
    let scope = format!("ironcurtain-{pid}.scope");
    let manager =
        ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];
    let properties =
        ["PIDs", "au", "1", &pid.to_string(), "Delegate", "b", "true", "Description", "s", "IronCurtain"];
    let words = ["--user", "--quiet", "--timeout=1", "call"].into_iter().chain(manager);
    let words =
        words.chain(["StartTransientUnit", "ssa(sv)a(sa(sv))", &scope, "fail", "3"]).chain(properties);
    words.chain(["0"]).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busctl_arguments_request_a_scope() {
        let expected = "--user --quiet --timeout=1 call org.freedesktop.systemd1 /org/freedesktop/systemd1 \
            org.freedesktop.systemd1.Manager StartTransientUnit ssa(sv)a(sa(sv)) ironcurtain-7.scope fail 3 \
            PIDs au 1 7 Delegate b true Description s IronCurtain 0";
        assert_eq!(busctl_arguments(7).join(" "), expected);
    }
}
