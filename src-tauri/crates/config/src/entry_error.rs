//! Reasons a server's entry is invalid.

use ironcurtain_egress::RuleError;
use ironcurtain_secrets::SecretNameError;

/// Reason a server's entry is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryError {
    /// The name contains a character other than letters, digits, `-`, `_` and `.`.
    #[error("its name may contain only letters, digits, `-`, `_` and `.`")]
    Name,
    /// A local server's `command` is missing or empty.
    #[error("`command` is empty")]
    NoCommand,
    /// `command` is a list of the program and its arguments instead of a string.
    #[error("`command` is a list; write the program as `command` and the rest as `args`")]
    CommandList,
    /// `type` names a transport that is no longer supported.
    #[error(
        "`type`: the old `sse` transport is not supported; write the server's streamable HTTP address, which often ends in `/mcp`, as `url`, with `\"type\": \"http\"`"
    )]
    Sse,
    /// A remote server has a key that only local servers use.
    #[error(
        "`{0}` is for local servers, but this entry has the address of a remote server; remove one of them"
    )]
    LocalAndRemote(&'static str),
    /// A remote server has a `sandbox` entry.
    #[error("`sandbox`: a remote server cannot be sandboxed, because it runs elsewhere; remove it")]
    RemoteSandbox,
    /// The address or a header of a remote server is invalid.
    #[error(transparent)]
    Remote(#[from] RemoteEntryError),
    /// The same name is defined both inside and outside `mcpServers`.
    #[error("it is defined both inside and outside `mcpServers`; remove one")]
    Duplicate,
    /// The entry disables the sandbox but asks about unannotated tools. Nothing would limit the effects of such tools.
    #[error(
        "`unannotated` is `ask` and `sandbox` is `false`: the effects of unannotated tools are unknown, and no sandbox would limit them; sandbox the server, or annotate its tools"
    )]
    AskWithoutSandbox,
    /// The entry disables the sandbox but asks about each file. Asking about files requires a sandbox.
    #[error(
        "`access` is `ask` and `sandbox` is `false`: only a sandboxed server can be made to ask; remove one of them"
    )]
    AccessAskWithoutSandbox,
    /// The entry asks about each file, so a different file setting has no effect.
    #[error(
        "`sandbox.{0}` has no effect while `access` is `ask`, because you are asked about each file; remove one of them"
    )]
    NoEffectWithAsk(&'static str),
    /// An environment variable refers to a secret whose name is invalid.
    #[error("`env.{variable}`: {source}")]
    Secret {
        /// Name of the environment variable.
        variable: String,
        /// Reason the secret's name is invalid.
        source: SecretNameError,
    },
    /// The path of the program is invalid.
    #[error(transparent)]
    Command(#[from] EntryPathError),
    /// A path in `worksWith` is invalid.
    #[error("`worksWith`: {0}")]
    WorksWith(EntryPathError),
    /// A path in one of the lists in `sandbox.filesystem` is invalid.
    #[error("`sandbox.filesystem.{list}`: {source}")]
    Path {
        /// Key of the list.
        list: &'static str,
        /// Reason the path is invalid.
        source: EntryPathError,
    },
    /// A host in one of the lists in `sandbox.network` is invalid.
    #[error("`sandbox.network.{list}`: {source}")]
    Host {
        /// Key of the list.
        list: &'static str,
        /// Reason the host is invalid.
        source: RuleError,
    },
}

/// Reason a path in an entry is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryPathError {
    /// The text is not a valid path.
    #[error("`{path}` is not a path", path = .0.escape_default())]
    NotAPath(String),
    /// The path starts with `~name`, which means another user's home directory.
    #[error("`{0}`: `~name` is not expanded; write the absolute path")]
    NamedHome(String),
    /// The path is relative.
    #[error("`{0}` is a relative path; write an absolute path")]
    Relative(String),
    /// The path of the home directory is not UTF-8.
    #[error("the path of the home directory is not valid UTF-8")]
    Home,
}

/// Reason the address or a header of a remote server is invalid.
#[derive(Debug, thiserror::Error)]
pub enum RemoteEntryError {
    /// The URL cannot be parsed or has no host.
    #[error("`url`: `{0}` is not a server address; write it as `https://host/path`")]
    NoUrl(String),
    /// The URL contains a user name or password, which can disguise the real host.
    #[error(
        "`url` contains credentials before `@`, in an address that leads to `{0}`; remove them, and set credentials as a header, in `headers`"
    )]
    Login(String),
    /// The URL uses `http` for a host outside this machine and its network.
    #[error("`url`: data sent to `{0}` over `http` is not encrypted; use `https://`")]
    Unencrypted(String),
    /// The host of the URL is invalid.
    #[error("`url`: {0}")]
    Host(#[from] RuleError),
    /// An entry of `allowedAddresses` is not an IP address.
    #[error("`allowedAddresses`: `{0}` is not an IP address; write it like `10.1.2.3` or `[fd00::1]`")]
    Address(String),
    /// The name of a header is invalid.
    #[error("`headers`: `{}` is not a valid header name", .0.escape_default())]
    HeaderName(String),
    /// IronCurtain sets this header itself.
    #[error("`headers.{0}` is set by IronCurtain; remove it")]
    OurHeader(String),
    /// The header's value contains a character that HTTP does not allow.
    #[error("`headers.{0}` has a character that is not allowed in a header")]
    HeaderValue(String),
    /// A header refers to a secret whose name is invalid.
    #[error("`headers.{header}`: {source}")]
    Secret {
        /// Name of the header.
        header: String,
        /// Reason the secret's name is invalid.
        source: SecretNameError,
    },
}
