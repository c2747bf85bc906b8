//! The sandboxes of `srt`, the npm package `@anthropic-ai/sandbox-runtime`: finding the program and trying it.
//!
//! - One process of it for each server, each with settings of its own.

use super::command::{Launch, QuoteError, launch};
use super::settings::{ServerFiles, SrtSettings, SrtSettingsError};
use super::{Profile, ProgramError, find_program};
use ironcurtain_config::home::{HomeError, private_dir};
use ironcurtain_sandbox::Availability;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;

/// The command that installs it.
const INSTALL: &str = "npm install -g @anthropic-ai/sandbox-runtime";

/// The command that installs what it needs.
const INSTALL_HELPERS: &str = "sudo apt-get install -y bubblewrap socat ripgrep";

/// The time that a trial may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tries whether it can sandbox; names what is missing when it cannot.
pub async fn check(programs: &Path, trial: &Path) -> Availability {
    let problem = match try_it(programs, trial).await {
        Ok(()) => return Availability { usable: true, missing: vec![], fix_command: None, warnings: vec![] },
        Err(problem) => problem,
    };
    let lacks = |program: &&str| find_program(program, programs).is_err();
    let helpers: Vec<&str> = ["bwrap", "socat", "rg"].into_iter().filter(lacks).collect();
    let (missing, fix) = if lacks(&"srt") {
        ("`srt` is not installed".to_owned(), Some(INSTALL))
    } else if helpers.is_empty() {
        (problem.to_string(), None)
    } else {
        (format!("`srt` needs `{}`", helpers.join("`, `")), Some(INSTALL_HELPERS))
    };
    Availability {
        usable: false,
        missing: vec![missing],
        fix_command: fix.map(str::to_owned),
        warnings: vec![],
    }
}

/// Why a trial made no sandbox.
#[derive(Debug, thiserror::Error)]
enum TrialError {
    /// There is no `srt`, or it must not be started.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Its directories cannot be made.
    #[error(transparent)]
    Directory(#[from] HomeError),
    /// Its settings cannot be written.
    #[error(transparent)]
    Settings(#[from] SrtSettingsError),
    /// Its command line cannot be written.
    #[error(transparent)]
    CommandLine(#[from] QuoteError),
    /// It takes too long.
    #[error("`srt` did not end within {n} s", n = PATIENCE.as_secs())]
    Slow,
    /// It does not start.
    #[error("`srt` cannot be started: {0}")]
    Start(std::io::Error),
    /// It failed, and this is the last line that it said.
    #[error("`srt` made no sandbox: {0}")]
    NoSandbox(String),
}

async fn try_it(programs: &Path, trial: &Path) -> Result<(), TrialError> {
    let srt = find_program("srt", programs)?;
    private_dir(trial)?;
    let files = ServerFiles::of("trial", trial)?;
    SrtSettings::new(&Profile::default(), vec![], &files.cwd, None).write(&files)?;
    let nothing = Launch { command: "true".to_owned(), args: vec![] };
    let line = launch(&srt.to_string_lossy(), &nothing, &files)?;
    let mut command = Command::new(&line.command);
    command.args(&line.args).current_dir(&files.cwd).stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(PATIENCE, command.output());
    let said: Output = ended.await.map_err(|_| TrialError::Slow)?.map_err(TrialError::Start)?;
    if said.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&said.stderr);
    let last = text.trim().lines().last().unwrap_or("it says nothing");
    Err(TrialError::NoSandbox(last.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_makes_no_sandbox_is_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("srt");
        std::fs::write(&program, "#!/bin/sh\necho first >&2; echo no luck >&2; exit 3\n").unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let problem = try_it(dir.path(), &dir.path().join("trial")).await;
        assert_eq!(problem.unwrap_err().to_string(), "`srt` made no sandbox: no luck");
    }
}
