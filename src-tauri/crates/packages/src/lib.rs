//! Server packages: each is installed once at a fixed version, then started without network access.
//!
//! - An entry with a package runner (`npx`, `uvx`) is left as the user wrote it, and a [`PackageRecord`] describes the
//!   installed package. A server without a record does not start.
//! - A package is verified before each start. A changed package does not start.
//! - The package's folder is locked until the server has exited.
//! - This crate never downloads packages. The installer does, and uses [`tree`] to make folders read-only and remove
//!   them.

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
    pub fn in_home(home: &Home) -> Self {
        Self { files: home.installs(), records: home.state.join("installs") }
    }
}
