//! Why the entry of a server is not taken.

use ironcurtain_egress::RuleError;

/// Why the entry of a server is not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryError {
    /// Its name has characters that no name has.
    #[error("its name may have letters, digits, `-`, `_` and `.` only")]
    Name,
    /// It names no program.
    #[error("`command` is empty")]
    NoCommand,
    /// Its program and its arguments are one list.
    #[error("`command` is a list; write the program as `command` and the rest as `args`")]
    CommandList,
    /// It runs elsewhere.
    #[error(
        "`{0}` is the address of a remote server, which is not connected to yet; write a program that runs here and connects to it, as `command`, and its host in `sandbox.network.allowedDomains`"
    )]
    Remote(&'static str),
    /// Two entries have its name.
    #[error("it stands in `mcpServers` and beside it; take one out")]
    Twice,
    /// It would be asked about tools whose calls nothing holds back.
    #[error(
        "`unannotated` is `ask` and `sandbox` is `false`: nobody knows what a tool does that nobody has annotated, and nothing would hold it back; give it a sandbox, or annotate its tools"
    )]
    AsksUncontained,
    /// A variable is to come from the keyring.
    #[error("`env.{0}` is in the keyring, which this version cannot read")]
    Keyring(String),
    /// The path of its program is not taken.
    #[error(transparent)]
    Command(#[from] EntryPathError),
    /// A path of a list is not taken.
    #[error("`sandbox.filesystem.{list}`: {source}")]
    Path {
        /// The list.
        list: &'static str,
        /// Why not.
        source: EntryPathError,
    },
    /// A host of a list is not taken.
    #[error("`sandbox.network.{list}`: {source}")]
    Host {
        /// The list.
        list: &'static str,
        /// Why not.
        source: RuleError,
    },
}

/// Why a path in an entry is not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryPathError {
    /// It is none.
    #[error("`{path}` is not a path", path = .0.escape_default())]
    NotAPath(String),
    /// It begins in the home of somebody else.
    #[error("`{0}`: `~name` is not expanded; write the whole path")]
    NamedHome(String),
    /// It begins nowhere.
    #[error("`{0}` is a relative path; write the whole path")]
    Relative(String),
    /// `~` cannot be expanded.
    #[error("the home directory is not UTF-8")]
    Home,
}
