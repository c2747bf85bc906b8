//! The `ironcurtain-sandbox-command` program: what `ironcurtain-sandbox` becomes to read settings and plan.

use std::process::ExitCode;

fn main() -> ExitCode {
    ironcurtain_sandbox::command_program(std::env::args().skip(1))
}
