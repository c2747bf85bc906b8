//! First message in each direction: hello and welcome.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// First message of a connecting program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`crate::VERSION`] of the program.
    pub version: u32,
    /// Purpose of the connection.
    pub purpose: Purpose,
}

/// Purpose of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// An agent client's shim opens a session.
    Session(ShimHello),
    /// The user starts a program in a sandbox. This message carries descriptors (`SCM_RIGHTS`): its standard input, output and
    /// error, its end of the link to the starter and, with [`RunAsk::Terminal`], the terminal for questions.
    Run(RunHello),
    /// The user's own program lists and revokes.
    Control,
    /// The user's app replaces a daemon that has no way to ask.
    TakeOver,
}

/// Session parameters from a shim. Unverified claims; the client's identity comes from the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShimHello {
    /// Name of the server in `mcp-servers.json`. `None` requests several servers, with tool names prefixed by the server's.
    pub server: Option<String>,
    /// Profile in `config.json` that lists these servers; `None` for all servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The user's name for this entry in the client's configuration.
    pub label: Option<String>,
    /// Transport of the conversation to the daemon.
    pub stdio: StdioMode,
    /// Ticket of a session to continue, after another daemon has moved it ([`ShimNote::Moved`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
}

/// Program to run in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunHello {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Working folder.
    pub cwd: String,
    /// Environment, of which the daemon passes on what the profile names.
    pub env: BTreeMap<String, String>,
    /// Place where the run's questions are answered.
    #[serde(default)]
    pub ask: RunAsk,
    /// Ports of services on this computer that need no question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Ports of the run that this computer can connect to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub publish: Vec<u16>,
    /// Run profile; `None` for the one that recognizes the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<RunProfileChoice>,
    /// Reports the files that were used when the program exits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub learn: bool,
    /// Socket of the user's ssh agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_agent: Option<String>,
}

/// Place where the questions of a run are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunAsk {
    /// In the place of all other questions.
    #[default]
    Usual,
    /// On the terminal that started the run, for that run only.
    Terminal,
    /// Nowhere: they are denied.
    Deny,
}

/// Run profile that the user chose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunProfileChoice {
    /// Profile with this name.
    Named(String),
    /// Profile in a file.
    Given {
        /// The file, for errors.
        file: String,
        /// Its text.
        text: String,
    },
}

/// Note from the daemon to the starter of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunNote {
    /// The program runs. Always the first note.
    Started {
        /// Principal of the run.
        principal: String,
        /// Folder that the program may use without a question, if any.
        folder: Option<String>,
        /// Name of the run profile.
        profile: String,
    },
    /// A question of the run waits for the user's answer.
    Waiting {
        /// Path or host that the program wants to use.
        path: String,
    },
    /// No question is left on the run's own terminal.
    Answered,
    /// An access was denied.
    Denied {
        /// Path or host that the program wanted to use.
        path: String,
        /// Reason, unless the user denied it now.
        why: Option<String>,
    },
    /// The run is over. Always the last note.
    Exited {
        /// Exit status, or 128 + the signal number.
        status: i32,
        /// Files that the run used.
        used: RunUse,
        /// Reason that the run ended before its program exited, if so.
        cut_off: Option<String>,
        /// Files that were used, if [`RunHello::learn`] is set.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        learned: Vec<UsedFile>,
    },
}

/// Use of files outside the folder of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunUse {
    /// Number of files that it was allowed to read.
    pub read: usize,
    /// Number of files that it was allowed to write or remove.
    pub written: usize,
    /// Number of files and hosts that it was denied.
    pub denied: usize,
}

/// A file that a run used with the user's permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsedFile {
    /// Absolute path.
    pub path: String,
    /// True if it was changed, created or removed.
    pub changed: bool,
}

/// Transport of the client's standard input and output to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StdioMode {
    /// This message carries two descriptors (`SCM_RIGHTS`): standard input, then standard output.
    HandedOver,
    /// The shim copies bytes over this same connection after the welcome.
    Relayed,
}

/// First message of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Welcome {
    /// The connection is accepted.
    Accepted {
        /// [`crate::VERSION`] of the daemon.
        version: u32,
        /// Process id of the daemon.
        pid: u32,
        /// Id of the opened session, for a shim.
        session: Option<String>,
    },
    /// The connection is refused.
    Refused(HelloRefusal),
}

/// Reason for refusing a connection, and what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloRefusal {
    /// Machine-readable code.
    pub code: RefusalCode,
    /// Message for the user: what happened and what to do.
    pub message: String,
}

/// Reason for refusing a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalCode {
    /// The hello is invalid.
    Malformed,
    /// The daemon has another protocol version.
    Version,
    /// The peer belongs to another user.
    OtherUser,
    /// No server or profile of that name is configured.
    UnknownServer,
    /// The daemon's own files cannot be read or written.
    Unavailable,
    /// The daemon can ask the user itself, so it cannot be replaced.
    Stays,
}

/// Note from the daemon to a waiting shim that has handed over its conversation.
///
/// A call may wait for the user's answer indefinitely. If the daemon is killed meanwhile, the shim can still tell the agent that the call
/// was denied. If the app replaces the daemon, the shim continues the conversation there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ShimNote {
    /// The user is being asked about the client's request with this id.
    Asking {
        /// Request id as JSON text.
        request: String,
    },
    /// This request was answered, or another daemon will answer it.
    Settled {
        /// Request id as JSON text.
        request: String,
    },
    /// Another daemon continues the session. The shim must connect to it with this ticket.
    Moved {
        /// Ticket, valid once.
        ticket: String,
    },
}
