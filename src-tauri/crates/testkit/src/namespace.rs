//! Runs a test in its own namespaces.
//!
//! - Needs no privileges: the test program is started again in a user namespace.

use std::env;
use std::process::Command;

/// Variable set in the second run.
const INSIDE: &str = "IRONCURTAIN_TEST_INSIDE";

/// Returns true in the second run.
#[must_use]
pub fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Runs a test of this program again with `unshare`, in a user namespace and with these further options.
///
/// `test` is its full name.
///
/// # Panics
/// The test fails in the second run.
pub fn run_inside(test: &str, options: &[&str]) {
    let own = env::current_exe().unwrap();
    let own = own.to_str().expect("the path is UTF-8");
    run_inside_by(test, options, &[own]);
}

/// Like [`run_inside`], but with a command that finally starts this program.
///
/// # Panics
/// The test fails in the second run.
pub fn run_inside_by(test: &str, options: &[&str], command: &[&str]) {
    let run = Command::new("unshare")
        .args(["--user", "--map-root-user"])
        .args(options)
        .arg("--")
        .args(command)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("`unshare` is installed");
    let (said, complained) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && said.contains("1 passed"), "{said}\n{complained}");
}
