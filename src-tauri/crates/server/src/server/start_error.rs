//! Reasons a server cannot be started.

use super::control::SupervisorError;
use ironcurtain_autostart::WatchError;
use ironcurtain_config::home::HomeError;
use ironcurtain_containment::{ProgramError, QuoteError, SrtSettingsError, Unavailable, ViewError};
use ironcurtain_egress::RuleError;
use ironcurtain_mcp::remote::RemoteError;
use ironcurtain_packages::PackageError;
use ironcurtain_sandbox::SandboxLaunchError;
use ironcurtain_secrets::FillError;
use ironcurtain_server_identity::IdentityError;
use std::io;
use std::path::PathBuf;
use tokio::task::JoinError;

/// Reason a server cannot be contained.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ContainmentError {
    /// This machine cannot create sandboxes.
    #[error("{0}")]
    Unavailable(#[from] Unavailable),
    /// This machine cannot create the sandbox in which the user is asked about each file.
    #[error("`access` is `ask`, which requires a sandbox, and this machine cannot create one")]
    AsksUncontained,
    /// The `srt` sandbox cannot ask about files.
    #[error("`access` is `ask`, which `sandboxBackend` `srt` does not support")]
    AsksInSrt,
    /// The user's organization does not let the server start.
    #[error("{0}")]
    Managed(String),
    /// A host pattern in the server's entry is invalid.
    #[error("`sandbox.network`: {0}")]
    Network(#[from] RuleError),
}

/// Reason a server cannot be started. The messages continue "the server `x` is not running: …".
#[derive(Debug, thiserror::Error)]
pub enum ServerStartError {
    /// The server cannot be contained.
    #[error(transparent)]
    Containment(#[from] ContainmentError),
    /// The server's package is not installed or was modified.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The server's identity cannot be determined, or data under its name belongs to another server.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The server's program does not exist or must not be started.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The server's entry requests access to a path that must not be opened.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The server's writable folders cannot be watched for autostart files.
    #[error(transparent)]
    WatchOptions(#[from] WatchError),
    /// The server's sandbox cannot be launched.
    #[error(transparent)]
    Launch(#[from] SandboxLaunchError),
    /// The server's supervisor failed to create the sandbox.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// An environment variable or header refers to a secret that is not available.
    #[error(transparent)]
    Secret(#[from] FillError),
    /// The connection to the remote server failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The server is remote, but the caller supports local servers only.
    #[error("it is a remote server, but the caller provided no connection")]
    NoTransport,
    /// A directory for the server cannot be created.
    #[error(transparent)]
    Directory(#[from] HomeError),
    /// The settings for the server's `srt` sandbox cannot be written.
    #[error(transparent)]
    SrtSettings(#[from] SrtSettingsError),
    /// The command line for `srt` cannot be quoted.
    #[error(transparent)]
    CommandLine(#[from] QuoteError),
    /// The operating system could not start the program.
    #[error("failed to start `{program}`: {source}")]
    Spawn {
        /// Path of the program.
        program: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// The path is not valid UTF-8.
    #[error("the path `{0}` is not valid UTF-8")]
    NotUtf8(PathBuf),
    /// The server's streams or its network listener cannot be used.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The thread that was starting the server panicked.
    #[error(transparent)]
    Thread(#[from] JoinError),
}
