//! Extracts the calls from an audit log.
//!
//! - A call that required approval counts as escalated once its question was recorded. The user's answer is ignored.

use ironcurtain_audit::{self as audit, Entry, EscalationResult, Event, PolicyDecision, Status};
use ironcurtain_policy::Decision;
use ironcurtain_policy_tools::Ruling;
use ironcurtain_policy_tools::replay::RecordedCall;
use std::collections::HashSet;
use std::io;
use std::path::Path;

/// Returns the calls decided since `since_ms` in the first `entries` entries of the log, in order.
///
/// # Errors
/// Returns an error if reading the log or parsing a line fails.
pub(super) fn read(log: &Path, entries: u64, since_ms: u64) -> io::Result<Vec<RecordedCall>> {
    let mut calls = CallCollector::default();
    for entry in audit::all(log, entries)? {
        calls.add(entry?);
    }
    calls.collected.retain(|call| call.time_ms >= since_ms);
    Ok(calls.collected)
}

#[derive(Default)]
struct CallCollector {
    /// Session and request id of each question that is still open.
    open_questions: HashSet<(Option<String>, Option<String>)>,
    collected: Vec<RecordedCall>,
}

impl CallCollector {
    fn add(&mut self, entry: Entry) {
        let call = (entry.session.clone(), entry.request_id.clone());
        match (entry.event, &entry.escalation_result) {
            // The policy does not decide on requests other than tool calls.
            (Event::Decision, _) if entry.tool_name.is_none() => {}
            // The question was asked again because the call's resources had changed.
            (Event::Question, _) if !self.open_questions.insert(call.clone()) => {}
            (Event::Question, _) => self.collected.extend(recorded_call(entry)),
            (Event::Answer, Some(EscalationResult::Approved | EscalationResult::Settled)) => {}
            (Event::Answer, _) => {
                self.open_questions.remove(&call);
            }
            (Event::Decision, _) if self.open_questions.remove(&call) => {}
            (Event::Decision, _) => self.collected.extend(recorded_call(entry)),
            (
                Event::Daemon
                | Event::Session
                | Event::Server
                | Event::Outcome
                | Event::Grant
                | Event::Revoked
                | Event::Policy
                | Event::Network
                | Event::BoundaryViolation
                | Event::AutostartFileChanged
                | Event::FileQuarantined
                | Event::GitConfigRestored
                | Event::ScanIncomplete
                | Event::FileDecided
                | Event::Retention
                | Event::Lockdown
                | Event::Pause
                | Event::Undo,
                _,
            ) => {}
        }
    }
}

/// Extracts the call from an entry that records a decision. Returns `None` for an incomplete entry.
fn recorded_call(entry: Entry) -> Option<RecordedCall> {
    let arguments = entry.arguments.unwrap_or_default();
    let redacted = arguments.iter().filter(|(_, value)| audit::is_marked(value));
    Some(RecordedCall {
        redacted: redacted.map(|(name, _)| name.clone()).collect(),
        arguments,
        seq: entry.seq,
        time_ms: entry.timestamp,
        session: entry.session?,
        client: entry.client,
        server: entry.server_name?,
        tool: entry.tool_name?,
        paths: entry.paths,
        granted: entry.grant_id.is_some(),
        then: recorded_ruling(entry.policy_decision?)?,
    })
}

fn recorded_ruling(decision: PolicyDecision) -> Option<Ruling> {
    let status = match decision.status {
        Status::Allow => Decision::Allow,
        Status::Escalate => Decision::Escalate,
        Status::Deny => Decision::Deny,
        Status::Other(_) => return None,
    };
    Some(Ruling { decision: status, rule: decision.rule, reason: decision.reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seq: u64, event: Event, request: &str, word: &str) -> Entry {
        let mut entry = Entry::new(event, "x");
        (entry.seq, entry.timestamp) = (seq, seq * 10);
        (entry.session, entry.request_id) = (Some("s".into()), Some(request.into()));
        (entry.server_name, entry.tool_name) = (Some("filesystem".into()), Some("t".into()));
        if event == Event::Answer {
            entry.escalation_result = Some(word.to_owned().into());
        } else {
            let (status, rule) = (word.to_owned().into(), "r".to_owned());
            entry.policy_decision = Some(PolicyDecision { status, rule, reason: String::new(), by: None });
        }
        entry
    }

    fn found(entries: Vec<Entry>) -> Vec<(u64, Decision)> {
        let mut calls = CallCollector::default();
        entries.into_iter().for_each(|entry| calls.add(entry));
        calls.collected.iter().map(|call| (call.seq, call.then.decision)).collect()
    }

    #[test]
    fn escalated_call_counts_once() {
        let answered = |word: &str| {
            vec![
                entry(1, Event::Decision, "1", "allow"),
                entry(2, Event::Question, "2", "escalate"),
                entry(3, Event::Decision, "3", "deny"),
                entry(4, Event::Question, "2", "escalate"),
                entry(5, Event::Answer, "2", word),
                entry(6, Event::Decision, "2", "allow"),
            ]
        };
        let once = [(1, Decision::Allow), (2, Decision::Escalate), (3, Decision::Deny)];
        assert_eq!(found(answered("approved")), once);
        assert_eq!(found(answered("settled")), once);
        // After a denial, the same request id belongs to a new call.
        let again = [&once[..], &[(6, Decision::Allow)]].concat();
        assert_eq!(found(answered("denied")), again);
        assert_eq!(found(answered("timeout")), again);
    }

    #[test]
    fn logs_without_grounds_are_supported() {
        let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../audit/fixtures/without-grounds.jsonl");
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(log, dir.path().join(ironcurtain_audit::LOG_NAME)).unwrap();
        let calls = read(dir.path(), u64::MAX, 0).unwrap();
        let found: Vec<_> = calls
            .iter()
            .map(|call| (call.seq, call.then.decision, call.then.rule.as_str(), call.granted))
            .collect();
        let expected = [
            (4, Decision::Allow, "docs", false),
            (6, Decision::Escalate, "ask", false),
            (10, Decision::Escalate, "ask", false),
            (12, Decision::Deny, "structural-protected-path", false),
            (13, Decision::Escalate, "ask", false),
            (18, Decision::Allow, "grant", true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn entries_without_a_valid_decision_are_skipped() {
        let mut silent = entry(1, Event::Decision, "1", "allow");
        silent.policy_decision = None;
        assert_eq!(found(vec![silent, entry(2, Event::Decision, "2", "perhaps")]), []);
        assert_eq!(found(vec![entry(3, Event::Decision, "2", "allow")]), [(3, Decision::Allow)]);
    }
}
