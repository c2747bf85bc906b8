//! Finds the programs under test, which are in the test's build directory, and runs programs.

use std::env;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

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

/// Runs a program with this standard input, and returns its output. The program may exit without reading the input.
///
/// # Panics
/// Panics if the program cannot be spawned, or if its streams fail.
pub fn output_with_input(command: &mut Command, input: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    match child.stdin.take().unwrap().write_all(input.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written.expect("the program's input is open"),
    }
    child.wait_with_output().expect("the program's output is readable")
}
