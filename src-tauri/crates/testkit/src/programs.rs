//! Programs under test, which are built next to the running test.

use std::env;
use std::path::PathBuf;

/// Returns the build directory of this test, example or bench, which contains the programs.
///
/// # Panics
/// The path of this program has no such directory.
#[must_use]
pub fn built() -> PathBuf {
    let own = env::current_exe().expect("this program has a path");
    own.ancestors().nth(2).expect("the program is in a build directory").to_path_buf()
}

/// Returns true if the tests run as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
