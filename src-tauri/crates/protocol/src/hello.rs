//! First message in each direction: [`Hello`] and [`Welcome`].

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// First message of a connecting program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`crate::VERSION`] that the program was built with.
    pub version: u32,
    /// Purpose of the connection, with its parameters.
    pub purpose: Purpose,
}

/// Reason a program connects to the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Opens a session for an agent client's shim.
    Session(ShimHello),
    /// Runs a program in a sandbox for the user. The message carries descriptors (`SCM_RIGHTS`): the program's
    /// standard input, output and error, one end of the link to the process that starts the run and, with
    /// [`RunAsk::Terminal`], the terminal for questions.
    Run(RunHello),
    /// Sends requests on behalf of one of the user's own programs.
    Control,
    /// Replaces a daemon that cannot ask the user. Only the app sends this.
    TakeOver,
    /// Answers questions from a remote machine on this desktop. The message carries one descriptor: a socket to the
    /// remote machine's [`Purpose::Relay`]. The daemon encrypts everything in it.
    Attach {
        /// The user's name for the remote machine.
        host: String,
    },
    /// Sends the daemon's questions to a desktop. The message carries one descriptor: a socket to the desktop's
    /// [`Purpose::Attach`]. The daemon encrypts everything in it.
    Relay,
}

/// Notification from the daemon to the attaching or relaying process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AttachNote {
    /// Desktop's pairing code, which the user types on the remote machine. To pair, the attaching process answers with
    /// [`PairingConfirmed`].
    Code {
        /// The code.
        code: String,
    },
    /// Questions are sent and answered from now on.
    Attached,
    /// The connection has ended. Always the last notification.
    Ended {
        /// Human-readable reason.
        why: String,
        /// `true` if reconnecting cannot help.
        is_final: bool,
    },
}

/// The remote machine's code, as typed by the user. It only confirms a pairing and cannot answer a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairingConfirmed {
    /// The typed code.
    pub code: String,
}

/// Session parameters sent by a shim. They are unverified claims; the client's identity comes from the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShimHello {
    /// Name of the server in `mcp-servers.json`. `None` requests several servers, whose tool names are then prefixed
    /// with the server's name.
    pub server: Option<String>,
    /// Profile in `config.json` that selects the servers; `None` selects all. Used only if `server` is `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The user's name for this entry in the client's configuration.
    pub label: Option<String>,
    /// Transport between the client's standard input and output and the daemon.
    pub stdio: StdioMode,
    /// Ticket for continuing a session that another daemon handed over ([`ShimNote::Moved`]); `None` opens a new
    /// session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
}

/// Program to run in a sandbox, with the run's options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunHello {
    /// Program, followed by its arguments.
    pub argv: Vec<String>,
    /// Working directory of the program.
    pub cwd: String,
    /// Environment of the process that starts the run. The daemon passes on only the variables that the run profile
    /// names.
    pub env: BTreeMap<String, String>,
    /// Destination of the run's questions.
    #[serde(default)]
    pub ask: RunAsk,
    /// Ports of services on this computer to which the program may connect without approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Ports on which the program listens and to which this computer may connect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub publish: Vec<u16>,
    /// Run profile; `None` selects the profile that matches the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<RunProfileChoice>,
    /// `true` to report, when the program exits, the files that it used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub learn: bool,
    /// Socket of the user's ssh agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_agent: Option<String>,
}

/// Destination of a run's questions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunAsk {
    /// The same destination as all other questions.
    #[default]
    #[serde(rename = "usual")]
    Default,
    /// The terminal that started the run, for this run only.
    Terminal,
    /// No destination: every question is denied.
    Deny,
}

/// Run profile chosen by the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunProfileChoice {
    /// Name of a configured profile.
    Named(String),
    /// Contents of a profile file, read by the process that starts the run.
    Given {
        /// Name of the file, for error messages.
        file: String,
        /// Contents of the file.
        text: String,
    },
}

/// Notification from the daemon to the process that started a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunNote {
    /// The program has started. Always the first notification.
    Started {
        /// Principal of the run, `run:NAME`.
        principal: String,
        /// Folder that the program may use without approval, if any.
        folder: Option<String>,
        /// Name of the run profile.
        profile: String,
        /// Limitation of this machine that affects the run, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limitation: Option<String>,
    },
    /// A question about this run is waiting for the user's answer.
    Waiting {
        /// Path or host that the program requested.
        path: String,
    },
    /// No more questions about this run are pending.
    Answered,
    /// Access that the program requested was denied.
    Denied {
        /// Path or host that the program requested.
        path: String,
        /// Reason for the denial; `None` if the user has just denied the access.
        why: Option<String>,
    },
    /// The run has ended. Always the last notification.
    Exited {
        /// Exit status, or 128 + the signal number.
        status: i32,
        /// Counts of the files and hosts that the run used.
        used: RunUse,
        /// Reason the run was terminated early; `None` if the program exited by itself.
        #[serde(rename = "cut_off")]
        end_reason: Option<String>,
        /// Files that the program used; empty unless [`RunHello::learn`] is set.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        learned: Vec<UsedFile>,
    },
}

/// Counts of a run's accesses outside its folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunUse {
    /// Number of files that the run was allowed to read.
    pub read: usize,
    /// Number of files that the run was allowed to write or remove.
    pub written: usize,
    /// Number of files and hosts that the run was denied.
    pub denied: usize,
}

/// File that a run used with the user's permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsedFile {
    /// Absolute path of the file.
    pub path: String,
    /// `true` if the run changed, created or removed the file.
    pub changed: bool,
}

/// Transport of the client's standard input and output to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StdioMode {
    /// Passed as two descriptors with the hello (`SCM_RIGHTS`): standard input, then standard output.
    HandedOver,
    /// Copied by the shim over this connection after the [`Welcome`].
    Relayed,
}

/// Daemon's reply to a [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Welcome {
    /// The connection is accepted.
    Accepted {
        /// [`crate::VERSION`] of the daemon.
        version: u32,
        /// Process id of the daemon.
        pid: u32,
        /// Id of the session opened for a shim; `None` for other connections.
        session: Option<String>,
    },
    /// The connection is refused.
    Refused(HelloRefusal),
}

/// Reason for refusing a connection, and what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloRefusal {
    /// Machine-readable reason.
    pub code: RefusalCode,
    /// Message for the user: what happened and what to do.
    pub message: String,
}

/// Reason for refusing a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalCode {
    /// The hello could not be parsed.
    Malformed,
    /// The daemon has a different protocol version.
    Version,
    /// The peer belongs to another user.
    OtherUser,
    /// No server or profile with this name is configured.
    UnknownServer,
    /// The daemon failed to read or write its own files.
    Unavailable,
    /// The daemon can ask the user itself, so the app cannot replace it.
    #[serde(rename = "stays")]
    CannotTakeOver,
}

/// Notification from the daemon to a shim that has handed over the client's pipes.
///
/// A call may wait indefinitely for the user's answer. If the daemon is killed during that time, the shim can still
/// report to the agent that the call was denied. If the app replaces the daemon, the shim continues the conversation
/// with the app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ShimNote {
    /// The user is being asked about the client request with this id.
    Asking {
        /// Request id as JSON text.
        request: String,
    },
    /// The request was answered, or another daemon will answer it.
    Settled {
        /// Request id as JSON text.
        request: String,
    },
    /// Another daemon continues the session. The shim must connect to it with this ticket.
    Moved {
        /// Ticket for [`ShimHello::resume`], valid once.
        ticket: String,
    },
}
