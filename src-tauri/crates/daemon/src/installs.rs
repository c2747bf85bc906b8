//! Packages that servers come from: installed once, at one version, and started from there without any network.
//!
//! An entry that names a package runner (`npx`, `uvx`) stays as the person wrote it. What is started is what a record of
//! ours says was installed for it.
//!
//! - A package is installed in a sandbox that reaches its registry and writes to a folder of its own; nothing of the
//!   package runs meanwhile.
//! - It is put in its place as a whole, closed for writing, and then recorded with the hash of everything in it. Without a
//!   record there is nothing to start.
//! - It is looked at before each start. What changed is not started.
//! - A folder that a server was started from is not removed before that server has ended.

mod fetch;
mod npm;
mod place;
mod pypi;
mod record;
mod registry;
mod run;
mod start;
mod tree;
mod update;
mod wanted;
mod workshop;

pub use fetch::{Installed, install};
pub use record::{Record, Run, Runtime};
pub use start::{Lease, NotReady, Ready, State};
pub use update::{ToolChange, Update, Updated, look_for_update};
pub use wanted::{Asked, Registry, Wanted};

use crate::config::ConfigError;
use crate::home::{Home, HomeError};
use crate::law::LawError;
use crate::server::inspect::InspectError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Where packages are, and where it is written what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installs {
    files: PathBuf,
    records: PathBuf,
}

impl Installs {
    /// Those of a person.
    #[must_use]
    pub fn of(home: &Home) -> Self {
        Self { files: home.installs(), records: home.state.join("installs") }
    }
}

/// What is needed to install.
#[derive(Debug, Clone)]
pub struct Installer {
    /// Where our files are.
    pub home: Home,
    /// The directory that has `ironcurtain-sandbox`.
    pub programs: PathBuf,
    /// Whether a sandbox may be made by uid 0.
    pub allow_root: bool,
    /// How long each run of a package manager, and each look at a server, may take.
    pub patience: Duration,
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
    /// The home directory cannot be resolved.
    #[error("{0}")]
    Law(#[from] LawError),
    /// There is no such server.
    #[error("no server is named `{name}`; there is `{known}`")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
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
        /// What is wrong with its entry.
        problem: String,
    },
    /// It is to be updated, and is not there.
    #[error("the server `{server}` cannot be updated: {problem}")]
    NotReady {
        /// The server.
        server: String,
        /// Why it is not there.
        problem: NotReady,
    },
    /// Somebody else is installing.
    #[error("another package is being installed right now; try again when that is done")]
    Busy,
    /// The package manager did not do it.
    #[error("`{package}` could not be installed: {problem}")]
    Failed {
        /// The package.
        package: String,
        /// What happened.
        problem: String,
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
    /// Something could not be written down.
    #[error("{0}")]
    Record(String),
}
