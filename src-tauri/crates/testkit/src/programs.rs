//! The programs under test, which were built beside the test that runs.

use std::env;
use std::path::PathBuf;

/// The directory that this test, example or bench was built into, below which the programs lie.
///
/// # Panics
/// When this program has no directory.
#[must_use]
pub fn built() -> PathBuf {
    let own = env::current_exe().expect("this program has a path");
    own.ancestors().nth(2).expect("it lies in a directory").to_path_buf()
}

/// Returns `true` if the tests run as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
