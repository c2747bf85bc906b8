//! Starts an unsandboxed server. It receives the daemon's environment and the variables in its entry.
//!
//! - The program must belong to root or this user and must not be writable by others, because no sandbox limits the
//!   damage that a manipulated program can do.

use super::{Process, ProcessGuard, StartOptions, spawn};
use crate::server::start_error::ServerStartError;
use ironcurtain_containment::check_trusted;
use std::process::Command;

pub(super) async fn start(start: StartOptions<'_>) -> Result<Process, ServerStartError> {
    let program = start.program()?;
    // Check and start the program by path. Most programs are scripts, which their interpreter opens by path anyway.
    check_trusted(&program)?;
    let mut command = Command::new(program);
    command
        .args(&start.server.args)
        .envs(&start.server.env)
        .current_dir(start.sandbox_context.session_dir.as_path());
    spawn(command, |hold| ProcessGuard::Plain { _hold: hold, package: None }).await
}
