//! Exported form of an entry, built from an allowlist of its fields.
//!
//! - INVARIANT: arguments, summaries, reasons, roots and file contents are never read, because they can contain text
//!   that an agent or a server chose.

use crate::names;
use crate::paths::PathForm;
use ironcurtain_audit::{
    CallResult, Entry, Event, FileDecision, FileFinding, LostRange, Status, redacted_text,
};

/// Maximum number of paths in one event.
const MAX_PATHS: usize = 100;

/// Maximum length of an exported name, in bytes. Agents choose the names of tools and methods.
const MAX_NAME_LEN: usize = 256;

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Attribute {
    Text(String),
    Number(i64),
    Flag(bool),
    List(Vec<String>),
}

/// Severity of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    Info,
    Warning,
}

/// Event to export.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedEvent {
    pub(crate) time_ms: u64,
    pub(crate) name: String,
    pub(crate) severity: Severity,
    /// Fixed text, independent of the entry's content.
    pub(crate) body: String,
    pub(crate) attributes: Vec<(&'static str, Attribute)>,
}

impl ExportedEvent {
    /// Converts an entry. `link` is the entry's hash.
    #[must_use]
    pub fn from_entry(entry: &Entry, link: &str, form: &PathForm) -> Self {
        let decision = entry.policy_decision.as_ref();
        let status = decision.map(|decision| &decision.status);
        let is_call = entry.tool_name.is_some();
        let mut event = Self {
            time_ms: entry.timestamp,
            name: format!("{}{}", names::EVENT_PREFIX, event_name(entry.event)),
            severity: severity(entry.event, status),
            body: body(entry.event, status).to_owned(),
            attributes: Vec::new(),
        };
        event.id(names::UID, link);
        event.number(names::SEQ, Some(entry.seq));
        event.text(names::SESSION, entry.session.as_deref());
        event.text(names::CLIENT, entry.client.as_deref());
        event.text(names::SERVER, entry.server_name.as_deref());
        event.text(names::METHOD, entry.method.as_deref().or(is_call.then_some("tools/call")));
        event.text(names::OPERATION, is_call.then_some("execute_tool"));
        event.text(names::TOOL, entry.tool_name.as_deref());
        event.text(names::CALL, entry.request_id.as_deref());
        event.text(names::DECISION, status.map(Status::as_str));
        event.text(names::RULE, decision.map(|decision| decision.rule.as_str()));
        let basis = decision.and_then(|decision| decision.basis());
        event.text(names::GROUND, basis.as_ref().map(|basis| basis.as_str()));
        event.text(names::POLICY, entry.policy_hash.as_deref());
        event.text(names::ANSWER, entry.escalation_result.as_ref().map(|answer| answer.as_str()));
        event.number(names::ANSWER_MS, entry.human_ms);
        event.text(names::RESULT, entry.result.as_ref().map(CallResult::as_str));
        event.text(names::ERROR, entry.result.as_ref().and_then(error));
        event.number(names::DURATION_MS, entry.duration_ms);
        event.attributes.extend(entry.sandboxed.map(|on| (names::SANDBOXED, Attribute::Flag(on))));
        event.number(names::OF, entry.decision_seq);
        event.text(names::QUESTION, entry.question_id.as_deref());
        event.text(names::GRANT, entry.grant_id.as_deref());
        event.text(names::HOST, entry.host.as_deref());
        event.number(names::PORT, entry.port.map(u64::from));
        let paths: Vec<String> = paths(entry).take(MAX_PATHS).filter_map(|path| form.format(path)).collect();
        if !paths.is_empty() {
            event.attributes.push((names::PATHS, Attribute::List(paths)));
        }
        event
    }

    /// Creates the event that reports entries that were not exported.
    pub(crate) fn lost(range: &LostRange, time_ms: u64) -> Self {
        let mut event = Self {
            time_ms,
            name: names::LOST_EVENT.to_owned(),
            severity: Severity::Warning,
            body: "entries were not exported".to_owned(),
            attributes: Vec::new(),
        };
        event.id(names::UID, &format!("lost-{}-{}", range.after.head, range.until.head));
        event.number(names::LOST_FIRST, Some(range.after.entries + 1));
        event.number(names::LOST_LAST, Some(range.until.entries));
        event.id(names::LOST_AFTER, &range.after.head);
        event.id(names::LOST_UNTIL, &range.until.head);
        event
    }

    /// Creates the event for a signed head. The body is the head's line.
    pub(crate) fn head(line: &str, uid: &str, time_ms: u64) -> Self {
        let mut event = Self {
            time_ms,
            name: names::HEAD_EVENT.to_owned(),
            severity: Severity::Info,
            body: line.to_owned(),
            attributes: Vec::new(),
        };
        event.id(names::UID, uid);
        event
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// Returns the text of an attribute.
    pub(crate) fn get_text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Attribute::Text(text) => Some(text),
            Attribute::Number(_) | Attribute::Flag(_) | Attribute::List(_) => None,
        }
    }

    /// Adds a text attribute, truncated and with secrets redacted.
    fn text(&mut self, name: &'static str, value: Option<&str>) {
        let Some(value) = value else { return };
        let truncated = value.get(..value.floor_char_boundary(MAX_NAME_LEN)).unwrap_or_default();
        self.attributes.push((name, Attribute::Text(redacted_text(truncated))));
    }

    /// Adds one of IronCurtain's own ids without redaction, because redaction could mistake the id for a secret.
    fn id(&mut self, name: &'static str, value: &str) {
        self.attributes.push((name, Attribute::Text(value.to_owned())));
    }

    fn number(&mut self, name: &'static str, value: Option<u64>) {
        let Some(value) = value else { return };
        self.attributes.push((name, Attribute::Number(i64::try_from(value).unwrap_or(i64::MAX))));
    }
}

