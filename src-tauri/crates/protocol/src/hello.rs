//! The first line each way.

use serde::{Deserialize, Serialize};

/// First line of a connecting program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`crate::VERSION`] of the program.
    pub version: u32,
    /// The purpose of the connection.
    pub purpose: Purpose,
}

/// Why a program connects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// An agent client's shim that opens a session.
    Session(ShimHello),
    /// A program of the person's own that lists and revokes.
    Control,
    /// The person's app, to take the place of a daemon that has nobody to ask.
    TakeOver,
}

/// A shim's words about itself. Claims only: who it is comes from the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShimHello {
    /// The server it wants, by its name in `mcp-servers.json`. Without one it wants several, with names of tools that say whose
    /// they are.
    pub server: Option<String>,
    /// The profile of `config.json` that says which several; without one all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// A name the person gave this entry in the client's configuration.
    pub label: Option<String>,
    /// Transport of the conversation to the daemon.
    pub stdio: StdioMode,
    /// The ticket of the session that is gone on with, where another daemon has moved it ([`ShimNote::Moved`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
}

/// Transport of the client's standard input and output to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StdioMode {
    /// The two descriptors came with this line (`SCM_RIGHTS`): standard input, then standard output.
    HandedOver,
    /// The shim copies bytes over this same connection after the welcome.
    Relayed,
}

/// First line of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Welcome {
    /// Come in.
    Accepted {
        /// [`crate::VERSION`] of the daemon.
        version: u32,
        /// Process id of the daemon.
        pid: u32,
        /// The session opened, for a shim.
        session: Option<String>,
    },
    /// No, and why.
    Refused(HelloRefusal),
}

/// Why a connection was refused, and what the person can do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloRefusal {
    /// For programs.
    pub code: RefusalCode,
    /// For people: what happened and what to do.
    pub message: String,
}

/// The closed list of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalCode {
    /// The greeting was not understood.
    Malformed,
    /// Another version of the program is running.
    Version,
    /// The peer is another user.
    OtherUser,
    /// No server or profile of that name is configured.
    UnknownServer,
    /// The daemon's own files cannot be read or written.
    Unavailable,
    /// It can ask the person itself, and gives its place to nobody.
    Stays,
}

/// A note of the daemon to a shim that has handed its conversation over and waits.
///
/// A question is the one thing a call waits for without bound. Should the daemon be killed meanwhile, the shim
/// still can tell the agent that nobody said yes. A daemon that gives its place to the app has the shim bring the conversation
/// there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ShimNote {
    /// A person is asked about the client's request of this id.
    Asking {
        /// The id as JSON text.
        request: String,
    },
    /// That request is answered, or is answered by somebody else from now on.
    Settled {
        /// The id as JSON text.
        request: String,
    },
    /// Another daemon goes on with the session: it is to be greeted with this ticket.
    Moved {
        /// Opens the session once.
        ticket: String,
    },
}
