//! OCSF API Activity events (class 6003), one JSON object per line.
//!
//! - The file stores its own position: the last line contains the hash of the last exported entry. The next run
//!   continues after that entry.

use crate::event::ExportedEvent;
use crate::event::Severity;
use crate::names;
use crate::otlp::attributes_as_json;
use crate::paths::PathForm;
use ironcurtain_audit::{FollowedEntry, Follower, LogPosition, LostRange};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Version of the schema.
const SCHEMA: &str = "1.6.0";

/// Number of the category "Application Activity", which contains the class "API Activity".
const CATEGORY: u32 = 6;
const CLASS: u32 = 6003;

/// First bytes of every event.
const PREFIX: &[u8] = b"{\"activity_id\":";

/// Number of bytes at the tail of the file that are searched for the last line.
const LAST_LINE: u64 = 1024 * 1024;

/// Error returned when events cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum OcsfError {
    /// The log cannot be read.
    #[error("failed to read the audit log: {0}")]
    Log(io::Error),
    /// The file cannot be written.
    #[error("failed to write the events: {0}")]
    Write(io::Error),
    /// Another process is writing the file.
    #[error("another process is writing the file; run the command again once it is done")]
    Busy,
    /// The file contains other data.
    #[error("the last line of the file is not an IronCurtain event; choose another file")]
    Foreign,
    /// The last event is not in the log.
    #[error("entry {0} of the file is not in the log, which was replaced; choose another file")]
    Replaced(u64),
}

/// Result of appending to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OcsfWritten {
    /// Number of appended events.
    pub events: u64,
    /// Number of entries that the log no longer contains.
    pub lost: u64,
}

/// Appends the entries that are not yet in `file`. Creates the file with access for the user only.
///
/// # Errors
/// Returns [`OcsfError`] if reading or writing fails. Complete events may have been appended before the error.
pub fn append_ocsf(log: &Path, file: &Path, form: &PathForm) -> Result<OcsfWritten, OcsfError> {
    let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(file);
    let mut file = file.map_err(OcsfError::Write)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(OcsfError::Busy),
        Err(TryLockError::Error(problem)) => return Err(OcsfError::Write(problem)),
    }
    let last = last_event(&mut file)?;
    let start = LogPosition::oldest(log).map_err(OcsfError::Log)?;
    let mut follower = Follower::new(log, start);
    let mut written = OcsfWritten { events: 0, lost: 0 };
    if let Some(last) = &last {
        written.lost = follower.position().written.entries.saturating_sub(last.sequence);
    }
    let mut out = BufWriter::new(file);
    let mut found_last = written.lost > 0;
    while let Some(next) = follower.read_next().map_err(OcsfError::Log)? {
        let (entry, link) = match next {
            FollowedEntry::Entry { entry, link, .. } => (entry, link),
            FollowedEntry::Lost(LostRange { after, until }) => {
                let written_until = last.as_ref().map_or(0, |last| last.sequence);
                written.lost += until.entries.saturating_sub(after.entries.max(written_until));
                found_last |= until.entries >= written_until;
                continue;
            }
        };
        if let Some(last) = last.as_ref().filter(|last| entry.seq <= last.sequence) {
            if entry.seq == last.sequence && link != last.uid {
                return Err(OcsfError::Replaced(last.sequence));
            }
            found_last = true;
            continue;
        }
        if let Some(last) = last.as_ref().filter(|_| !found_last) {
            return Err(OcsfError::Replaced(last.sequence));
        }
        let event = ocsf(&ExportedEvent::from_entry(&entry, &link, form), entry.seq);
        writeln!(out, "{event}").map_err(OcsfError::Write)?;
        written.events += 1;
    }
    if let Some(last) = last.filter(|last| follower.position().written.entries < last.sequence) {
        return Err(OcsfError::Replaced(last.sequence));
    }
    out.flush().map_err(OcsfError::Write)?;
    out.get_ref().sync_all().map_err(OcsfError::Write)?;
    Ok(written)
}

#[derive(Deserialize)]
struct Metadata {
    uid: String,
    sequence: u64,
}

