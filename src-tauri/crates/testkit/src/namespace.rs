//! A test in namespaces of its own.
//!
//! - It needs no rights: the test is started again in a user namespace, where it may make what it likes.

use std::env;
use std::process::Command;

/// Set in the second start.
const INSIDE: &str = "IRONCURTAIN_TEST_INSIDE";

/// Returns `true` in the second start.
#[must_use]
pub fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Runs a test of this program again by `unshare`, with these options besides a user namespace, and demands that it passes.
///
/// `test` is its whole name.
///
/// # Panics
/// When it does not pass there.
pub fn run_inside(test: &str, options: &[&str]) {
    let own = env::current_exe().unwrap();
    let own = own.to_str().expect("a plain path");
    run_inside_by(test, options, &[own]);
}

/// As [`run_inside`], by a command that ends in starting this program.
///
/// # Panics
/// When it does not pass there.
pub fn run_inside_by(test: &str, options: &[&str], command: &[&str]) {
    let run = Command::new("unshare")
        .args(["--user", "--map-root-user"])
        .args(options)
        .arg("--")
        .args(command)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare is there");
    let (said, complained) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && said.contains("1 passed"), "{said}\n{complained}");
}
