//! The `ironcurtain-sandbox` program: supervisor of one sandbox, or command line tool.

use std::process::ExitCode;

fn main() -> ExitCode {
    ironcurtain_sandbox::program(std::env::args().skip(1))
}
