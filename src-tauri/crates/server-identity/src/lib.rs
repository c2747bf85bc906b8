//! Identity of a server: its name, its arguments, and its program or address.
//!
//! - Permanent grants, the data folder, annotations and secrets are stored under a server's name but belong to its
//!   identity. A different program with the same name gets none of them, and does not start until the user decides.
//! - Only [`ServerIdentity::of`] computes identities; `grants::Bindings` stores them.
//! - A file that only root can change is identified by its path, so system updates do not change identities.

mod existing;
mod files;
mod program;
mod stored_state;
mod system;

pub use existing::bind_existing;
pub use files::Digests;
pub use program::{FileIdentity, ProgramFile, ProgramIdentity};
pub use stored_state::StoredServerState;

use files::Stamp;
use ironcurtain_config::Server;
use ironcurtain_containment::ProgramError;
use ironcurtain_grants::StoreError;
use ironcurtain_packages::PackageIdentity;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Identity of a server. [`ServerIdentity::is_same`] checks whether two identities mean the same server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerIdentity {
    /// Name of the server.
    pub name: String,
    /// SHA-256 of the configured arguments, which may contain secrets.
    pub args: String,
    /// Program or address of the server.
    pub program: ProgramIdentity,
}

/// Identity of a server, and stamps of the files from which it was computed.
#[derive(Debug)]
pub struct FoundIdentity {
    /// Identity of the server.
    pub identity: ServerIdentity,
    files: Vec<(PathBuf, Stamp)>,
}

/// Reason a server could not be identified or must not start.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The program was not found.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// One of the program's files could not be read.
    #[error("failed to read the program file `{path}`: {source}")]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// One of the program's files changed while the server was starting.
    #[error("`{0}` changed while the server was starting; restart the server")]
    ChangedDuringStart(PathBuf),
    /// The stored identities could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A different program had this name before, and the user has not decided yet.
    #[error(transparent)]
    Suspended(#[from] IdentitySuspension),
    /// The thread that reads the files panicked.
    #[error(transparent)]
    Thread(#[from] tokio::task::JoinError),
}

/// The state under a name is suspended because a different program now has that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server `{server}` is not the program that you allowed before: {change}. Suspended: {kept}. Keep them for the new program or start afresh, with `ironcurtain servers identity {server}` or in the window under Servers"
)]
pub struct IdentitySuspension {
    /// Name of the server.
    pub server: String,
    /// Description of the difference between the programs, for the user.
    pub change: String,
    /// Description of the suspended state, for the user.
    pub kept: String,
}

impl ServerIdentity {
    /// Computes a server's identity from its entry and the files on disk. Blocking.
    ///
    /// `package` is the installed package that the server runs from, or `None`.
    ///
    /// # Errors
    /// Returns an [`IdentityError`] if the program does not exist or cannot be read.
    pub fn of(
        server: &Server,
        package: Option<&PackageIdentity>,
        ours: &Path,
        digests: &Digests,
    ) -> Result<FoundIdentity, IdentityError> {
        let (program, files) = match (&server.remote, package) {
            (Some(remote), _) => (ProgramIdentity::address(remote), Vec::new()),
            (None, Some(package)) => (ProgramIdentity::package(package), Vec::new()),
            (None, None) => program::files(server, ours, digests)?,
        };
        Ok(FoundIdentity { identity: Self::entry(server, program), files })
    }

    /// Creates the identity of an entry whose program is already identified.
    fn entry(server: &Server, program: ProgramIdentity) -> Self {
        let args = files::sha256(&serde_json::json!(server.args).to_string());
        Self { name: server.name.clone(), args, program }
    }

    /// Returns `true` if both identities mean the same server.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.change_to(other).is_none()
    }

    /// Describes how `other` differs from this identity. Returns `None` if both mean the same server.
    #[must_use]
    pub(crate) fn change_to(&self, other: &Self) -> Option<String> {
        if self.name != other.name {
            return Some(format!("it was named `{}`", self.name));
        }
        if self.args != other.args {
            return Some("its arguments changed".to_owned());
        }
        self.program.change_to(&other.program)
    }

    /// Describes how this identity differs from the name's stored owner. Returns `None` if both mean the same server.
    #[must_use]
    pub fn change_from(&self, owner: Option<&str>) -> Option<String> {
        match owner.and_then(Self::read) {
            Some(owner) => owner.change_to(self),
            None => Some("it is unknown which program had this name before".to_owned()),
        }
    }

    /// Parses a stored identity. Returns `None` if its format is unknown.
    #[must_use]
    pub fn read(stored: &str) -> Option<Self> {
        serde_json::from_str(stored).ok()
    }

    /// Formats the identity for storage.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl FoundIdentity {
    /// Checks that no file has changed since the identity was computed. Blocking.
    ///
    /// # Errors
    /// Returns [`IdentityError::ChangedDuringStart`] with the file that changed.
    pub fn check_unchanged(&self) -> Result<(), IdentityError> {
        match self.files.iter().find(|(path, stamp)| !stamp.is_unchanged(path)) {
            Some((path, _)) => Err(IdentityError::ChangedDuringStart(path.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
