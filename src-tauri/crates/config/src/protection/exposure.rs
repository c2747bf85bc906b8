//! Configuration files that a server may write to.

use ironcurtain_paths::CanonicalPath;
use std::fmt;
use std::path::PathBuf;

/// A configuration file that a server may write to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposure {
    /// Path of the configuration file, as configured.
    pub file: PathBuf,
    /// Path that the server may write to: the file's canonical path or a symlink that leads to it.
    pub path: CanonicalPath,
    /// Server that may write to the path, and the reason.
    pub by: WritableBy,
}

/// A server that may write to a path, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WritableBy {
    /// A grant gives access to the path.
    Granted {
        /// Name of the server.
        server: String,
        /// Granted path.
        path: CanonicalPath,
    },
    /// The path is in a server's session folder.
    Session,
    /// The server's configuration entry allows writing to the path.
    Configured {
        /// Name of the server.
        server: String,
        /// Path in the configuration entry.
        entry: String,
    },
}

impl fmt::Display for WritableBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted { server, path } => {
                write!(f, "the server `{server}`, through your grant for `{path}`,")
            }
            Self::Session => f.write_str("a server of a session"),
            Self::Configured { server, entry } => {
                write!(f, "the server `{server}`, through `{entry}` in its `allowWrite`,")
            }
        }
    }
}
