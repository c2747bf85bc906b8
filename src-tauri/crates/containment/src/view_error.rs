//! Error for a path in a `sandbox` entry.

use ironcurtain_paths::CanonicalPath;

/// Reason a path in an entry is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The path is invalid.
    #[error("`{0}` is not a valid path, so no server can get access to it")]
    InvalidPath(String),
    /// The path is, or is inside, one of IronCurtain's own folders.
    #[error("`{0}` belongs to IronCurtain, so no server can get access to it")]
    OwnFolder(CanonicalPath),
    /// The folder contains a protected path.
    #[error(
        "`{path}` contains the protected `{inside}`, which the `roots` view cannot hide; name folders inside it, or use the `host-read` view"
    )]
    ContainsProtected {
        /// Path in the entry.
        path: CanonicalPath,
        /// Protected path inside it.
        inside: CanonicalPath,
    },
    /// The user's organization denies access to the path, or to a path inside it.
    #[error("your organization's rule `{rule}` denies access to `{path}` or to a path in it")]
    Managed {
        /// Path in the entry.
        path: CanonicalPath,
        /// Name of the rule.
        rule: String,
    },
    /// The folder contains a path that the entry itself hides.
    #[error("`{path}` contains `{inside}`, which the server must not see; name folders inside it")]
    Hidden {
        /// Path in the entry.
        path: String,
        /// Hidden path inside it.
        inside: String,
    },
    /// The path contains or is inside a path that no server may change.
    #[error("`{path}` cannot be writable, because no server may change `{inside}`")]
    ReadOnly {
        /// Path in the entry.
        path: String,
        /// Path that no server may change.
        inside: CanonicalPath,
    },
}
