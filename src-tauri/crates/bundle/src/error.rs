//! Errors for refused bundles.

use crate::archive::ArchiveError;

/// Error returned for a bundle that is refused.
#[derive(Debug, thiserror::Error)]
pub enum PolicyBundleError {
    /// The archive is invalid.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The bundle has no signature.
    #[error("it is not signed: `.signatures.json` is missing")]
    Unsigned,
    /// `.signatures.json` is malformed.
    #[error("`.signatures.json` is malformed; expected exactly one JSON Web Signature")]
    Signatures,
    /// The signature algorithm is not `ES256`.
    #[error("the signature algorithm `{0}` is not allowed; expected `ES256`")]
    Algorithm(String),
    /// The signature was not created with the configured key.
    #[error("the signature does not match the public key")]
    WrongSignature,
    /// The signing time is too far in the future.
    #[error("it was signed {ahead_hours} hours in the future; check the clock of this computer")]
    Clock {
        /// Difference between the signing time and this machine's clock, in hours.
        ahead_hours: u64,
    },
    /// A file is not covered by the signature.
    #[error("the file `{0}` is not part of the signature")]
    UnsignedFile(String),
    /// A file's hash differs from the signed hash.
    #[error("the file `{0}` was changed after it was signed")]
    Changed(String),
    /// The archive lacks a signed file.
    #[error("the signed file `{0}` is missing")]
    Missing(String),
    /// A JSON document is invalid.
    #[error("`{name}`: {problem}")]
    Document {
        /// Name of the file.
        name: String,
        /// Description of the problem.
        problem: String,
    },
    /// The manifest has no sequence number.
    #[error("`.manifest` lacks the sequence number `metadata.sequence`")]
    NoSequence,
    /// The bundle has no rules.
    #[error("it has no document `ironcurtain.policy`")]
    NoPolicy,
}
