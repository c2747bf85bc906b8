//! Why the parameters of a client's request are not taken, in words for the client.

use crate::wire::AmbiguousField;
use ironcurtain_policy::strict::ReadError;

/// The longest name of a tool, in bytes.
pub(super) const LONGEST_TOOL: usize = 256;

/// Why the parameters of a request are not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParamsError {
    /// A field that must be there is not.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A field is not what it must be.
    #[error("`{field}`: {source}")]
    Unreadable {
        /// The field.
        field: String,
        /// The place and the reason.
        source: serde_json::Error,
    },
    /// Two readers could take different fields for the same.
    #[error(transparent)]
    Ambiguous(#[from] AmbiguousField),
    /// An argument has a number that the server could take for another.
    #[error("`{argument}`: {source}")]
    Inexact {
        /// The argument.
        argument: String,
        /// The place and the reason.
        source: ReadError,
    },
    /// The tool's name is over the bound.
    #[error("`params.name` has {0} bytes; at most {LONGEST_TOOL} are taken")]
    LongTool(usize),
    /// There is no address.
    #[error("`params.uri` is missing or no text")]
    NoUri,
    /// The message that is to be passed on cannot be written.
    #[error(transparent)]
    Unwritable(serde_json::Error),
}

impl ParamsError {
    /// For the errors of one field.
    pub(super) fn unreadable(field: &str) -> impl FnOnce(serde_json::Error) -> Self {
        |source| Self::Unreadable { field: field.to_owned(), source }
    }
}
