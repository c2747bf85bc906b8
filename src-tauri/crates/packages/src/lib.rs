//! Packages that servers are started from: installed once, at one version, and started without any network.
//!
//! - An entry that names a package runner (`npx`, `uvx`) stays as the person wrote it; a record of ours says what was
//!   installed for it. Without a record nothing is started.
//! - A package is looked at before each start. One that changed is not started.
//! - A folder that a server was started from is locked until that server has ended.
//! - Nothing is installed, changed or removed here.
//!
//! ```no_run
//! use ironcurtain_config::{Servers, home::Home};
//! use ironcurtain_packages::Packages;
//!
//! let home = Home::from_env()?;
//! for server in Servers::load(&home)?.iter() {
//!     println!("{}: {:?}", server.name, Packages::of(&home).state(server));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod record;
mod requested;
mod start;
pub mod tree;

pub use record::{EntryPoint, PackageIdentity, PackageRecord, PackageRecordError, Runtime, system_python};
pub use requested::{Registry, RequestError, RequestedPackage, RunnerCommand, is_version};
pub use start::{FolderLock, PackageError, PackageState, PackagedServer};

use ironcurtain_config::home::Home;
use std::path::PathBuf;

/// The installed packages of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packages {
    /// The folder of all packages.
    pub files: PathBuf,
    /// The folder of their records.
    pub records: PathBuf,
}

impl Packages {
    /// The packages below a person's directories.
    #[must_use]
    pub fn of(home: &Home) -> Self {
        Self { files: home.installs(), records: home.state.join("installs") }
    }
}
