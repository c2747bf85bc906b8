//! Starts an unsandboxed server. It receives the daemon's environment and the variables in its entry.
//!
//! - The program must belong to root or this user and must not be writable by others, because no sandbox limits the
//!   damage that a manipulated program can do.

use super::{Process, ProcessHold, Start, bound};
use crate::server::start_error::ServerStartError;
use ironcurtain_containment::trusted;
use std::process::Command;

pub(super) async fn start(start: Start<'_>) -> Result<Process, ServerStartError> {
    let program = start.program()?;
    // Check and start the program by path. Most programs are scripts, which their interpreter opens by path anyway.
    trusted(&program)?;
    let mut command = Command::new(program);
    command.args(&start.server.args).envs(&start.server.env).current_dir(start.around.session_dir.as_path());
    bound(command, |hold| ProcessHold::Plain { _hold: hold, package: None }).await
}
