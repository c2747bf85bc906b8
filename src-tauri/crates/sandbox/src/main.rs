//! The `ironcurtain-sandbox` program: supervisor of one sandbox, and a check of whether this machine can have one.

use std::process::ExitCode;

fn main() -> ExitCode {
    ironcurtain_sandbox::program(std::env::args().skip(1))
}
