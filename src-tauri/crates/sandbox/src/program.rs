//! The `ironcurtain-sandbox` program: one word says which of its parts it is to be.

use std::process::ExitCode;

use crate::{enter, supervisor};

/// Runs the program with `args`, its name not among them.
pub fn program(args: impl Iterator<Item = String>) -> ExitCode {
    let args: Vec<String> = args.collect();
    match args.split_first() {
        Some((part, rest)) if part == "--supervise" => supervisor::run(rest),
        Some((part, rest)) if part == "--enter" => enter::run(rest),
        _ => ExitCode::from(2),
    }
}
