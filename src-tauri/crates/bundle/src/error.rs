//! Reasons why a bundle is refused.

use crate::archive::ArchiveError;

/// Reason why a bundle is refused.
#[derive(Debug, thiserror::Error)]
pub enum PolicyBundleError {
    /// The archive is invalid.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The bundle has no signature.
    #[error("it is not signed: `.signatures.json` is missing")]
    Unsigned,
    /// The file with the signature is malformed.
    #[error("`.signatures.json` is malformed; expected exactly one JSON Web Signature")]
    Signatures,
    /// The signature uses another algorithm.
    #[error("the signature algorithm `{0}` is not allowed; expected `ES256`")]
    Algorithm(String),
    /// The signature is not from the configured key.
    #[error("the signature does not match the public key")]
    WrongSignature,
    /// The signature is from the future.
    #[error("it was signed {ahead_hours} hours in the future; check the clock of this computer")]
    Clock {
        /// Hours by which the signature is newer than this machine's clock.
        ahead_hours: u64,
    },
    /// A file is not part of the signature.
    #[error("the file `{0}` is not part of the signature")]
    UnsignedFile(String),
    /// A file differs from the signed one.
    #[error("the file `{0}` was changed after it was signed")]
    Changed(String),
    /// A signed file does not exist.
    #[error("the signed file `{0}` is missing")]
    Missing(String),
    /// A structured document is invalid.
    #[error("`{name}`: {problem}")]
    Document {
        /// Name of the file.
        name: String,
        /// Description of the problem.
        problem: String,
    },
    /// The manifest has no sequence number.
    #[error("`.manifest` has no number `metadata.sequence`, which protects against old bundles")]
    NoSequence,
    /// The bundle is not meant for IronCurtain.
    #[error("it has no documents below `ironcurtain`")]
    NoDocuments,
}
