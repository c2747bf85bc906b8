//! Reasons why a bundle is not added.

use super::unpacked::UnpackError;
use ironcurtain_config::ConfigError;
use std::io;

/// Why a bundle is not added.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It is not unpacked.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// Its folder cannot be named.
    #[error("the bundle cannot be unpacked: {0}")]
    Folder(io::Error),
    /// Its description cannot be read.
    #[error("the bundle's `manifest.json` is not understood: {0}")]
    Manifest(#[from] serde_json::Error),
    /// It is no file.
    #[error("the bundle has no `manifest.json`: {0}")]
    NoManifest(io::Error),
    /// It is too long to be looked at.
    #[error("the bundle's `manifest.json` is longer than {} KB, or has more than {} settings", .0 >> 10, .1)]
    LongManifest(u64, usize),
    /// The person did not say what it needs.
    #[error("it needs `--set {name}=...`: {title}{proposal}")]
    Missing {
        /// The setting.
        name: String,
        /// Its meaning, in its maker's words.
        title: String,
        /// The maker's own proposal.
        proposal: String,
    },
    /// It has no such setting.
    #[error("the bundle has no setting `{0}`; it has `{1}`")]
    Unknown(String, String),
    /// It takes one value.
    #[error("`{0}` takes one value, and was given {1}")]
    Several(String, usize),
    /// A folder or file that the person named is none.
    #[error("`{1}` is no absolute path of a file or folder that is there, as `{0}` has to be")]
    NoPath(String, String),
    /// A value is not of the kind that it has to be.
    #[error("`{value}` is not {kind}, as `{name}` has to be")]
    Kind {
        /// The setting.
        name: String,
        /// The value.
        value: String,
        /// The kind, in words.
        kind: String,
    },
    /// A secret was given where everybody can read it.
    #[error(
        "`{0}` is a secret, which is not for a command line: leave it out here, and keep it with `ironcurtain secrets set {1}`"
    )]
    Secret(String, String),
    /// Its maker names a secret of the person's.
    #[error("the bundle's maker names `{0}`, a secret that is not this bundle's; nothing was added")]
    NotItsSecret(String),
    /// Another server has a secret of that name.
    #[error("`{server}` has the secret `{secret}` already; give this one another name")]
    SecretOfAnother {
        /// The secret.
        secret: String,
        /// The server that names it.
        server: String,
    },
    /// The other servers cannot be read.
    #[error(transparent)]
    Servers(#[from] ConfigError),
    /// Something in its command cannot be filled in.
    #[error("the bundle's command has `{0}`, which is not known")]
    Placeholder(String),
}
