//! Reruns a test in new Linux namespaces.
//!
//! - Needs no privileges, because the test program runs in a user namespace.

use std::env;
use std::process::Command;

/// Environment variable that marks the second run.
const INSIDE: &str = "IRONCURTAIN_TEST_INSIDE";

/// Returns `true` in the second run, inside the namespaces.
#[must_use]
pub fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Reruns a test of this program under `unshare` in a user namespace, with additional `unshare` options.
///
/// `test` is the full name of the test.
///
/// # Panics
/// Panics if the test fails in the second run.
pub fn run_inside(test: &str, options: &[&str]) {
    let own = env::current_exe().unwrap();
    let own = own.to_str().expect("the path is UTF-8");
    run_inside_through(test, options, &[own]);
}

/// Like [`run_inside`], but starts this program through another command.
///
/// # Panics
/// Panics if the test fails in the second run.
pub fn run_inside_through(test: &str, options: &[&str], command: &[&str]) {
    let run = Command::new("unshare")
        .args(["--user", "--map-root-user"])
        .args(options)
        .arg("--")
        .args(command)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("`unshare` is installed");
    let (stdout, stderr) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && stdout.contains("1 passed"), "{stdout}\n{stderr}");
}
