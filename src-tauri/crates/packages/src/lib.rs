//! Packages that servers run from: installed once at a fixed version, and started without network access.
//!
//! - An entry with a package runner (`npx`, `uvx`) stays as the user wrote it; our own record describes the installed package.
//!   A server without a record does not start.
//! - Verifies a package before each start. A changed package does not start.
//! - Locks the folder of a package until the server that runs from it has exited.
//! - Never downloads a package; [`tree`] only closes and removes folders for the installer.

mod record;
mod requested;
mod start;
pub mod tree;

pub use record::{
    EntryPoint, PackageIdentity, PackageRecord, PackageRecordError, Runtime, installed_pythons, system_python,
};
pub use requested::{Registry, RequestError, RequestedPackage, RunnerCommand, is_version};
pub use start::{FolderLock, PackageError, PackageState, PackagedServer};

use ironcurtain_config::home::Home;
use std::path::PathBuf;

/// Installed packages of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packages {
    /// Folder of all packages.
    pub files: PathBuf,
    /// Folder of their records.
    pub records: PathBuf,
}

impl Packages {
    /// Returns the packages in the user's directories.
    #[must_use]
    pub fn of(home: &Home) -> Self {
        Self { files: home.installs(), records: home.state.join("installs") }
    }
}
