//! Errors from determining which server to add.

use super::untrusted_entry::UntrustedEntryError;
use super::{Catalog, CatalogError, SettingError};

/// Error from determining which server to add.
#[derive(Debug, thiserror::Error)]
pub enum AdditionError {
    /// The catalog entry is invalid, or a required setting is missing.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A setting has an invalid value.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The text is neither a catalog id, a package nor an address.
    #[error(
        "unknown server `{name}`; the catalog has `{ids}`; for other servers, give a package as `npm:NAME` or `pypi:NAME`, an `https://` address, or the path of a file with client settings (`-` for standard input)"
    )]
    UnknownServer {
        /// Unknown name.
        name: String,
        /// Ids in the catalog.
        ids: String,
    },
    /// The name could be a package on npm or on `PyPI`, so it is ambiguous.
    #[error(
        "`{0}` is not in the catalog; for a package, write `npm:{0}` or `pypi:{0}`; to list the catalog, run `ironcurtain servers catalog`"
    )]
    Ambiguous(String),
    /// A command line contains an unmatched quote.
    #[error("the command `{0}` has an unmatched quote")]
    Quotes(String),
    /// The command line names more than one server.
    #[error("unexpected argument `{0}`; add one server at a time")]
    Unexpected(String),
    /// The command starts a container, which would bypass the sandbox.
    #[error(
        "`{0}` starts a container outside the sandbox, where IronCurtain cannot limit it; add the server's package instead (`npm:NAME` or `pypi:NAME`), or the address of a container that you start yourself"
    )]
    Container(String),
    /// Settings were given for a server outside the catalog.
    #[error("`--set` requires a server from the catalog; `{0}` is not in it")]
    Settings(String),
    /// The snippet is not a JSON object.
    #[error("failed to parse the snippet: {0}")]
    NotJson(#[from] serde_json::Error),
    /// The snippet does not contain exactly one server. Contains the number of servers found.
    #[error("expected one server in the snippet, found {0}; remove the others")]
    NotOneServer(usize),
    /// The snippet sets options other than the program or address.
    #[error("{0}; nothing was added")]
    Untrusted(#[from] UntrustedEntryError),
}

impl AdditionError {
    pub(super) fn unknown(spec: &str, catalog: &Catalog) -> Self {
        let ids = catalog.iter().map(|known| known.id.as_str()).collect::<Vec<_>>().join("`, `");
        Self::UnknownServer { name: spec.to_owned(), ids }
    }
}
