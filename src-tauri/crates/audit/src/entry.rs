//! Log entries, one per line. Uses the field names of the existing IronCurtain system, and adds some of its own.

use crate::{CallResult, EscalationResult, FileDecision, FileFinding, PolicyDecision};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Kind of entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The trusted process started or stopped.
    Daemon,
    /// A session started or ended.
    Session,
    /// A server started, stopped or was restarted.
    Server,
    /// The policy decided on a call. Written before the call is forwarded.
    Decision,
    /// The server responded to a forwarded call, or failed to.
    Outcome,
    /// The user was asked for approval.
    Question,
    /// The user answered, or the question closed without an answer.
    Answer,
    /// A grant was added.
    Grant,
    /// A grant was revoked or expired.
    Revoked,
    /// The active policy, the configured servers or the active settings changed.
    Policy,
    /// A server's connection was allowed or refused, or it failed. Written before an allowed connection is opened.
    Network,
    /// The sandbox refused a path to the server, or the client used a path outside the server's roots.
    #[serde(rename = "boundary_violation", alias = "boundary-violation")]
    BoundaryViolation,
    /// A session created or changed an autostart file.
    #[serde(rename = "file-left")]
    AutostartFileChanged,
    /// An autostart file of a session was moved to quarantine.
    FileQuarantined,
    /// Git configuration keys that a session had changed were restored.
    #[serde(rename = "file-put-back")]
    GitConfigRestored,
    /// Some of a session's writable paths could not be checked for autostart files.
    #[serde(rename = "look-unfinished")]
    ScanIncomplete,
    /// The user kept, quarantined, restored or deleted an autostart file.
    FileDecided,
    /// Entries older than the retention time were removed.
    Retention,
    /// Lockdown was turned on or off.
    Lockdown,
    /// A session was paused or resumed, or a session-long denial was revoked.
    Pause,
    /// The user restored paths in a run's folder. Written before and after the paths are restored.
    Undo,
}

impl Event {
    /// Returns `true` if the entry results from the user's decision or setting and must therefore survive a power
    /// failure.
    #[must_use]
    pub(crate) fn is_user_decision(self) -> bool {
        match self {
            Self::Answer
            | Self::Grant
            | Self::Revoked
            | Self::Policy
            | Self::FileDecided
            | Self::Retention
            | Self::Lockdown
            | Self::Pause
            | Self::Undo => true,
            Self::Daemon
            | Self::Session
            | Self::Server
            | Self::Decision
            | Self::Outcome
            | Self::Question
            | Self::Network
            | Self::BoundaryViolation
            | Self::AutostartFileChanged
            | Self::FileQuarantined
            | Self::GitConfigRestored
            | Self::ScanIncomplete => false,
        }
    }
}

/// Differences between a policy and the one that it replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyChange {
    /// Hash of the replaced policy.
    pub before: String,
    /// Names of the new rules.
    pub added: Vec<String>,
    /// Names of the removed rules.
    pub removed: Vec<String>,
    /// Names of the changed rules.
    pub changed: Vec<String>,
    /// Folders to which a server no longer has permanent access.
    #[serde(default)]
    pub closed: Vec<String>,
}

/// Effect of a policy change on decisions, computed from the rules alone after the policy has taken effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyEffect {
    /// Hash of the replaced policy.
    pub before: String,
    /// Number of kinds of calls with a less strict decision.
    pub looser: usize,
    /// Number of kinds of calls with a stricter decision.
    pub stricter: usize,
    /// Number of tools for which only some kinds of calls were compared.
    #[serde(default)]
    pub cut_short: usize,
}

