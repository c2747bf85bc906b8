//! A server the person trusts with everything: the whole environment, and what its entry sets.

use super::{Hold, Process, Start, bound};
use crate::containment::find_program;
use std::process::Command;

pub(super) async fn start(start: Start<'_>) -> Result<Process, String> {
    let mut command = Command::new(find_program(&start.server.command, &start.programs.dir)?);
    command.args(&start.server.args).envs(&start.server.env).current_dir(start.around.session_dir.as_path());
    bound(command, |hold| Hold::Plain { _hold: hold, package: None }).await
}
