//! A server the person trusts with everything: the whole environment, and what its entry sets.
//!
//! - Its program belongs to root or to this user, and nobody else can write it: no sandbox holds back what it was made into.

use super::{Process, ProcessHold, Start, bound};
use crate::containment::trusted;
use crate::server::start_error::ServerStartError;
use std::process::Command;

pub(super) async fn start(start: Start<'_>) -> Result<Process, ServerStartError> {
    let program = start.program()?;
    // Looked at, and started by its name: most are scripts, which their interpreter opens by name in any case.
    trusted(&program)?;
    let mut command = Command::new(program);
    command.args(&start.server.args).envs(&start.server.env).current_dir(start.around.session_dir.as_path());
    bound(command, |hold| ProcessHold::Plain { _hold: hold, package: None }).await
}