/// Entry of the log. Fields without a value are omitted from its line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Sequence number, counted from 1; assigned by the writer.
    #[serde(skip_serializing_if = "is_unset", default)]
    pub seq: u64,
    /// Time in milliseconds since the Unix epoch; assigned by the writer.
    #[serde(skip_serializing_if = "is_unset", default)]
    pub timestamp: u64,
    /// Kind of entry.
    pub event: Event,
    /// Summary in one sentence. Empty if the other fields contain the same information.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub summary: String,
    /// Sequence number of the decision to which this outcome belongs. Readers fill in the outcome's omitted fields from
    /// that decision.
    #[serde(rename = "of", skip_serializing_if = "Option::is_none", default)]
    pub decision_seq: Option<u64>,
    /// Id that all entries of a call share.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request_id: Option<String>,
    /// Id of the session.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
    /// Name of the client, as verified by the kernel's peer credentials.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client: Option<String>,
    /// Name of the server.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server_name: Option<String>,
    /// Name of the tool.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_name: Option<String>,
    /// Method of the request, if it is not a tool call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub method: Option<String>,
    /// Arguments of the tool call, or parameters of any other request. Secrets are redacted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub arguments: Option<Map<String, Value>>,
    /// Names of the arguments whose values are the affected paths. Readers copy these values to [`Entry::paths`].
    #[serde(rename = "at", skip_serializing_if = "Vec::is_empty", default)]
    pub path_arguments: Vec<String>,
    /// Canonical paths that the entry affects.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub paths: Vec<String>,
    /// Path that the sandbox refused, or that is outside the server's roots.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// Folders that the server may access, as announced to it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub roots: Vec<String>,
    /// Host in canonical form.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<String>,
    /// Port of the host.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub port: Option<u16>,
    /// Addresses to which the host resolved.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub addresses: Vec<String>,
    /// Decision of the policy, if the entry records one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy_decision: Option<PolicyDecision>,
    /// Hash of the policy that made the decision, or that is now active. Omitted if the previous decision in the same
    /// file has the same hash.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy_hash: Option<String>,
    /// Change of the policy, if the entry records one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy_change: Option<PolicyChange>,
    /// Effect of a policy change, if the entry records one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy_effect: Option<PolicyEffect>,
    /// Outcome of a question to the user.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub escalation_result: Option<EscalationResult>,
    /// Outcome of an allowed call or connection.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<CallResult>,
    /// Duration of the call in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duration_ms: Option<u64>,
    /// `true` if the server ran in an OS sandbox.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandboxed: Option<bool>,
    /// Id of the question to the user.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub question_id: Option<String>,
    /// Id of the grant that was used, added or revoked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grant_id: Option<String>,
    /// Finding about an autostart file, without its contents.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub finding: Option<FileFinding>,
    /// The user's decision about an autostart file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file_decision: Option<FileDecision>,
    /// Time that the user took to answer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub human_ms: Option<u64>,
    /// Older entries that were removed, if the entry records a removal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub removed: Option<Removed>,
    /// Hash of the previous entry. Present only in the first entry of a file; assigned by the writer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prev: Option<String>,
}

/// Entries that were removed because they exceeded the retention time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Number of removed entries, counted from the first entry.
    pub entries: u64,
    /// Hash of the last removed entry.
    pub link: String,
}

impl Entry {
    /// Creates an entry that has only a kind and a summary.
    #[must_use]
    pub fn new(event: Event, summary: impl Into<String>) -> Self {
        Self {
            seq: 0,
            timestamp: 0,
            event,
            summary: summary.into(),
            decision_seq: None,
            request_id: None,
            session: None,
            client: None,
            server_name: None,
            tool_name: None,
            method: None,
            arguments: None,
            path_arguments: Vec::new(),
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

    /// Creates the outcome that belongs to the decision with the sequence number `decision`.
    #[must_use]
    pub fn outcome_of(decision: u64, result: CallResult, duration_ms: u64) -> Self {
        Self {
            decision_seq: Some(decision),
            result: Some(result),
            duration_ms: Some(duration_ms),
            ..Self::new(Event::Outcome, "")
        }
    }

    /// Creates a further entry about the same call, paths, host and question.
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

    /// Sets the entry's host and port.
    pub fn set_host(&mut self, host: impl ToString, port: u16) {
        (self.host, self.port) = (Some(host.to_string()), Some(port));
    }
}

fn is_unset(number: &u64) -> bool {
    *number == 0
}
