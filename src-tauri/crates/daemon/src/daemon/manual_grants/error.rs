//! Error from creating or changing a grant in the settings window.

use ironcurtain_egress::{HostError, RuleError as HostRuleError};
use ironcurtain_grants::GrantError;
use ironcurtain_paths::PathError;
use std::io;

/// Error from creating or changing a grant in the settings window.
#[derive(Debug, thiserror::Error)]
pub enum GrantRequestError {
    /// The client has never connected.
    #[error("the client `{0}` has not connected yet; start one of its servers through IronCurtain first")]
    UnknownClient(String),
    /// No session exists to bind the grant to.
    #[error("the session has ended; choose another duration")]
    NoSession,
    /// No access is selected.
    #[error("no access is selected; choose read, write or delete")]
    NoAccess,
    /// The right to delete cannot be permanent.
    #[error("deleting cannot be granted permanently; choose a duration, or leave out deleting")]
    RemovesForAlways,
    /// The path is not valid UTF-8.
    #[error("the path is not valid UTF-8, so agents cannot name it")]
    NotUtf8,
    /// Resolving the path failed.
    #[error("`{path}` cannot be granted: {problem}")]
    Path {
        /// Path.
        path: String,
        /// Reason.
        problem: PathError,
    },
    /// The path is neither a file nor a folder.
    #[error("`{0}` is not a file or folder")]
    NoFile(String),
    /// The path is, contains or is inside a protected path.
    #[error(
        "`{0}` cannot be granted: it is or contains your home, keys or IronCurtain's own files; pick a folder inside it"
    )]
    Limits(String),
    /// An autostart file, whose writing requires approval each time.
    #[error("your programs run `{0}` automatically, so each write requires your approval; leave out writing")]
    RunsLater(String),
    /// The host pattern is invalid.
    #[error("{0}")]
    Host(#[from] HostRuleError),
    /// The host is not a single host.
    #[error("{0}; name a single host")]
    NoHost(#[from] HostError),
    /// The server is not configured.
    #[error("unknown server `{0}`; it may have been removed")]
    NoServer(String),
    /// The server does not run in a sandbox on this computer.
    #[error("`{0}` does not run in a sandbox on this computer, so granting a host has no effect")]
    NotHeld(String),
    /// The server's entry blocks the host even with a grant.
    #[error("the entry of `{server}` blocks `{host}` even with a grant; allow the host under Servers")]
    OutOfReach {
        /// Name of the server.
        server: String,
        /// Host and port.
        host: String,
    },
    /// The tool has no annotation.
    #[error("the tool `{0}` is not annotated yet; review the server's tools under Servers")]
    UnknownTool(String),
    /// The effect of the tool depends on the arguments of each call.
    #[error("`{0}` acts on what each call names, so it cannot be granted as a whole; create a rule instead")]
    NamesThings(String),
    /// A tool that may delete, move or run something cannot be granted permanently.
    #[error("`{0}` may delete or run something, so it cannot be granted permanently; choose a duration")]
    ToolForAlways(String),
    /// The grant does not exist, or is not for files.
    #[error("the file grant does not exist; it may have been revoked")]
    Gone,
    /// The new terms exceed the grant.
    #[error("the change exceeds the grant; create a new grant instead")]
    Wider,
    /// Creating a random id failed.
    #[error("failed to create the grant: {0}")]
    NoName(#[from] io::Error),
    /// Recording or storing the grant failed.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// The new grant is active, but revoking the old one failed.
    #[error("the new grant is active, but revoking the old one failed: {0}")]
    OldOneStays(String),
}
