//! Why the entry of a server is not taken.

use ironcurtain_egress::RuleError;
use ironcurtain_secrets::SecretNameError;

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
    /// It is reached in a way that is no more.
    #[error(
        "`type`: `sse` is the transport of old servers, which IronCurtain does not speak; write the address of the server's streamable HTTP, which often ends in `/mcp`, as `url`, with `\"type\": \"http\"`"
    )]
    Sse,
    /// It runs elsewhere, and is to run here.
    #[error(
        "`{0}` is for a server that runs here; a remote one has `url` and `headers`: take one of them out"
    )]
    HereAndThere(&'static str),
    /// It runs elsewhere, and is to have a sandbox.
    #[error("`sandbox`: a remote server cannot be sandboxed, because it runs elsewhere; take it out")]
    RemoteSandbox,
    /// Its address, or what it is sent, is not taken.
    #[error(transparent)]
    Remote(#[from] RemoteEntryError),
    /// Two entries have its name.
    #[error("it stands in `mcpServers` and beside it; take one out")]
    Twice,
    /// It would be asked about tools whose calls nothing holds back.
    #[error(
        "`unannotated` is `ask` and `sandbox` is `false`: nobody knows what a tool does that nobody has annotated, and nothing would hold it back; give it a sandbox, or annotate its tools"
    )]
    AsksUncontained,
    /// A variable names a secret that can have no such name.
    #[error("`env.{variable}`: {source}")]
    Secret {
        /// The variable.
        variable: String,
        /// Why not.
        source: SecretNameError,
    },
    /// The path of its program is not taken.
    #[error(transparent)]
    Command(#[from] EntryPathError),
    /// A path that it is to work with is not taken.
    #[error("`worksWith`: {0}")]
    WorksWith(EntryPathError),
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

/// Why the address of a remote server, or what it is sent, is not taken.
#[derive(Debug, thiserror::Error)]
pub enum RemoteEntryError {
    /// It is none.
    #[error("`url`: `{0}` is not the address of a server; write it as `https://host/path`")]
    NoUrl(String),
    /// It has a login in it, before the host that it leads to.
    #[error(
        "`url` has a login before `@`, in an address that leads to `{0}`; remove it, and write a login as a header, in `headers`"
    )]
    Login(String),
    /// Everybody on the way could read along.
    #[error("`url`: what is sent to `{0}` by `http` can be read on the way; write it with `https://`")]
    Unencrypted(String),
    /// Its host is not taken.
    #[error("`url`: {0}")]
    Host(#[from] RuleError),
    /// A list of addresses has something else.
    #[error("`allowedAddresses`: `{0}` is not an address; write one as in `10.1.2.3` or `[fd00::1]`")]
    Address(String),
    /// A header has a name that no header has.
    #[error("`headers`: `{}` cannot be the name of a header", .0.escape_default())]
    HeaderName(String),
    /// A header is ours.
    #[error("`headers.{0}` is set by IronCurtain; take it out")]
    OurHeader(String),
    /// A header has a value that no header has.
    #[error("`headers.{0}` has a character that no header has")]
    HeaderValue(String),
    /// A header names a secret that can have no such name.
    #[error("`headers.{header}`: {source}")]
    Secret {
        /// The header.
        header: String,
        /// Why not.
        source: SecretNameError,
    },
}
