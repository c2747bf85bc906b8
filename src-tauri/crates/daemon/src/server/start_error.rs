//! Reasons why a server is not started.

use super::control::SupervisorError;
use ironcurtain_autostart::WatchError;
use ironcurtain_config::home::HomeError;
use ironcurtain_containment::{ProgramError, QuoteError, SrtSettingsError, Unavailable, ViewError};
use ironcurtain_egress::RuleError;
use ironcurtain_mcp::remote::RemoteError;
use ironcurtain_packages::PackageError;
use ironcurtain_sandbox::SandboxLaunchError;
use ironcurtain_secrets::UnfilledError;
use ironcurtain_server_identity::IdentityError;
use std::io;
use std::path::PathBuf;
use tokio::task::JoinError;

/// Reason why a server has no containment and is not started.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ContainmentError {
    /// No sandbox can be created on this machine.
    #[error("{0}")]
    Unavailable(#[from] Unavailable),
    /// Its list of hosts is invalid.
    #[error("`sandbox.network`: {0}")]
    Network(#[from] RuleError),
}

/// Reason why a server is not started.
#[derive(Debug, thiserror::Error)]
pub enum ServerStartError {
    /// It has no containment.
    #[error(transparent)]
    Containment(#[from] ContainmentError),
    /// Its package is missing or was modified.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// Its identity is unknown, or data under its name belongs to another server.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Its program does not exist or must not be started.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A path in its entry may not be opened.
    #[error(transparent)]
    View(#[from] ViewError),
    /// Its sandbox cannot be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// Its sandbox cannot be launched.
    #[error(transparent)]
    Launch(#[from] SandboxLaunchError),
    /// Its sandbox failed to start.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// A variable or header needs a secret that is unavailable.
    #[error(transparent)]
    Secret(#[from] UnfilledError),
    /// Connecting to the remote server failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The server is remote, and no connection parameters were given.
    #[error("it is a remote server, and no connection to it is configured here")]
    NoTransport,
    /// Its directory cannot be created.
    #[error(transparent)]
    Directory(#[from] HomeError),
    /// The `srt` settings cannot be written.
    #[error(transparent)]
    SrtSettings(#[from] SrtSettingsError),
    /// The `srt` command line cannot be built.
    #[error(transparent)]
    CommandLine(#[from] QuoteError),
    /// Starting the program failed.
    #[error("failed to start `{program}`: {source}")]
    Spawn {
        /// Path of the program.
        program: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A path is not UTF-8.
    #[error("`{0}` is not UTF-8")]
    NotUtf8(PathBuf),
    /// Using its streams or its listener failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The thread that starts it panicked.
    #[error(transparent)]
    Thread(#[from] JoinError),
}