/// Returns the file's last event. Removes an incomplete last line.
fn last_event(file: &mut File) -> Result<Option<Metadata>, OcsfError> {
    #[derive(Deserialize)]
    struct Event {
        metadata: Metadata,
    }
    let length = file.metadata().map_err(OcsfError::Write)?.len();
    let begin = length.saturating_sub(LAST_LINE);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(begin)).map_err(OcsfError::Write)?;
    file.read_to_end(&mut tail).map_err(OcsfError::Write)?;
    let end_of_file = tail.clone();
    let complete = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    tail.truncate(complete);
    let Some(line) = tail.split(|byte| *byte == b'\n').rev().find(|line| !line.is_empty()) else {
        // Remove an incomplete first line only if it starts like an event.
        let is_ours = end_of_file.starts_with(PREFIX) || PREFIX.starts_with(&end_of_file);
        if !is_ours || begin > 0 {
            return Err(OcsfError::Foreign);
        }
        file.set_len(0).map_err(OcsfError::Write)?;
        return Ok(None);
    };
    let event: Event = serde_json::from_slice(line).map_err(|_| OcsfError::Foreign)?;
    file.set_len(begin + complete as u64).map_err(OcsfError::Write)?;
    Ok(Some(event.metadata))
}

/// Returns the event in OCSF form.
fn ocsf(event: &ExportedEvent, seq: u64) -> Value {
    let text = |name| event.get_text(name);
    let (activity, activity_name) = match text(names::METHOD) {
        Some("resources/read") => (2, "Read"),
        Some(method) => (99, method),
        None => (99, event.name.as_str()),
    };
    let decision = text(names::DECISION);
    let (status, status_name) = match (text(names::ERROR), decision) {
        (Some(_), _) | (None, Some("deny")) => (2, "Failure"),
        (None, Some("allow")) => (1, "Success"),
        (None, _) if text(names::RESULT) == Some("ok") => (1, "Success"),
        (None, _) => (0, "Unknown"),
    };
    let (severity, severity_name) = match event.severity {
        Severity::Info => (1, "Informational"),
        Severity::Warning => (3, "Medium"),
    };
    let operation = text(names::TOOL).or(text(names::METHOD)).unwrap_or(&event.name);
    let client = text(names::CLIENT).unwrap_or("ironcurtain");
    let mut api = Map::from_iter([("operation".to_owned(), Value::from(operation))]);
    if let Some(server) = text(names::SERVER) {
        api.insert("service".to_owned(), json!({ "name": server }));
    }
    if let Some(call) = text(names::CALL) {
        api.insert("request".to_owned(), json!({ "uid": call }));
    }
    if let Some(error) = text(names::ERROR) {
        api.insert("response".to_owned(), json!({ "error": error }));
    }
    let mut actor = Map::from_iter([("app_name".to_owned(), Value::from(client))]);
    if let Some(session) = text(names::SESSION) {
        actor.insert("session".to_owned(), json!({ "uid": session }));
    }
    let mut all = json!({
        "activity_id": activity,
        "activity_name": activity_name,
        "actor": actor,
        "api": api,
        "category_name": "Application Activity",
        "category_uid": CATEGORY,
        "class_name": "API Activity",
        "class_uid": CLASS,
        "message": event.body,
        "metadata": {
            "event_code": event.name,
            // Defines `action` and `action_id`.
            "profiles": if decision.is_some() { &["security_control"][..] } else { &[] },
            "product": { "name": "IronCurtain Desktop", "vendor_name": "IronCurtain", "version": env!("CARGO_PKG_VERSION") },
            "sequence": seq,
            "uid": text(names::UID),
            "version": SCHEMA,
        },
        "severity": severity_name,
        "severity_id": severity,
        "src_endpoint": { "name": client },
        "status": status_name,
        "status_id": status,
        "time": event.time_ms,
        "type_name": format!("API Activity: {}", if activity == 2 { "Read" } else { "Other" }),
        "type_uid": CLASS * 100 + activity,
        "unmapped": attributes_as_json(event),
    });
    let attributes = attributes_as_json(event);
    let mut add =
        |name: &str, value: Value| drop(all.as_object_mut().map(|all| all.insert(name.to_owned(), value)));
    if let Some((id, name)) = decision.map(action) {
        add("action", name.into());
        add("action_id", id.into());
    }
    if let Some(duration) = attributes.get(names::DURATION_MS) {
        add("duration", duration.clone());
    }
    if let Some(host) = attributes.get(names::HOST) {
        let port = attributes.get(names::PORT).cloned().unwrap_or_default();
        add("dst_endpoint", json!({ "hostname": host, "port": port }));
    }
    if let Some(Value::Array(paths)) = attributes.get(names::PATHS) {
        let resource = |path: &Value| json!({ "name": path, "type": "path" });
        add("resources", paths.iter().map(resource).collect());
    }
    all
}

