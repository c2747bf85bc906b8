//! The identity of a server: its name, its arguments, and the program or the address that they lead to.
//!
//! - Grants that outlive a session, the data folder, annotations and secrets are kept under a server's name and belong to its
//!   identity. Another program under the name gets none of them: it is not started until the user decides.
//! - [`ServerIdentity::of`] is the only place that computes one. It is stored in one table, beside the grants (`grants::Bindings`).
//! - What root alone can change is named by its path, so an update of the operating system changes no identity.
//! - Never starts a server and never decides for the user.
//!
//! ```no_run
//! use ironcurtain_config::{Servers, home::Home};
//! use ironcurtain_server_identity::{Digests, ServerIdentity};
//! use std::path::Path;
//!
//! for server in Servers::load(&Home::from_env()?)?.iter() {
//!     let found = ServerIdentity::of(server, None, Path::new("/usr/lib/ironcurtain"), &Digests::default())?;
//!     println!("{}: {}", found.identity.name, found.identity.program.shown());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod existing;
mod files;
mod kept;
mod program;
mod system;

pub use existing::bind_existing;
pub use files::Digests;
pub use kept::KeptUnderName;
pub use program::{FileIdentity, ProgramFile, ProgramIdentity};

use files::Stamp;
use ironcurtain_config::Server;
use ironcurtain_containment::ProgramError;
use ironcurtain_grants::StoreError;
use ironcurtain_packages::PackageIdentity;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The identity of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerIdentity {
    /// Its name.
    pub name: String,
    /// The SHA-256 of its arguments as its entry has them, which may hold secrets.
    pub args: String,
    /// Its program, or its address.
    pub program: ProgramIdentity,
}

/// An identity, with the state of the files that it was computed from.
#[derive(Debug)]
pub struct FoundIdentity {
    /// The identity.
    pub identity: ServerIdentity,
    files: Vec<(PathBuf, Stamp)>,
}

/// Why a server is not started, or has no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Its program cannot be found.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A file of its program cannot be read.
    #[error("failed to identify the program: `{path}`: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// A file of its program was replaced or written while the server was started.
    #[error("`{0}` changed while the server was started; start it again")]
    ChangedMeanwhile(PathBuf),
    /// The stored identities cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another program has the name.
    #[error(transparent)]
    Suspended(#[from] IdentitySuspension),
    /// The thread that looks at the files ended.
    #[error(transparent)]
    Thread(#[from] tokio::task::JoinError),
}

/// The suspension of what is kept under a server's name, because another program has the name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server `{server}` is not the program that you allowed before: {change}. Suspended: {kept}. Keep them for the new program or start afresh, with `ironcurtain servers identity {server}` or in the window under Servers"
)]
pub struct IdentitySuspension {
    /// The server.
    pub server: String,
    /// The difference, in words.
    pub change: String,
    /// The suspended things, in words.
    pub kept: String,
}

impl ServerIdentity {
    /// The identity of a server, by its entry and by what is on the disk now. `package` is the installed package that it is started
    /// from, if it is. Blocking.
    ///
    /// # Errors
    /// [`IdentityError`], when the program cannot be found or read.
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

    /// The identity of an entry with this program.
    fn entry(server: &Server, program: ProgramIdentity) -> Self {
        let args = files::sha256(&serde_json::json!(server.args).to_string());
        Self { name: server.name.clone(), args, program }
    }

    /// Returns `true` if both are the same server.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.change_to(other).is_none()
    }

    /// The difference of another identity under the same name, in words. Nothing, where they are the same.
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

    /// The difference from the stored owner of what is under the name, in words. Nothing, where it is the same.
    #[must_use]
    pub fn change_from(&self, owner: Option<&str>) -> Option<String> {
        match owner.and_then(Self::read) {
            Some(owner) => owner.change_to(self),
            None => Some("nothing tells which program had this name before".to_owned()),
        }
    }

    /// Reads a stored identity. One that is not understood is nobody's.
    #[must_use]
    pub fn read(stored: &str) -> Option<Self> {
        serde_json::from_str(stored).ok()
    }

    /// The form in which it is stored.
    #[must_use]
    pub fn stored(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl FoundIdentity {
    /// Checks that the files are those that the identity was computed from. Blocking.
    ///
    /// # Errors
    /// [`IdentityError::ChangedMeanwhile`].
    pub fn still(&self) -> Result<(), IdentityError> {
        match self.files.iter().find(|(path, stamp)| !stamp.is_still(path)) {
            Some((path, _)) => Err(IdentityError::ChangedMeanwhile(path.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
