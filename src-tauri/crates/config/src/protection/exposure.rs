//! Report of a file that a server may write.

use ironcurtain_paths::CanonicalPath;
use std::fmt;
use std::path::PathBuf;

/// A file that a server may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposure {
    /// Path of the file as configured.
    pub file: PathBuf,
    /// Real path, or the path of a link that leads to it.
    pub place: CanonicalPath,
    /// Server that may write there.
    pub by: WritableBy,
}

/// A server that may write a path, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WritableBy {
    /// A server with a grant.
    Granted {
        /// Name of the server.
        server: String,
        /// Granted path.
        path: CanonicalPath,
    },
    /// The server of a session whose folder contains the path.
    Session,
    /// A server whose entry allows it.
    Configured {
        /// Name of the server.
        server: String,
        /// Path in its entry.
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