/// Returns the id and the name of the action for a decision. For another action, the name is our own.
fn action(decision: &str) -> (u32, &str) {
    match decision {
        "allow" => (1, "Allowed"),
        "deny" => (2, "Denied"),
        other => (99, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_audit::{Audit, DecidedBy, Entry, Event, PolicyDecision};

    /// Attributes that the schema requires for the class.
    const REQUIRED: [&str; 10] = [
        "activity_id",
        "actor",
        "api",
        "category_uid",
        "class_uid",
        "metadata",
        "severity_id",
        "src_endpoint",
        "time",
        "type_uid",
    ];

    fn denied() -> Entry {
        let mut entry = Entry::new(Event::Decision, "never exported");
        entry.tool_name = Some("read_file".to_owned());
        entry.paths = vec!["/home/u/a".to_owned()];
        entry.policy_decision = Some(PolicyDecision::deny(DecidedBy::NoRule, "default", "never exported"));
        entry
    }

    fn lines(file: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[tokio::test]
    async fn each_run_appends_what_is_new() {
        let dir = tempfile::tempdir().unwrap();
        let (log, file) = (dir.path().join("audit"), dir.path().join("ocsf.jsonl"));
        std::fs::create_dir(&log).unwrap();
        let audit = Audit::open(&log, |_| ()).unwrap();
        audit.record(denied()).await.unwrap();
        let append = || append_ocsf(&log, &file, &PathForm::Full);
        assert_eq!(append().unwrap(), OcsfWritten { events: 1, lost: 0 });
        assert_eq!(append().unwrap(), OcsfWritten { events: 0, lost: 0 });
        for _ in 0..2 {
            audit.record(denied()).await.unwrap();
        }
        // Two concurrent runs would mix their lines.
        let other = File::open(&file).unwrap();
        other.lock().unwrap();
        assert!(matches!(append(), Err(OcsfError::Busy)));
        drop(other);
        // A killed run can leave an incomplete line.
        OpenOptions::new().append(true).open(&file).unwrap().write_all(b"{\"activity").unwrap();
        assert_eq!(append().unwrap().events, 2);
        let all = lines(&file);
        let numbers: Vec<_> =
            all.iter().map(|event| event["metadata"]["sequence"].as_u64().unwrap()).collect();
        assert_eq!(numbers, [1, 2, 3]);
        for event in &all {
            assert!(REQUIRED.iter().all(|name| event.get(name).is_some()), "{event}");
            assert_eq!((&event["class_uid"], &event["type_uid"]), (&json!(6003), &json!(600_399)));
            assert_eq!((&event["action_id"], &event["status_id"]), (&json!(2), &json!(2)));
            assert_eq!(
                (&event["action"], &event["metadata"]["profiles"]),
                (&json!("Denied"), &json!(["security_control"]))
            );
            assert_eq!(event["api"]["operation"], "read_file");
            assert_eq!(event["resources"], json!([{ "name": "/home/u/a", "type": "path" }]));
            assert!(!event.to_string().contains("never exported"), "{event}");
        }
    }

    #[tokio::test]
    async fn foreign_file_and_replaced_log_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (log, file) = (dir.path().join("audit"), dir.path().join("ocsf.jsonl"));
        std::fs::create_dir(&log).unwrap();
        let append = || append_ocsf(&log, &file, &PathForm::Omitted);
        for foreign in ["not an event\n", "no line tail", "{\"a\":1}\n", "{\"a\":1}"] {
            std::fs::write(&file, foreign).unwrap();
            assert!(matches!(append(), Err(OcsfError::Foreign)), "{foreign}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), foreign);
        }
        std::fs::remove_file(&file).unwrap();
        let audit = Audit::open(&log, |_| ()).unwrap();
        for _ in 0..2 {
            audit.record(denied()).await.unwrap();
        }
        append().unwrap();
        drop(audit);
        std::fs::remove_file(log.join(ironcurtain_audit::LOG_NAME)).unwrap();
        let audit = Audit::open(&log, |_| ()).unwrap();
        audit.record(Entry::new(Event::Session, "other")).await.unwrap();
        assert!(matches!(append(), Err(OcsfError::Replaced(2))), "the new log is shorter");
        for _ in 0..2 {
            audit.record(Entry::new(Event::Session, "other")).await.unwrap();
        }
        assert!(matches!(append(), Err(OcsfError::Replaced(2))), "the new log has other entries");
    }
}
