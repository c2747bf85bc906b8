//! Errors from building a package.

use ironcurtain_containment::{ProgramError, ViewError};
use ironcurtain_egress::RuleError;
use ironcurtain_sandbox::SandboxLaunchError;
use ironcurtain_server::SupervisorError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinError;

/// Error from building a package.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The package manager is not installed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The sandbox's files could not be set up.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The sandbox could not be launched.
    #[error(transparent)]
    Launch(#[from] SandboxLaunchError),
    /// The sandbox did not start.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// The sandbox exited before it reported the program's exit status.
    #[error("the sandbox exited without reporting an error")]
    NoStatus,
    /// The program did not exit in time.
    #[error("timed out after {n} s", n = .0.as_secs())]
    Timeout(Duration),
    /// The program exited with a failing status.
    #[error("it exited with status {status}{refused}; {output}")]
    Failed {
        /// Exit status of the program.
        status: i32,
        /// Part of the message that lists the refused connections.
        refused: String,
        /// Last lines of the program's output.
        output: String,
    },
    /// Every version of the package requires a newer Python.
    #[error("it needs Python {needed} or newer; this computer has {installed}")]
    OldPython {
        /// Minimum required version.
        needed: String,
        /// Version of the system's Python.
        installed: String,
    },
    /// The registry has the package only as source code, not as a wheel.
    #[error(
        "pip found no wheels for `{0}`; IronCurtain does not install from source code, because building it would run its code; try another version, or install it yourself and add the path of its program"
    )]
    NoWheel(String),
    /// The proxy stopped.
    #[error("the proxy stopped: {0}")]
    ProxyStopped(io::Error),
    /// A configured registry is invalid.
    #[error("invalid registry in the configuration: {0}")]
    Registry(#[from] RuleError),
    /// The package manager's configuration could not be read.
    #[error("{0}")]
    Configuration(String),
    /// A file could not be read or parsed.
    #[error("`{path}`: {source}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Operating system or parser error.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("failed to write `{path}`: {source}")]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// The package manager's report could not be parsed.
    #[error("failed to parse the report of {manager}: {problem}")]
    Report {
        /// Name of the package manager.
        manager: &'static str,
        /// Parser error.
        problem: String,
    },
    /// The package manager did not install the package.
    #[error("npm did not install `{0}`")]
    NotInstalled(String),
    /// The package contains no suitable program.
    #[error("{0}")]
    NoProgram(String),
    /// The program is not a script for the expected interpreter.
    #[error("`{path}` cannot be run: {problem}")]
    NotRunnable {
        /// Path of the program.
        path: PathBuf,
        /// Reason for the failure.
        problem: String,
    },
    /// A path is not valid UTF-8.
    #[error("`{0}` is not valid UTF-8")]
    NotUtf8(PathBuf),
    /// The built package could not be moved to its final folder.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A background thread panicked.
    #[error(transparent)]
    Thread(#[from] JoinError),
}

/// Converts a path to a string.
pub(super) fn utf8(path: &Path) -> Result<String, BuildError> {
    path.to_str().map(str::to_owned).ok_or_else(|| BuildError::NotUtf8(path.to_path_buf()))
}
