//! Why a package is not built.

use ironcurtain_daemon::containment::{ProgramError, ViewError};
use ironcurtain_daemon::server::SupervisorError;
use ironcurtain_egress::RuleError;
use ironcurtain_sandbox::SandboxLaunchError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinError;

/// Why a package is not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The package manager is not there.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The sandbox cannot show what it should.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The sandbox cannot be launched.
    #[error(transparent)]
    Launch(#[from] SandboxLaunchError),
    /// The sandbox did not come up.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// The sandbox was gone before it said how its program ended.
    #[error("its sandbox ended without a word")]
    NoStatus,
    /// The program takes too long.
    #[error("it did not end within {n} s", n = .0.as_secs())]
    Slow(Duration),
    /// The program failed.
    #[error("it ended with status {status}{refused}; {said}")]
    Ended {
        /// Its exit status.
        status: i32,
        /// The connections it was refused, in words.
        refused: String,
        /// The last of its output.
        said: String,
    },
    /// Every version of the package needs a newer Python.
    #[error("it needs Python {needed} or newer; this computer has {here}")]
    OldPython {
        /// The version that it needs.
        needed: String,
        /// The system's version.
        here: String,
    },
    /// There are no wheels of it.
    #[error(
        "pip found no wheels for `{0}`, only source code or nothing; IronCurtain runs nothing while installing, and building source code would"
    )]
    NoWheel(String),
    /// The proxy is gone.
    #[error("its proxy ended: {0}")]
    ProxyEnded(io::Error),
    /// A registry that is configured cannot be one.
    #[error("the configured registry is refused: {0}")]
    Registry(#[from] RuleError),
    /// The package manager does not tell its configuration.
    #[error("{0}")]
    Configuration(String),
    /// A file cannot be read, or is not understood.
    #[error("`{path}`: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's answer, or what is not understood.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("`{path}` cannot be written: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The package manager's report is not understood.
    #[error("what {manager} reports is not understood: {problem}")]
    Report {
        /// The package manager.
        manager: &'static str,
        /// The part that is not understood.
        problem: String,
    },
    /// The package manager installed other things.
    #[error("npm did not install `{0}`")]
    NotInstalled(String),
    /// The package has no program that could be started.
    #[error("{0}")]
    NoProgram(String),
    /// The program cannot be run by its interpreter.
    #[error("`{path}` cannot be run: {problem}")]
    NotRunnable {
        /// The program.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// A path cannot be handed over.
    #[error("`{0}` is not UTF-8")]
    NotUtf8(PathBuf),
    /// The built package cannot be moved to its final folder.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The thread that does it is gone.
    #[error(transparent)]
    Thread(#[from] JoinError),
}

/// The path as text.
pub(super) fn text(path: &Path) -> Result<String, BuildError> {
    path.to_str().map(str::to_owned).ok_or_else(|| BuildError::NotUtf8(path.to_path_buf()))
}
