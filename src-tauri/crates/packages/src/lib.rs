//! Server packages: each is installed once at a fixed version, then started without network access.
//!
//! - An entry with a package runner (`npx`, `uvx`) stays as the user wrote it; a [`PackageRecord`] describes
//!   the installed package. A server without a record does not start.
//! - Verifies a package before each start. A changed package does not start.
//! - Locks the package's folder until the server has exited.
//! - Never downloads a package; the installer does, and uses [`tree`] to make folders read-only and to remove them.

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

/// Locations of the user's installed packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packages {
    /// Folder that contains one folder per installed package.
    pub files: PathBuf,
    /// Folder of the package records.
    pub records: PathBuf,
}

impl Packages {
    /// Returns the package locations in the user's home directory.
    #[must_use]
    pub fn of(home: &Home) -> Self {
        Self { files: home.installs(), records: home.state.join("installs") }
    }
}
