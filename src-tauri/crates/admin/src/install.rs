//! Packages that servers come from: installed once, at one version, and started from there without any network.
//!
//! An entry that names a package runner (`npx`, `uvx`) stays as the person wrote it. What is started is what a record of
//! ours says was installed for it.
//!
//! - A package is installed in a sandbox that reaches its registry and writes to a folder of its own; nothing of the
//!   package runs meanwhile.
//! - It is put in its place as a whole, closed for writing, and then recorded with the hash of everything in it. Without a
//!   record there is nothing to start.
//! - A folder that a server was started from is not removed before that server has ended.

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
pub use fetch::{Installed, install, install_among, is_packaged, sweep};
pub use update::{ToolChange, Update, Updated, look_for_update};

use crate::inspect::InspectError;
use crate::named_server::UnknownServer;
use crate::servers_file::ServerChangeError;
use ironcurtain_config::ConfigError;
use ironcurtain_config::home::UnresolvedPath;
use ironcurtain_config::home::{Home, HomeError};
use ironcurtain_daemon::packages::PackageError;
use ironcurtain_daemon::server_identity::IdentityError;
use ironcurtain_grants::StoreError;
use ironcurtain_secrets::SecretStore;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The settings for installing packages.
#[derive(Debug, Clone)]
pub struct Installer {
    /// The directories of IronCurtain.
    pub home: Home,
    /// The directory that has `ironcurtain-sandbox`.
    pub programs: PathBuf,
    /// A sandbox may be made by uid 0.
    pub allow_root: bool,
    /// The time that each run of a package manager, and each look at a server, may take.
    pub patience: Duration,
    /// The secrets that entries of servers may name.
    pub secrets: SecretStore,
    /// Called with the server for which another installation runs, before that is waited for. Without it, nothing is waited for.
    pub waiting: Option<fn(&str)>,
}

/// Why nothing was installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Our directories cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The configuration is refused.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The home directory, or a folder of ours, cannot be resolved.
    #[error(transparent)]
    Path(#[from] UnresolvedPath),
    /// Its program cannot be identified.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The things that are kept under its name cannot be given to the new version.
    #[error("the new version is installed, and what is kept under the server's name is not its yet: {0}")]
    NotCarriedOver(#[from] StoreError),
    /// There is no such server.
    #[error(transparent)]
    Unknown(#[from] UnknownServer),
    /// It does not come from a package.
    #[error(
        "the server `{0}` is started by no package runner (`npx` or `uvx`), so there is nothing to install"
    )]
    NoPackage(String),
    /// Its entry is not understood.
    #[error("the server `{server}` cannot be installed: {problem}")]
    NotUnderstood {
        /// The server.
        server: String,
        /// The error in its entry.
        problem: String,
    },
    /// It is to be updated, and is not there.
    #[error("the server `{server}` cannot be updated: {problem}")]
    NotReady {
        /// The server.
        server: String,
        /// Why it is not there.
        problem: PackageError,
    },
    /// Another installation or update holds the packages.
    #[error("another installation or update (`{0}`) has not finished; try again afterwards")]
    Busy(String),
    /// The package manager did not do it.
    #[error("`{package}` could not be installed: {problem}")]
    Failed {
        /// The package.
        package: String,
        /// The cause.
        problem: BuildError,
    },
    /// It could not be asked for its tools.
    #[error("version {version} could not be looked at: {problem}")]
    Inspect {
        /// The version.
        version: String,
        /// Why not.
        problem: Box<InspectError>,
    },
    /// A folder of packages cannot be used.
    #[error("`{path}` cannot be used: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("`{file}` cannot be written: {source}")]
    Write {
        /// The file.
        file: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// Somebody else wrote the file of servers.
    #[error("`{0}` changed in the meantime; try again")]
    ChangedMeanwhile(PathBuf),
    /// The file of servers is refused, as it is or as it would be.
    #[error(transparent)]
    Servers(#[from] ServerChangeError),
}
