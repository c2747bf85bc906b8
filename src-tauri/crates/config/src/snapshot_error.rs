//! Errors from loading a policy snapshot.

use crate::ConfigError;
use crate::home::UnresolvedPath;
use crate::protection::Exposure;
use ironcurtain_policy::LoadError;

/// Error from loading a policy snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Reading a file failed.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A file is invalid.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// A server may write to one of the files.
    #[error(transparent)]
    Exposed(#[from] ExposedFile),
    /// The home directory or one of IronCurtain's directories could not be resolved.
    #[error(transparent)]
    Path(#[from] UnresolvedPath),
}

/// Error for a policy or configuration file that a server may write to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is at `{}`, where {} may write; replace the link by the file itself, or remove the server's access",
    .0.file.display(), .0.path, .0.by
)]
pub struct ExposedFile(pub Exposure);
