//! One line of the log. Field names are those of the existing IronCurtain system, with ours beside them.

use crate::{CallResult, EscalationResult, FileDecision, FileFinding, PolicyDecision};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The trusted process began or ended.
    Daemon,
    /// A session began or ended.
    Session,
    /// A server started, ended or was restarted.
    Server,
    /// The policy judged a call; written before the call is forwarded.
    Decision,
    /// The server answered a forwarded call.
    Outcome,
    /// A question was put to the person.
    Question,
    /// The person answered, or the question ended without an answer.
    Answer,
    /// A grant was given.
    Grant,
    /// A grant was taken back, or ended.
    Revoked,
    /// The policy, the configured servers or the settings in force changed.
    Policy,
    /// A server's connection was allowed, refused or failed; an allowed one is written before it goes out.
    Network,
    /// The server was refused a path by its sandbox, or its client one outside of the roots.
    #[serde(rename = "boundary_violation", alias = "boundary-violation")]
    BoundaryViolation,
    /// A session left or changed a file that runs later.
    FileLeft,
    /// A file that a session left, and that runs unasked, was moved to quarantine.
    FileQuarantined,
    /// Keys of a git configuration that a session changed were put back.
    FilePutBack,
    /// Not all that a session could write to was looked at.
    LookUnfinished,
    /// The person kept a file that a session left, moved it to quarantine, put it back or deleted it.
    FileDecided,
    /// The oldest entries were removed, because they were older than the log is kept.
    Retention,
    /// Lockdown began or ended.
    Lockdown,
    /// A session was paused or resumed, or a no for the rest of it was taken back.
    Pause,
}

impl Event {
    /// Returns `true` if a person decided it, now or by a setting, so that it must survive a power cut.
    #[must_use]
    pub fn is_a_persons(self) -> bool {
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

/// The differences between a policy and the one before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyChange {
    /// The hash of the one before.
    pub before: String,
    /// Names of rules that are new.
    pub added: Vec<String>,
    /// Names of rules that are gone.
    pub removed: Vec<String>,
    /// Names of rules that say something else.
    pub changed: Vec<String>,
    /// Folders that were open to a server for good, and are so no longer: those it loses.
    #[serde(default)]
    pub closed: Vec<String>,
}

/// The effect of another policy, by the rules alone. Counted after it came into force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyEffect {
    /// The hash of the policy before.
    pub before: String,
    /// Kinds of calls that come out looser.
    pub looser: usize,
    /// Kinds of calls that come out stricter.
    pub stricter: usize,
    /// Tools of whose calls not every kind was compared.
    #[serde(default)]
    pub cut_short: usize,
}

/// One entry. Absent fields are left out of the line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Position in the log, from 1; given by the writer.
    #[serde(skip_serializing_if = "is_unset", default)]
    pub seq: u64,
    /// Milliseconds since the Unix epoch; given by the writer.
    #[serde(skip_serializing_if = "is_unset", default)]
    pub timestamp: u64,
    /// The kind of entry.
    pub event: Event,
    /// One sentence for people; empty where the other fields say it all.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub summary: String,
    /// The decision that this is the end of, by its position. What that one says of the call is not repeated: readers fill it
    /// in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub of: Option<u64>,
    /// Joins the entries of one call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request_id: Option<String>,
    /// Session id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
    /// The client, by the name the kernel proved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client: Option<String>,
    /// The server.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server_name: Option<String>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_name: Option<String>,
    /// The method of a request that is no tool call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub method: Option<String>,
    /// The arguments as judged, or the parameters of another request, secrets redacted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub arguments: Option<Map<String, Value>>,
    /// Names of the arguments that are the paths concerned, where these stand among the arguments as they are. Readers turn
    /// them into [`Entry::paths`].
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub at: Vec<String>,
    /// Paths concerned, canonical.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub paths: Vec<String>,
    /// The path that was refused, of a boundary that was to be crossed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// The folders inside of it, as the server is told of them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub roots: Vec<String>,
    /// The host concerned, in its canonical spelling.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<String>,
    /// Its port.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub port: Option<u16>,
    /// The addresses its name led to.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub addresses: Vec<String>,
    /// The policy's decision.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy_decision: Option<PolicyDecision>,
    /// The hash of the policy by which it was judged, or which is in force from now on. A decision that was made by the same
    /// policy as the decision before it in its file does not repeat it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy_hash: Option<String>,
    /// The change of the policy.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy_change: Option<PolicyChange>,
    /// The effect of that change.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy_effect: Option<PolicyEffect>,
    /// The end of the question.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub escalation_result: Option<EscalationResult>,
    /// The end of what was allowed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<CallResult>,
    /// The time that it took.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duration_ms: Option<u64>,
    /// The server really ran in an OS sandbox.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandboxed: Option<bool>,
    /// The question concerned.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub question_id: Option<String>,
    /// The grant concerned.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grant_id: Option<String>,
    /// A finding of files that run later, without their content.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub finding: Option<FileFinding>,
    /// The person's decision about such a file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file_decision: Option<FileDecision>,
    /// The time that the person took.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub human_ms: Option<u64>,
    /// The older entries that are kept no longer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub removed: Option<Removed>,
    /// Hash of the entry before, in the first entry of a file; given by the writer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prev: Option<String>,
}

/// Entries that were removed because they were older than the log is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// The number of entries that are gone, from the first one.
    pub entries: u64,
    /// The hash of the last of them.
    pub link: String,
}

impl Entry {
    /// An entry with nothing but what happened.
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

    /// The end of what the decision at this position allowed.
    #[must_use]
    pub fn end_of(decision: u64, result: CallResult, duration_ms: u64) -> Self {
        Self {
            of: Some(decision),
            result: Some(result),
            duration_ms: Some(duration_ms),
            ..Self::new(Event::Outcome, "")
        }
    }

    /// Another entry about the same thing: the same call, paths and host, and the same question.
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

    /// Notes the host that it is about.
    pub fn about_host(&mut self, host: impl ToString, port: u16) {
        (self.host, self.port) = (Some(host.to_string()), Some(port));
    }
}

fn is_unset(number: &u64) -> bool {
    *number == 0
}
