//! Combines log entries into one row per call.

use super::meaning::{Meanings, reason_of};
use ironcurtain_audit::{CallResult, DecidedBy, Entry, EscalationResult, Event};
use ironcurtain_daemon::shown_entry;
use ironcurtain_protocol::ActivityView;
use ironcurtain_visible as visible;
use serde::Serialize;

/// Maximum length of a detail, in characters.
const MAX_DETAIL_LEN: usize = 4000;

/// Call with its decision and result, or any other log entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::window) struct Call {
    /// Sequence number of the first entry.
    pub(super) seq: u64,
    time_ms: u64,
    event: String,
    session: Option<String>,
    client: Option<String>,
    server: Option<String>,
    tool: Option<String>,
    pub(super) decision: Option<String>,
    outcome: Option<String>,
    /// `false` if an allowed call failed; `None` if its result is not known.
    succeeded: Option<bool>,
    summary: String,
    paths: Vec<String>,
    /// Word for the call's effect on its paths, such as `read`. Empty for other entries.
    verb: &'static str,
    /// Short reason for the decision.
    reason: String,
}

impl Call {
    /// Combines a call's entries, newest first. Returns `None` if there are none.
    pub(super) fn of(entries: Vec<Entry>, meanings: &impl Meanings) -> Option<Self> {
        let answer = entries.iter().find_map(|entry| entry.escalation_result.clone());
        let seq = entries.iter().map(|entry| entry.seq).min()?;
        let end = entries.iter().find(|entry| entry.event == Event::Outcome).cloned();
        // The decision's entry contains the answer to a question. The question's own entry only records that the user
        // was asked.
        let rank = |entry: &Entry| (entry.event != Event::Decision, entry.event == Event::Outcome);
        let main = entries.into_iter().min_by_key(rank)?;
        let is_end = main.event == Event::Outcome;
        let call = Self { seq, ..Self::alone(main, answer.as_ref(), meanings) };
        // If the decision is in a different log file, the result's entry contains no decision.
        let decision = call.decision.filter(|_| !is_end);
        let result = end.as_ref().and_then(|end| end.result.clone());
        let succeeded = result.map(|result| result == CallResult::Ok);
        let outcome = end.map(|end| shown_entry(end).summary);
        Some(Self { decision, outcome, succeeded, ..call })
    }

    fn alone(entry: Entry, answer: Option<&EscalationResult>, meanings: &impl Meanings) -> Self {
        let verb = meanings.verb_of(&entry);
        let decision = entry.policy_decision.as_ref();
        let reason = decision.map_or_else(String::new, |decision| {
            reason_of(decision.basis().as_ref(), Some(&decision.rule), answer)
        });
        Self { verb, reason, ..Self::from(shown_entry(entry)) }
    }
}

/// Converts an entry that another program formatted.
impl From<ActivityView> for Call {
    fn from(view: ActivityView) -> Self {
        let by = view.decided_by.map(DecidedBy::from);
        Self {
            seq: view.seq,
            time_ms: view.time_ms,
            event: view.event,
            session: view.session,
            client: view.client,
            server: view.server,
            verb: view.tool.as_deref().map_or("", super::meaning::verb_of_name),
            tool: view.tool,
            decision: view.decision,
            outcome: None,
            succeeded: None,
            summary: view.summary,
            paths: view.paths,
            reason: by.map_or_else(String::new, |by| reason_of(Some(&by), None, None)),
        }
    }
}

/// Returns the names and values of facts about a call that its row does not show. `entries` must be sorted newest
/// first.
pub(super) fn details_of(entries: &[Entry]) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = Vec::new();
    for detail in entries.iter().rev().flat_map(details) {
        if !facts.contains(&detail) {
            facts.push(detail);
        }
    }
    facts
}

/// Returns the facts in an entry that its sentence does not mention.
fn details(entry: &Entry) -> Vec<(String, String)> {
    let mut facts: Vec<(&str, String)> = Vec::new();
    if let Some(decision) = &entry.policy_decision {
        facts.push(("Rule", decision.rule.clone()));
        facts.push(("Reason", decision.reason.clone()));
    }
    if let Some(end) = &entry.escalation_result {
        let took = entry.human_ms.map(|ms| format!(", after {} s", ms / 1000)).unwrap_or_default();
        facts.push(("Your answer", format!("{}{took}", end.as_str())));
    }
    if let Some(arguments) = &entry.arguments {
        facts.push(("Arguments", serde_json::to_string_pretty(arguments).unwrap_or_default()));
    }
    facts.extend(entry.grant_id.clone().map(|grant| ("Permission", grant)));
    facts.extend(entry.duration_ms.map(|ms| ("Took", format!("{ms} ms"))));
    facts.extend(entry.session.clone().map(|session| ("Session", session)));
    facts.push(("On record", format!("entry {}, {}", entry.seq, entry.summary)));
    let visible = |text: String| visible::lines(&visible::head(&text, MAX_DETAIL_LEN));
    facts.into_iter().map(|(name, value)| (name.to_owned(), visible(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::meaning::tests::ByName;
    use super::*;
    use ironcurtain_audit::PolicyDecision;

    fn entry(seq: u64, event: Event) -> Entry {
        let mut entry = Entry::new(event, format!("entry {seq}"));
        (entry.seq, entry.timestamp) = (seq, seq * 1000);
        (entry.session, entry.request_id) = (Some("s".into()), Some("a".into()));
        entry.tool_name = Some("read_file".into());
        entry
    }

    #[test]
    fn a_call_is_one_row_with_decision_and_outcome() {
        let mut question = entry(1, Event::Question);
        question.policy_decision = Some(PolicyDecision::escalate("ask", "outside"));
        let mut answer = entry(2, Event::Answer);
        answer.escalation_result = Some(EscalationResult::Approved);
        let mut decision = entry(4, Event::Decision);
        decision.policy_decision = Some(PolicyDecision::allow(DecidedBy::Answer, "ask", "approved"));
        let mut end = entry(6, Event::Outcome);
        end.result = Some(CallResult::Ok);
        let entries = vec![end, decision, answer, question];
        let call = Call::of(entries.clone(), &ByName).expect("a row");
        assert_eq!((call.seq, call.time_ms, call.summary.as_str()), (1, 4000, "Allowed by your answer"));
        assert_eq!((call.decision.as_deref(), call.outcome.as_deref()), (Some("allow"), Some("Done")));
        assert_eq!((call.verb, call.reason.as_str()), ("read", "you allowed it"));
        assert_eq!(call.succeeded, Some(true));
        let mut failed = entries.clone();
        failed[0].result = Some(CallResult::Error);
        assert_eq!(Call::of(failed, &ByName).expect("a row").succeeded, Some(false));
        let details = details_of(&entries);
        assert!(details.contains(&("Your answer".to_owned(), "approved".to_owned())), "{details:?}");
        let open = Call::of(entries[3..].to_vec(), &ByName).expect("a row");
        assert_eq!((open.decision.as_deref(), open.outcome), (Some("escalate"), None));
        let end = Call::of(entries[..1].to_vec(), &ByName).expect("a row");
        assert_eq!((end.decision, end.outcome.as_deref()), (None, Some("Done")));
        assert_eq!(Call::of(Vec::new(), &ByName), None);
    }
}
