//! One line of the log. Field names follow the existing IronCurtain system, with additions.

use crate::{CallResult, EscalationResult, FileDecision, FileFinding, PolicyDecision};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The trusted process started or stopped.
    Daemon,
    /// A session started or finished.
    Session,
    /// A server started, stopped or was restarted.
    Server,
    /// Policy decided on a call; written before the call is forwarded.
    Decision,
    /// The server responded to a forwarded call.
    Outcome,
    /// The user was asked a question.
    Question,
    /// The user answered, or the question was closed without an answer.
    Answer,
    /// A grant was added.
    Grant,
    /// A grant was revoked or expired.
    Revoked,
    /// The policy, the configured servers or the active settings changed.
    Policy,
    /// A server's connection was allowed, refused or failed. Allowed ones are written before connecting.
    Network,
    /// The sandbox refused a path to the server, or the client used one outside the roots.
    #[serde(rename = "boundary_violation", alias = "boundary-violation")]
    BoundaryViolation,
    /// A session created or changed an autostart file.
    FileLeft,
    /// An autostart file of a session was moved to quarantine.
    FileQuarantined,
    /// Keys of a git configuration that a session had changed were restored.
    FilePutBack,
    /// Some writable paths of a session could not be checked.
    LookUnfinished,
    /// The user kept an autostart file, quarantined it, restored it or deleted it.
    FileDecided,
    /// Entries older than the retention time were removed.
    Retention,
    /// Lockdown was turned on or off.
    Lockdown,
    /// A session was paused or resumed, or a denial for its rest was revoked.
    Pause,
}

impl Event {
    /// Returns `true` if the user decided it, directly or by a setting, so that it must survive a power failure.
    #[must_use]
    pub(crate) fn is_a_persons(self) -> bool {
        match self {
            Self::Answer
            | Self::Grant
            | Self::Revoked
            | Self::Policy
            | Self::FileDecided
            | Self::Retention
            | Self::Lockdown
            | Self::Pause => true,
            Self::Daemon
            | Self::Session
            | Self::Server
            | Self::Decision
            | Self::Outcome
            | Self::Question
            | Self::Network
            | Self::BoundaryViolation
            | Self::FileLeft
            | Self::FileQuarantined
            | Self::FilePutBack
            | Self::LookUnfinished => false,
        }
    }
}

/// Differences between two policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyChange {
    /// Hash of the previous policy.
    pub before: String,
    /// Names of new rules.
    pub added: Vec<String>,
    /// Names of removed rules.
    pub removed: Vec<String>,
    /// Names of changed rules.
    pub changed: Vec<String>,
    /// Folders to which a server loses its permanent access.
    #[serde(default)]
    pub closed: Vec<String>,
}

/// Effect of a policy change, by the rules alone. Computed after the policy took effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyEffect {
    /// Hash of the previous policy.
    pub before: String,
    /// Number of kinds of calls that are decided less strictly.
    pub looser: usize,
    /// Number of kinds of calls that are decided more strictly.
    pub stricter: usize,
    /// Number of tools whose kinds of calls were not all compared.
    #[serde(default)]
    pub cut_short: usize,
}

