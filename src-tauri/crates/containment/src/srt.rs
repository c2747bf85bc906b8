//! Finds `srt` (npm package `@anthropic-ai/sandbox-runtime`) and tests whether it can create a sandbox.
//!
//! - Each server has its own `srt` process with its own settings.

use super::command::{Launch, QuoteError, launch};
use super::settings::{ServerFiles, SrtSettings, SrtSettingsError};
use super::{Profile, ProgramError, find_program};
use ironcurtain_config::home::{HomeError, private_dir};
use ironcurtain_sandbox::Availability;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;

/// Command that installs `srt`.
const INSTALL: &str = "npm install -g @anthropic-ai/sandbox-runtime";

/// Command that installs the programs that `srt` requires.
const INSTALL_HELPERS: &str = "sudo apt-get install -y bubblewrap socat ripgrep";

/// Timeout of the test.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Tests whether `srt` can create a sandbox. `trial` is a directory for the test's files. On failure, the result lists
/// the missing requirements.
pub async fn check(programs: &Path, trial: &Path) -> Availability {
    let problem = match try_sandbox(programs, trial).await {
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

/// Reason the test failed.
#[derive(Debug, thiserror::Error)]
enum TrialError {
    /// `srt` was not found, or is not trusted.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The test directory cannot be created.
    #[error(transparent)]
    Directory(#[from] HomeError),
    /// The settings file could not be written.
    #[error(transparent)]
    Settings(#[from] SrtSettingsError),
    /// The command line could not be quoted.
    #[error(transparent)]
    CommandLine(#[from] QuoteError),
    /// `srt` did not exit within [`TIMEOUT`].
    #[error("`srt` timed out after {n} s", n = TIMEOUT.as_secs())]
    Slow,
    /// Spawning `srt` failed.
    #[error("failed to start `srt`: {0}")]
    Start(std::io::Error),
    /// `srt` exited with an error. Contains the last line of its output.
    #[error("`srt` failed to create a sandbox: {0}")]
    NoSandbox(String),
}

async fn try_sandbox(programs: &Path, trial: &Path) -> Result<(), TrialError> {
    let srt = find_program("srt", programs)?;
    private_dir(trial)?;
    let files = ServerFiles::of("trial", trial)?;
    SrtSettings::new(&Profile::default(), vec![], &files.cwd, None).write(&files)?;
    let nothing = Launch { command: "true".to_owned(), args: vec![] };
    let line = launch(&srt.to_string_lossy(), &nothing, &files)?;
    let mut command = Command::new(&line.command);
    command.args(&line.args).current_dir(&files.cwd).stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(TIMEOUT, command.output());
    let output: Output = ended.await.map_err(|_| TrialError::Slow)?.map_err(TrialError::Start)?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.trim().lines().last().unwrap_or("it printed no error");
    Err(TrialError::NoSandbox(last.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_error_quotes_the_last_line_of_output() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("srt");
        std::fs::write(&program, "#!/bin/sh\necho first >&2; echo no luck >&2; exit 3\n").unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let problem = try_sandbox(dir.path(), &dir.path().join("trial")).await;
        assert_eq!(problem.unwrap_err().to_string(), "`srt` failed to create a sandbox: no luck");
    }
}
