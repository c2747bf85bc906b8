//! Errors from adding a bundle.

use super::unpack::UnpackError;
use ironcurtain_config::ConfigError;
use std::io;

/// Error from adding a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The bundle could not be unpacked.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// The system provided no random bytes for a folder name.
    #[error("failed to unpack the bundle: {0}")]
    Folder(io::Error),
    /// The manifest is invalid.
    #[error("failed to parse the bundle's `manifest.json`: {0}")]
    Manifest(#[from] serde_json::Error),
    /// The manifest could not be read.
    #[error("failed to read the bundle's `manifest.json`: {0}")]
    NoManifest(io::Error),
    /// The manifest exceeds the maximum size or number of settings.
    #[error("the bundle's `manifest.json` is larger than {} KB or has more than {} settings", .0 >> 10, .1)]
    ManifestTooLarge(u64, usize),
    /// A required setting has no value.
    #[error("the bundle requires `--set {name}=...`: {title}{suggestion}")]
    MissingSetting {
        /// Name of the setting.
        name: String,
        /// Description of the setting by the bundle's author.
        title: String,
        /// Part of the message that contains the default value suggested by the bundle.
        suggestion: String,
    },
    /// The bundle does not have this setting.
    #[error("unknown setting `{0}`; the bundle has `{1}`")]
    UnknownSetting(String, String),
    /// A setting that takes one value was given several values.
    #[error("expected one value for `{0}`, found {1}")]
    SeveralValues(String, usize),
    /// The value of a path setting is not the absolute path of an existing file or folder.
    #[error("`{0}` must be the absolute path of an existing file or folder, found `{1}`")]
    PathNotFound(String, String),
    /// A value has the wrong type.
    #[error("`{name}` must be {kind}, found `{value}`")]
    InvalidValue {
        /// Name of the setting.
        name: String,
        /// Invalid value.
        value: String,
        /// Expected type, for display.
        kind: String,
    },
    /// A secret was given on the command line, which other programs can read.
    #[error(
        "`{0}` is a secret and must not be on the command line; leave it out, and store it with `ironcurtain secrets set {1}`"
    )]
    Secret(String, String),
    /// The bundle refers to a secret that does not belong to it.
    #[error("the bundle refers to `{0}`, which is not one of its own secrets; nothing was added")]
    ForeignSecret(String),
    /// Another server already has a secret with this name.
    #[error(
        "the secret `{secret}` already belongs to the server `{server}`; choose another name for this server"
    )]
    SecretInUse {
        /// Name of the secret.
        secret: String,
        /// Server to which the secret belongs.
        server: String,
    },
    /// The configured servers could not be read.
    #[error(transparent)]
    Servers(#[from] ConfigError),
    /// The command contains an unknown placeholder.
    #[error("unknown placeholder `{0}` in the bundle's command")]
    Placeholder(String),
}