/// One entry. Fields without a value are omitted from the line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Position in the log, from 1; assigned by the writer.
    #[serde(skip_serializing_if = "is_unset", default)]
    pub seq: u64,
    /// Milliseconds since the Unix epoch; assigned by the writer.
    #[serde(skip_serializing_if = "is_unset", default)]
    pub timestamp: u64,
    /// Kind of entry.
    pub event: Event,
    /// One sentence for people; empty if the other fields suffice.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub summary: String,
    /// Position of the decision that led to this outcome. Readers fill in the decision's details,
    /// which are not repeated here.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub of: Option<u64>,
    /// Shared by the entries of one call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request_id: Option<String>,
    /// Session id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
    /// Client name, as verified by the kernel.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client: Option<String>,
    /// Server name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server_name: Option<String>,
    /// Tool name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_name: Option<String>,
    /// Method of a request other than a tool call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub method: Option<String>,
    /// Arguments as judged, or the parameters of another request, with secrets redacted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub arguments: Option<Map<String, Value>>,
    /// Names of the arguments whose values are the affected paths. Readers convert them to [`Entry::paths`].
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub at: Vec<String>,
    /// Affected paths, canonical.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub paths: Vec<String>,
    /// Path refused by a boundary.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// Folders inside the boundary, as announced to the server.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub roots: Vec<String>,
    /// Host, in canonical spelling.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<String>,
    /// Port of the host.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub port: Option<u16>,
    /// Resolved addresses of the host.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub addresses: Vec<String>,
    /// Policy decision.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy_decision: Option<PolicyDecision>,
    /// Hash of the policy that decided, or of the policy now in force. Omitted if it equals that of the previous decision in
    /// the same file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy_hash: Option<String>,
    /// Change of the policy.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy_change: Option<PolicyChange>,
    /// Effect of that change.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy_effect: Option<PolicyEffect>,
    /// Outcome of the question.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub escalation_result: Option<EscalationResult>,
    /// Outcome of an allowed call or connection.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<CallResult>,
    /// Duration in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duration_ms: Option<u64>,
    /// Set if the server really ran in an OS sandbox.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandboxed: Option<bool>,
    /// Id of the question.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub question_id: Option<String>,
    /// Id of the grant.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grant_id: Option<String>,
    /// Finding about an autostart file, without its content.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub finding: Option<FileFinding>,
    /// The user's decision about an autostart file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file_decision: Option<FileDecision>,
    /// Time that the user took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub human_ms: Option<u64>,
    /// Older entries that were removed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub removed: Option<Removed>,
    /// Hash of the previous entry, in the first entry of a file; assigned by the writer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prev: Option<String>,
}

/// Entries removed because they were older than the retention time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Number of removed entries, counted from the first.
    pub entries: u64,
    /// Hash of the last removed entry.
    pub link: String,
}

impl Entry {
    /// Creates an entry with only its kind and summary.
    #[must_use]
    pub fn new(event: Event, summary: impl Into<String>) -> Self {
        Self {
            seq: 0,
            timestamp: 0,
            event,
            summary: summary.into(),
            of: None,
            request_id: None,
            session: None,
            client: None,
            server_name: None,
            tool_name: None,
            method: None,
            arguments: None,
            at: Vec::new(),
            paths: Vec::new(),
            path: None,
            roots: Vec::new(),
            host: None,
            port: None,
            addresses: Vec::new(),
            policy_decision: None,
            policy_hash: None,
            policy_change: None,
            policy_effect: None,
            escalation_result: None,
            result: None,
            duration_ms: None,
            sandboxed: None,
            question_id: None,
            grant_id: None,
            finding: None,
            file_decision: None,
            human_ms: None,
            removed: None,
            prev: None,
        }
    }

    /// Creates the outcome of the decision at this position.
    #[must_use]
    pub fn end_of(decision: u64, result: CallResult, duration_ms: u64) -> Self {
        Self {
            of: Some(decision),
            result: Some(result),
            duration_ms: Some(duration_ms),
            ..Self::new(Event::Outcome, "")
        }
    }

    /// Creates another entry about the same call, paths, host and question.
    #[must_use]
    pub fn follow_up(&self, event: Event, summary: impl Into<String>) -> Self {
        Self {
            request_id: self.request_id.clone(),
            session: self.session.clone(),
            client: self.client.clone(),
            server_name: self.server_name.clone(),
            tool_name: self.tool_name.clone(),
            method: self.method.clone(),
            paths: self.paths.clone(),
            host: self.host.clone(),
            port: self.port,
            sandboxed: self.sandboxed,
            question_id: self.question_id.clone(),
            ..Self::new(event, summary)
        }
    }

    /// Sets the host that the entry is about.
    pub fn about_host(&mut self, host: impl ToString, port: u16) {
        (self.host, self.port) = (Some(host.to_string()), Some(port));
    }
}

fn is_unset(number: &u64) -> bool {
    *number == 0
}
