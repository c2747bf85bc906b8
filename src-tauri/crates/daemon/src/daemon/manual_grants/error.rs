//! Error type for creating and changing grants in the window.

use ironcurtain_egress::{HostError, RuleError as HostRuleError};
use ironcurtain_grants::GrantError;
use ironcurtain_paths::PathError;
use std::io;

/// Reason why a grant cannot be created or changed. The window shows these messages.
#[derive(Debug, thiserror::Error)]
pub enum GrantRequestError {
    /// The client has never connected, so it has not been identified.
    #[error("the client `{0}` has not connected yet; start one of its servers through IronCurtain first")]
    UnknownClient(String),
    /// The grant is for a session, but no session of this client and server is active.
    #[error("the session has ended; choose another duration")]
    NoSession,
    /// The request does not include any kind of access.
    #[error("no access is selected; choose read, write or delete")]
    NoAccess,
    /// The request would grant permission to delete permanently.
    #[error("deleting cannot be granted permanently; choose a duration, or leave out deleting")]
    PermanentDelete,
    /// The path is not valid UTF-8.
    #[error("the path is not valid UTF-8, so agents cannot name it")]
    NotUtf8,
    /// The path cannot be resolved.
    #[error("`{path}` cannot be granted: {problem}")]
    Path {
        /// Path for display.
        path: String,
        /// Error from resolving the path.
        problem: PathError,
    },
    /// The path is neither a file nor a folder.
    #[error("`{0}` is not a file or folder")]
    NotFileOrFolder(String),
    /// The path is, contains or is inside a protected path.
    #[error(
        "`{0}` cannot be granted: it is or contains your home, keys or IronCurtain's own files; pick a folder inside it"
    )]
    Protected(String),
    /// The server's entry makes the path unreadable even if it is granted.
    #[error(
        "the entry of `{server}` makes `{path}` unreadable even with a grant; remove the path from \
         `sandbox.filesystem.denyRead`"
    )]
    Unreadable {
        /// Name of the server.
        server: String,
        /// Path for display.
        path: String,
    },
    /// The path is an autostart file, and the request is for write access.
    #[error("your programs run `{0}` automatically, so each write requires your approval; leave out writing")]
    AutostartFile(String),
    /// The host pattern is invalid.
    #[error("{0}")]
    Host(#[from] HostRuleError),
    /// The text is not a single host.
    #[error("{0}; name a single host")]
    NotSingleHost(#[from] HostError),
    /// No server has this name.
    #[error("unknown server `{0}`; it may have been removed")]
    UnknownServer(String),
    /// The server is unsandboxed or remote, so a grant for a host would have no effect.
    #[error("`{0}` does not run in a sandbox on this computer, so granting a host has no effect")]
    NotSandboxed(String),
    /// The server's entry blocks the host even if it is granted.
    #[error("the entry of `{server}` blocks `{host}` even with a grant; allow the host under Servers")]
    HostBlocked {
        /// Name of the server.
        server: String,
        /// Requested host and port, as `HOST:PORT`.
        host: String,
    },
    /// The tool has no annotation, so the effect of its calls is unknown.
    #[error("the tool `{0}` is not annotated yet; review the server's tools under Servers")]
    UnknownTool(String),
    /// The tool's effect depends on its arguments, so each call is judged separately.
    #[error(
        "the effect of `{0}` depends on its arguments, so it cannot be granted as a whole; create a rule instead"
    )]
    DependsOnArguments(String),
    /// The tool may delete, move or run something, and the request is for a permanent grant.
    #[error("`{0}` may delete or run something, so it cannot be granted permanently; choose a duration")]
    PermanentTool(String),
    /// The grant no longer exists, or is not for files.
    #[error("the file grant does not exist; it may have been revoked")]
    NoFileGrant,
    /// The change would extend the access of the grant.
    #[error("the change exceeds the grant; create a new grant instead")]
    ExceedsGrant,
    /// The operating system could not provide random bytes for the id.
    #[error("failed to create the grant: {0}")]
    NoId(#[from] io::Error),
    /// The grant cannot be recorded or stored.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// The new grant is active, but the old one could not be revoked.
    #[error("the new grant is active, but revoking the old one failed: {0}")]
    OldGrantRemains(String),
}
