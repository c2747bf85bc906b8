//! Reasons that a server's entry is invalid.

use ironcurtain_egress::RuleError;
use ironcurtain_secrets::SecretNameError;

/// Reason that a server's entry is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryError {
    /// The name has an invalid character.
    #[error("its name may have letters, digits, `-`, `_` and `.` only")]
    Name,
    /// The program is missing.
    #[error("`command` is empty")]
    NoCommand,
    /// The program and its arguments are in one list.
    #[error("`command` is a list; write the program as `command` and the rest as `args`")]
    CommandList,
    /// The transport is no longer supported.
    #[error(
        "`type`: the old `sse` transport is not supported; write the server's streamable HTTP address, which often ends in `/mcp`, as `url`, with `\"type\": \"http\"`"
    )]
    Sse,
    /// A remote server has a key for local servers.
    #[error("`{0}` is for local servers; a remote server has `url` and `headers`: remove one of them")]
    HereAndThere(&'static str),
    /// A remote server has a `sandbox` key.
    #[error("`sandbox`: a remote server cannot be sandboxed, because it runs elsewhere; remove it")]
    RemoteSandbox,
    /// The address or a header of a remote server is invalid.
    #[error(transparent)]
    Remote(#[from] RemoteEntryError),
    /// Two entries have the same name.
    #[error("it is defined both inside and outside `mcpServers`; remove one")]
    Twice,
    /// An unsandboxed server would be asked about unannotated tools, whose calls nothing limits.
    #[error(
        "`unannotated` is `ask` and `sandbox` is `false`: the effects of unannotated tools are unknown, and no sandbox would limit them; sandbox the server, or annotate its tools"
    )]
    AsksUncontained,
    /// A variable names a secret with an invalid name.
    #[error("`env.{variable}`: {source}")]
    Secret {
        /// The variable.
        variable: String,
        /// Reason.
        source: SecretNameError,
    },
    /// The path of the program is invalid.
    #[error(transparent)]
    Command(#[from] EntryPathError),
    /// A path in `worksWith` is invalid.
    #[error("`worksWith`: {0}")]
    WorksWith(EntryPathError),
    /// A path in a list is invalid.
    #[error("`sandbox.filesystem.{list}`: {source}")]
    Path {
        /// The list.
        list: &'static str,
        /// Reason.
        source: EntryPathError,
    },
    /// A host in a list is invalid.
    #[error("`sandbox.network.{list}`: {source}")]
    Host {
        /// The list.
        list: &'static str,
        /// Reason.
        source: RuleError,
    },
}

/// Reason that a path in an entry is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryPathError {
    /// The text is not a path.
    #[error("`{path}` is not a path", path = .0.escape_default())]
    NotAPath(String),
    /// The path starts with `~name`.
    #[error("`{0}`: `~name` is not expanded; write the whole path")]
    NamedHome(String),
    /// The path is relative.
    #[error("`{0}` is a relative path; write the whole path")]
    Relative(String),
    /// The home directory is not UTF-8.
    #[error("the home directory is not UTF-8")]
    Home,
}

/// Reason that the address or a header of a remote server is invalid.
#[derive(Debug, thiserror::Error)]
pub enum RemoteEntryError {
    /// The URL is invalid.
    #[error("`url`: `{0}` is not a server address; write it as `https://host/path`")]
    NoUrl(String),
    /// The URL contains a login, which can disguise the host.
    #[error(
        "`url` has a login before `@`, in an address that leads to `{0}`; remove it, and write a login as a header, in `headers`"
    )]
    Login(String),
    /// The connection is not encrypted.
    #[error("`url`: data sent to `{0}` over `http` is not encrypted; use `https://`")]
    Unencrypted(String),
    /// The host is invalid.
    #[error("`url`: {0}")]
    Host(#[from] RuleError),
    /// An entry of `allowedAddresses` is not an IP address.
    #[error("`allowedAddresses`: `{0}` is not an IP address; write it like `10.1.2.3` or `[fd00::1]`")]
    Address(String),
    /// The name of a header is invalid.
    #[error("`headers`: `{}` is not a valid header name", .0.escape_default())]
    HeaderName(String),
    /// The header is reserved for IronCurtain.
    #[error("`headers.{0}` is set by IronCurtain; remove it")]
    OurHeader(String),
    /// The value of a header has an invalid character.
    #[error("`headers.{0}` has a character that is not allowed in a header")]
    HeaderValue(String),
    /// A header names a secret with an invalid name.
    #[error("`headers.{header}`: {source}")]
    Secret {
        /// The header.
        header: String,
        /// Reason.
        source: SecretNameError,
    },
}
