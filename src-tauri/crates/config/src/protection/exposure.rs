//! A file that a server may write.

use ironcurtain_paths::CanonicalPath;
use std::fmt;
use std::path::PathBuf;

/// A file, and who may write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposure {
    /// The file, as it is named.
    pub file: PathBuf,
    /// Its real path, or that of a link on the way there.
    pub place: CanonicalPath,
    /// Who may write there.
    pub by: WritableBy,
}

/// Who may write at a place, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WritableBy {
    /// A server, by a grant.
    Granted {
        /// Its name.
        server: String,
        /// The granted path.
        path: CanonicalPath,
    },
    /// A server of some session: the place is in its folder.
    Session,
    /// A server, by its entry.
    Configured {
        /// Its name.
        server: String,
        /// The path in its entry.
        entry: String,
    },
}

impl fmt::Display for WritableBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted { server, path } => {
                write!(f, "the server `{server}`, by what you granted for `{path}`,")
            }
            Self::Session => f.write_str("a server of a session"),
            Self::Configured { server, entry } => {
                write!(f, "the server `{server}`, by `{entry}` in its `allowWrite`,")
            }
        }
    }
}
