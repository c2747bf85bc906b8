//! Installs server packages at a fixed version so that their servers start without network access.
//!
//! An entry that uses a package runner (`npx`, `uvx`) is not changed. A separate record determines which installed
//! package is started for it.
//!
//! - The package manager runs in a sandbox. It can connect only to its registry and write only to a separate folder.
//!   None of the package's code runs.
//! - The installed folder is moved into place atomically, made read-only and recorded with a hash of its contents. A
//!   server whose package has no record cannot start.
//! - A folder is not removed while a server that was started from it is running.

mod build_error;
mod build_sandbox;
mod fetch;
mod npm;
mod pypi;
mod registry;
mod sandboxed_run;
mod store;
mod update;

pub use build_error::BuildError;
pub use fetch::{Installed, install, install_from, is_packaged, sweep};
pub use update::{ToolChange, Update, UpdateCheck, check_for_update};

use crate::inspect::InspectError;
use crate::named_server::UnknownServer;
use crate::servers_file::ServerChangeError;
use ironcurtain_config::home::{Home, HomeError, UnresolvedPath};
use ironcurtain_config::{ConfigError, SnapshotError};
use ironcurtain_grants::StoreError;
use ironcurtain_packages::PackageError;
use ironcurtain_secrets::SecretStore;
use ironcurtain_server_identity::IdentityError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Settings for installing packages.
#[derive(Debug, Clone)]
pub struct Installer {
    /// IronCurtain's directories.
    pub home: Home,
    /// Directory that contains `ironcurtain-sandbox`.
    pub programs: PathBuf,
    /// `true` to create sandboxes even as root.
    pub allow_root: bool,
    /// Maximum time for each run of a package manager and for each inspection of a server.
    pub timeout: Duration,
    /// Store of the secrets that server entries can reference.
    pub secrets: SecretStore,
    /// Called before waiting for another server's installation to finish, with the name of that server. If `None`,
    /// the installation fails instead of waiting.
    pub on_wait: Option<fn(&str)>,
}

/// Error from installing or updating a package.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// IronCurtain's directories could not be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The configuration is invalid.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The home directory or one of IronCurtain's directories could not be resolved.
    #[error(transparent)]
    Path(#[from] UnresolvedPath),
    /// The organization's settings or rules are invalid.
    #[error(transparent)]
    Managed(#[from] SnapshotError),
    /// The server's program could not be identified.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The state stored under the server's name could not be transferred to the new version.
    #[error(
        "the new version is installed, but the server's grants and data could not be transferred to it: {0}"
    )]
    StateTransfer(#[from] StoreError),
    /// The server does not exist.
    #[error(transparent)]
    Unknown(#[from] UnknownServer),
    /// The server's entry does not start a package runner.
    #[error("the server `{0}` is not started by `npx` or `uvx`, so there is nothing to install")]
    NoPackage(String),
    /// The server's entry is invalid.
    #[error("failed to install the server `{server}`: {problem}")]
    InvalidEntry {
        /// Name of the server.
        server: String,
        /// Problem with the server's entry.
        problem: String,
    },
    /// The package to update is not installed or cannot be used.
    #[error("failed to update the server `{server}`: {problem}")]
    PackageUnusable {
        /// Name of the server.
        server: String,
        /// Problem with the installed package.
        problem: PackageError,
    },
    /// Another installation or update holds the lock.
    #[error("another installation or update (`{0}`) has not finished; try again afterwards")]
    Locked(String),
    /// The package could not be installed.
    #[error("failed to install `{package}`: {problem}")]
    Failed {
        /// Name of the package.
        package: String,
        /// Cause of the failure.
        problem: BuildError,
    },
    /// The tools of a package version could not be listed.
    #[error("failed to inspect version {version}: {problem}")]
    Inspect {
        /// Version of the package.
        version: String,
        /// Cause of the failure.
        problem: Box<InspectError>,
    },
    /// A package folder could not be used.
    #[error("failed to access `{path}`: {source}")]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("failed to write `{file}`: {source}")]
    Write {
        /// Path of the file.
        file: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// The servers file changed after it was read.
    #[error("`{0}` has changed since it was read; try again")]
    ServersChanged(PathBuf),
    /// The old or new servers file is invalid.
    #[error(transparent)]
    Servers(#[from] ServerChangeError),
}
