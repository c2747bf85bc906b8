//! Starts an unsandboxed server, with the whole environment and the variables of its entry.
//!
//! - Its program must belong to root or this user and be writable by nobody else, because no sandbox limits a manipulated
//!   program.

use super::{Process, ProcessHold, Start, bound};
use crate::server::start_error::ServerStartError;
use ironcurtain_containment::trusted;
use std::process::Command;

pub(super) async fn start(start: Start<'_>) -> Result<Process, ServerStartError> {
    let program = start.program()?;
    // Checked and started by path: most are scripts, which their interpreter opens by path anyway.
    trusted(&program)?;
    let mut command = Command::new(program);
    command.args(&start.server.args).envs(&start.server.env).current_dir(start.around.session_dir.as_path());
    bound(command, |hold| ProcessHold::Plain { _hold: hold, package: None }).await
}