/// Returns the paths that an entry affects.
fn paths(entry: &Entry) -> impl Iterator<Item = &str> {
    let found: [Option<&String>; 2] = match &entry.finding {
        Some(FileFinding::Quarantined { path, moved_to, .. }) => [Some(path), Some(moved_to)],
        Some(FileFinding::Restored { path, .. } | FileFinding::InPlace { path, .. }) => [Some(path), None],
        Some(FileFinding::ScanIncomplete { .. }) | None => [None, None],
    };
    let decided_path = match &entry.file_decision {
        Some(FileDecision::Quarantined { moved_to } | FileDecision::Exchanged { moved_to }) => Some(moved_to),
        Some(FileDecision::Kept | FileDecision::Returned | FileDecision::Deleted) | None => None,
    };
    entry
        .paths
        .iter()
        .chain(&entry.path)
        .chain(found.into_iter().flatten())
        .chain(decided_path)
        .map(String::as_str)
}

/// Returns the error class of a failed call, or `None` if it succeeded.
fn error(result: &CallResult) -> Option<&'static str> {
    match result {
        CallResult::Ok => None,
        CallResult::Error => Some("tool_error"),
        CallResult::NoAnswer => Some("timeout"),
        CallResult::GivenUp => Some("cancelled"),
        CallResult::BlockedBySandbox => Some("sandbox"),
        CallResult::RefusedByServer | CallResult::Refused | CallResult::Other(_) => Some("_OTHER"),
    }
}

fn severity(event: Event, status: Option<&Status>) -> Severity {
    let is_denied = matches!(status, Some(Status::Deny));
    if is_denied || matches!(event, Event::BoundaryViolation | Event::FileQuarantined | Event::ScanIncomplete)
    {
        Severity::Warning
    } else {
        Severity::Info
    }
}

/// Returns the last part of the event's name.
fn event_name(event: Event) -> &'static str {
    match event {
        Event::Daemon => "daemon",
        Event::Session => "session",
        Event::Server => "server",
        Event::Decision => "decision",
        Event::Outcome => "outcome",
        Event::Question => "question",
        Event::Answer => "answer",
        Event::Grant => "grant",
        Event::Revoked => "revoked",
        Event::Policy => "policy",
        Event::Network => "network",
        Event::BoundaryViolation => "boundary_violation",
        Event::AutostartFileChanged => "file_left",
        Event::FileQuarantined => "file_quarantined",
        Event::GitConfigRestored => "file_put_back",
        Event::ScanIncomplete => "look_unfinished",
        Event::FileDecided => "file_decided",
        Event::Retention => "retention",
        Event::Lockdown => "lockdown",
        Event::Pause => "pause",
        Event::Undo => "undo",
    }
}

/// Returns the fixed text for an event.
fn body(event: Event, status: Option<&Status>) -> &'static str {
    match (event, status) {
        (Event::Decision, Some(Status::Allow)) => "request allowed",
        (Event::Decision, Some(Status::Deny)) => "request denied",
        (Event::Decision, Some(Status::Escalate | Status::Other(_)) | None) => "request decided",
        (Event::Network, Some(Status::Allow)) => "connection allowed",
        (Event::Network, Some(Status::Deny)) => "connection denied",
        (Event::Network, Some(Status::Escalate | Status::Other(_)) | None) => "connection",
        (Event::Daemon, _) => "trusted process started, stopped or reported",
        (Event::Session, _) => "session started or ended",
        (Event::Server, _) => "server started or stopped",
        (Event::Outcome, _) => "request completed",
        (Event::Question, _) => "user asked",
        (Event::Answer, _) => "question closed",
        (Event::Grant, _) => "grant added",
        (Event::Revoked, _) => "grant ended",
        (Event::Policy, _) => "policy or settings changed",
        (Event::BoundaryViolation, _) => "path outside the roots refused",
        (Event::AutostartFileChanged, _) => "autostart file created or changed",
        (Event::FileQuarantined, _) => "autostart file quarantined",
        (Event::GitConfigRestored, _) => "git configuration restored",
        (Event::ScanIncomplete, _) => "autostart check incomplete",
        (Event::FileDecided, _) => "user decided about an autostart file",
        (Event::Retention, _) => "old entries removed",
        (Event::Lockdown, _) => "lockdown changed",
        (Event::Pause, _) => "session paused or resumed",
        (Event::Undo, _) => "user restored paths in the folder of a run",
    }
}
