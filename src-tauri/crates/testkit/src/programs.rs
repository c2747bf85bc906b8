//! Finds the programs under test, which are in the test's build directory.

use std::env;
use std::path::PathBuf;

/// Returns the build directory that contains the running test, example or benchmark, and the other programs.
///
/// # Panics
/// Panics if this program is not in a build directory.
#[must_use]
pub fn built() -> PathBuf {
    let own = env::current_exe().expect("this program has a path");
    own.ancestors().nth(2).expect("the program is in a build directory").to_path_buf()
}

/// Returns `true` if the tests run as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
