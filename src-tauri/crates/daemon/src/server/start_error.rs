//! Why a server is not started.

use super::control::SupervisorError;
use crate::autostart::WatchError;
use crate::containment::{ProgramError, QuoteError, SrtSettingsError, Unavailable, ViewError};
use crate::packages::PackageError;
use crate::server_identity::IdentityError;
use ironcurtain_config::home::HomeError;
use ironcurtain_egress::RuleError;
use ironcurtain_mcp::remote::RemoteError;
use ironcurtain_sandbox::SandboxLaunchError;
use ironcurtain_secrets::UnfilledError;
use std::io;
use std::path::PathBuf;
use tokio::task::JoinError;

/// Why a server has no containment, and so is not started.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ContainmentError {
    /// No sandbox can be made here.
    #[error("{0}")]
    Unavailable(#[from] Unavailable),
    /// Its list of hosts is not understood.
    #[error("`sandbox.network`: {0}")]
    Network(#[from] RuleError),
}

/// Why a server is not started.
#[derive(Debug, thiserror::Error)]
pub enum ServerStartError {
    /// It has no containment.
    #[error(transparent)]
    Containment(#[from] ContainmentError),
    /// Its package is not there as it was installed.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// It cannot be identified, or is another one than what is under its name belongs to.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Its program cannot be found, or must not be started.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A path of its entry is not opened to it.
    #[error(transparent)]
    View(#[from] ViewError),
    /// Its sandbox cannot be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// Its sandbox cannot be launched.
    #[error(transparent)]
    Launch(#[from] SandboxLaunchError),
    /// Its sandbox did not come up.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// A variable or a header has a secret that cannot be had.
    #[error(transparent)]
    Secret(#[from] UnfilledError),
    /// It runs elsewhere, and cannot be connected to.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// Nothing was said of the way to a remote server.
    #[error("it runs elsewhere, and there is no way to it here")]
    NoWay,
    /// Its directory cannot be made.
    #[error(transparent)]
    Directory(#[from] HomeError),
    /// The settings of `srt` cannot be written.
    #[error(transparent)]
    SrtSettings(#[from] SrtSettingsError),
    /// The command line of `srt` cannot be written.
    #[error(transparent)]
    CommandLine(#[from] QuoteError),
    /// The program does not start.
    #[error("`{program}` cannot be started: {source}")]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// A path cannot be handed over.
    #[error("`{0}` is not UTF-8")]
    NotUtf8(PathBuf),
    /// Its streams or its listener cannot be used.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The thread that starts it is gone.
    #[error(transparent)]
    Thread(#[from] JoinError),
}
