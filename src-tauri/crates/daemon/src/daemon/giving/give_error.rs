//! Why nothing is given by the person's own hand.

use ironcurtain_egress::{HostError, RuleError as HostRuleError};
use ironcurtain_grants::GrantError;
use ironcurtain_paths::PathError;
use std::io;

/// Why nothing is given.
#[derive(Debug, thiserror::Error)]
pub enum GiveError {
    /// No such client has been seen.
    #[error("no client `{0}` has connected yet; start it with a server of IronCurtain first")]
    UnknownClient(String),
    /// It has no session that the grant could end with.
    #[error("the session is over; choose a time instead")]
    NoSession,
    /// Nothing may be done with it.
    #[error("choose what it may do: read, write or delete")]
    NoAccess,
    /// Removing is never for always.
    #[error("deleting is not granted until it is taken back; choose a time, or leave deleting out")]
    RemovesForAlways,
    /// The path is not UTF-8.
    #[error("the name of what was picked is not UTF-8, so no agent can name it either")]
    NotUtf8,
    /// The path cannot be resolved.
    #[error("`{path}` cannot be granted: {problem}")]
    Path {
        /// The path.
        path: String,
        /// Why not.
        problem: PathError,
    },
    /// There is no file and no folder.
    #[error("`{0}` is neither a file nor a folder")]
    NoFile(String),
    /// It holds, or lies in, what must never be granted.
    #[error(
        "`{0}` is never granted: it is or holds your home, keys, or IronCurtain's own files; pick a folder within it"
    )]
    Limits(String),
    /// One of the user's programs runs it, so that writing it is allowed once and no longer.
    #[error(
        "your own programs run `{0}`, so writing it is allowed only once, when an agent asks; leave writing out"
    )]
    RunsLater(String),
    /// The host is not taken.
    #[error("{0}")]
    Host(#[from] HostRuleError),
    /// It is no name of a single host.
    #[error("{0}; a permission is for one host")]
    NoHost(#[from] HostError),
    /// The server is not configured.
    #[error("there is no server `{0}` any more")]
    NoServer(String),
    /// The server has no sandbox here that holds it back.
    #[error(
        "`{0}` is not held back by a sandbox of yours, so no permission for a host changes what it reaches"
    )]
    NotHeld(String),
    /// Nothing would let it through.
    #[error(
        "the entry of `{server}` does not let it reach `{host}`, with a permission or without; open the host on Servers"
    )]
    OutOfReach {
        /// The server.
        server: String,
        /// The host.
        host: String,
    },
    /// Nobody has said what the tool means.
    #[error("nobody has looked at the tool `{0}` of this server yet; look at its tools on Servers")]
    UnknownTool(String),
    /// A call of the tool names what it is about, which cannot be known beforehand.
    #[error(
        "`{0}` is told what to do it with in each call, so you are asked about what that is; make a rule for it instead"
    )]
    NamesThings(String),
    /// Nothing that takes away, moves or runs is for always.
    #[error(
        "`{0}` may take something away or run something, so it is not allowed until it is taken back; choose a time"
    )]
    ToolForAlways(String),
    /// There is no such grant any more, or it is none of files.
    #[error("there is no such permission for files any more")]
    Gone,
    /// The terms go beyond what was granted.
    #[error("that is more than was granted; grant it beforehand instead")]
    Wider,
    /// No name could be made.
    #[error("no grant could be made: {0}")]
    NoName(#[from] io::Error),
    /// It cannot be put on record or stored.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// The new one is given, and the old one is still there.
    #[error("it is granted on the new terms, but the old permission is not proved to be gone: {0}")]
    OldOneStays(String),
}
