//! The `ironcurtain-sandbox` program: supervisor of one sandbox, and by way of another the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    ironcurtain_sandbox::program(std::env::args().skip(1))
}
