//! Finds the programs under test, which are built into the same directory as the test.

use std::env;
use std::path::PathBuf;

/// Returns the build directory of this test, example or benchmark, which also contains the programs.
///
/// # Panics
/// Panics if the path of this program has no such directory.
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
