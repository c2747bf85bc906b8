//! The activity log for the page: one row per call over the whole log, checking it, and exporting
//! it.

use super::AppState;
use super::command_error::{CommandError, aside};
use super::grants::trusted;
use ironcurtain_admin::export::{ExportError, ExportForm, export};
use ironcurtain_audit::{self as audit, Entry, Event, Filter, Found, Status};
use ironcurtain_daemon::shown_entry;
use ironcurtain_protocol::{ActivityView, AuditCheckView, Reply, Request};
use ironcurtain_visible as visible;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of entries read for one page.
const MOST_ENTRIES: usize = 200_000;

/// Maximum length of a detail, in characters.
const LONGEST_DETAIL: usize = 4000;

/// One call with its decision and outcome, or another entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Call {
    /// Sequence number of its first entry.
    seq: u64,
    time_ms: u64,
    event: String,
    session: Option<String>,
    client: Option<String>,
    server: Option<String>,
    tool: Option<String>,
    decision: Option<String>,
    outcome: Option<String>,
    summary: String,
    paths: Vec<String>,
    /// Other recorded facts, each with its name.
    details: Vec<(String, String)>,
}

/// Page of calls, newest first.
#[derive(Debug, Serialize)]
pub(super) struct CallPage {
    calls: Vec<Call>,
    more: bool,
}

/// Filter of the page.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedCalls {
    text: String,
    decision: String,
    server: String,
    path: String,
    days: u64,
}

/// Format of an exported file.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FormWord {
    Jsonl,
    Csv,
}

pub(super) async fn activity(
    state: &AppState,
    wanted: WantedCalls,
    skip: usize,
    most: usize,
) -> Result<CallPage, CommandError> {
    let Some(trusted) = state.backend.trusted() else {
        let reply = state.backend.request(Request::Activity { limit: skip.saturating_add(most) }).await;
        let Reply::Activity(entries) = reply else { return Err(CommandError::of(reply)) };
        return Ok(CallPage { calls: calls_of(entries), more: false });
    };
    let (log, filter) = (trusted.home.audit(), filter(&wanted, &state.home));
    aside(move || page(&log, &filter, skip, most)).await
}

pub(super) async fn export_activity(
    state: &AppState,
    wanted: WantedCalls,
    format: FormWord,
) -> Result<Option<PathBuf>, CommandError> {
    let trusted = trusted(state)?;
    let (form, name) = match format {
        FormWord::Jsonl => (ExportForm::JsonLines, "ironcurtain-record.jsonl"),
        FormWord::Csv => (ExportForm::Table, "ironcurtain-record.csv"),
    };
    let filter = filter(&wanted, &state.home);
    let place = state.pickers.place_for("Write the record to", &state.home, name).await;
    let Some(place) = place else { return Ok(None) };
    aside(move || {
        // The log is private to the user. The picker has already asked before replacing a file.
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&place);
        let file = file.map_err(ExportError::Write)?;
        export(&trusted.home, &filter, form, BufWriter::new(&file), |line| line)?;
        file.sync_all().map_err(ExportError::Write)?;
        Ok::<_, ExportError>(Some(place))
    })
    .await
}

pub(super) async fn check_log(state: &AppState) -> Result<AuditCheckView, CommandError> {
    let reply = state.backend.request(Request::VerifyAudit).await;
    if let Reply::Audit(check) = reply { Ok(check) } else { Err(CommandError::of(reply)) }
}

/// Returns the newest calls of a log.
pub(super) fn newest_calls(log: &Path, most: usize) -> io::Result<Vec<Call>> {
    let entries = audit::newest(log, most * 6)?.filter_map(|found| match found {
        Found::Entry(entry) => Some(*entry),
        Found::TooLong { .. } => None,
    });
    let mut calls = together(entries.collect());
    calls.retain(|call| call.decision.is_some());
    calls.truncate(most);
    Ok(calls)
}

/// Converts entries that another program has already formatted, newest first.
pub(super) fn calls_of(entries: Vec<ActivityView>) -> Vec<Call> {
    let call = |view: ActivityView| Call { details: Vec::new(), ..Call::from(view) };
    entries.into_iter().rev().map(call).collect()
}

fn page(log: &Path, filter: &Filter, skip: usize, most: usize) -> io::Result<CallPage> {
    let (wanted, mut read) = (skip.saturating_add(most), skip.saturating_add(most + 1).saturating_mul(4));
    loop {
        read = read.min(MOST_ENTRIES);
        let entries = audit::search(log, filter, read)?;
        let all_read = entries.len() < read || read == MOST_ENTRIES;
        let calls = together(entries);
        if calls.len() > wanted || all_read {
            let more = calls.len() > wanted;
            return Ok(CallPage { calls: calls.into_iter().skip(skip).take(most).collect(), more });
        }
        read = read.saturating_mul(2);
    }
}

fn filter(wanted: &WantedCalls, home: &Path) -> Filter {
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let path = given(&wanted.path).map(|path| match path.strip_prefix('~') {
        Some(rest) => format!("{}{rest}", home.display()),
        None => path,
    });
    Filter {
        text: given(&wanted.text),
        server: given(&wanted.server),
        path,
        decision: match wanted.decision.as_str() {
            "allow" => Some(Status::Allow),
            "deny" => Some(Status::Deny),
            "escalate" => Some(Status::Escalate),
            _ => None,
        },
        since_ms: (wanted.days > 0).then(|| now.saturating_sub(wanted.days.saturating_mul(86_400_000))),
        ..Filter::default()
    }
}

/// Groups entries, newest first, into one row per call.
fn together(entries: Vec<Entry>) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut places: HashMap<(String, String), usize> = HashMap::new();
    for entry in entries {
        let key = match (&entry.session, &entry.request_id) {
            (Some(session), Some(request)) => Some((session.clone(), request.clone())),
            (Some(_) | None, _) => None,
        };
        let event = entry.event;
        let details = details(&entry);
        let view = shown_entry(entry);
        let place = key.as_ref().and_then(|key| places.get(key)).and_then(|at| calls.get_mut(*at));
        match place {
            Some(call) => call.take_in(event, view, details),
            None => {
                places.extend(key.map(|key| (key, calls.len())));
                let mut call = Call::from(view);
                if event == Event::Outcome {
                    (call.outcome, call.decision) = (Some(call.summary.clone()), None);
                }
                call.details = details;
                calls.push(call);
            }
        }
    }
    calls
}

impl From<ActivityView> for Call {
    fn from(view: ActivityView) -> Self {
        Self {
            seq: view.seq,
            time_ms: view.time_ms,
            event: view.event,
            session: view.session,
            client: view.client,
            server: view.server,
            tool: view.tool,
            decision: view.decision,
            outcome: None,
            summary: view.summary,
            paths: view.paths,
            details: Vec::new(),
        }
    }
}

impl Call {
    /// Merges an older entry of the same call.
    fn take_in(&mut self, event: Event, older: ActivityView, details: Vec<(String, String)>) {
        self.seq = self.seq.min(older.seq);
        for detail in details {
            if !self.details.contains(&detail) {
                self.details.push(detail);
            }
        }
        // The decision carries the outcome of the call; the question before it only says that the
        // user was asked.
        if event == Event::Decision {
            (self.summary, self.decision, self.event) = (older.summary, older.decision, older.event);
            (self.time_ms, self.paths) = (older.time_ms, older.paths);
        }
        self.tool = self.tool.take().or(older.tool);
    }
}

/// Returns the facts of an entry beyond its sentence.
fn details(entry: &Entry) -> Vec<(String, String)> {
    let mut told: Vec<(&str, String)> = Vec::new();
    if let Some(decision) = &entry.policy_decision {
        told.push(("Rule", decision.rule.clone()));
        told.push(("Reason", decision.reason.clone()));
    }
    if let Some(end) = &entry.escalation_result {
        let took = entry.human_ms.map(|ms| format!(", after {} s", ms / 1000)).unwrap_or_default();
        told.push(("Your answer", format!("{}{took}", end.as_str())));
    }
    if let Some(arguments) = &entry.arguments {
        told.push(("Arguments", serde_json::to_string_pretty(arguments).unwrap_or_default()));
    }
    told.extend(entry.grant_id.clone().map(|grant| ("Permission", grant)));
    told.extend(entry.duration_ms.map(|ms| ("Took", format!("{ms} ms"))));
    told.extend(entry.session.clone().map(|session| ("Session", session)));
    told.push(("On record", format!("entry {}, {}", entry.seq, entry.summary)));
    let visible = |text: String| visible::lines(&visible::head(&text, LONGEST_DETAIL));
    told.into_iter().map(|(name, value)| (name.to_owned(), visible(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_audit::{CallResult, DecidedBy, EscalationResult, PolicyDecision};

    fn entry(seq: u64, event: Event, request: &str) -> Entry {
        let mut entry = Entry::new(event, format!("entry {seq}"));
        (entry.seq, entry.timestamp) = (seq, seq * 1000);
        (entry.session, entry.request_id) = (Some("s".into()), Some(request.into()));
        entry
    }

    #[test]
    fn a_call_is_one_row_with_decision_and_outcome() {
        let mut question = entry(1, Event::Question, "a");
        question.policy_decision = Some(PolicyDecision::deny(DecidedBy::Rule, "ask", "outside"));
        let mut answer = entry(2, Event::Answer, "a");
        answer.escalation_result = Some(EscalationResult::Approved);
        let mut decision = entry(4, Event::Decision, "a");
        decision.policy_decision = Some(PolicyDecision::allow(DecidedBy::Answer, "ask", "approved"));
        let mut end = entry(6, Event::Outcome, "a");
        end.result = Some(CallResult::Ok);
        let other = entry(5, Event::Server, "b");
        let calls = together(vec![end, other, decision, answer, question]);
        assert_eq!(calls.len(), 2, "{calls:?}");
        let call = calls.iter().find(|call| call.seq == 1).expect("the row of its first entry");
        assert_eq!(
            (call.summary.as_str(), call.decision.as_deref()),
            ("Allowed by your answer", Some("allow"))
        );
        assert_eq!((call.outcome.as_deref(), call.time_ms), (Some("Done"), 4000));
        assert!(call.details.iter().any(|(name, value)| name == "Your answer" && value == "approved"));
        assert_eq!(
            calls.iter().find(|call| call.seq == 5).map(|call| call.summary.as_str()),
            Some("Entry 5")
        );
    }

    #[test]
    fn a_folder_filter_may_abbreviate_home() {
        let wanted = WantedCalls {
            text: "  ".into(),
            decision: "deny".into(),
            server: String::new(),
            path: "~/Documents".into(),
            days: 0,
        };
        let filter = filter(&wanted, Path::new("/home/ada"));
        assert_eq!(
            (filter.path.as_deref(), filter.text, filter.since_ms),
            (Some("/home/ada/Documents"), None, None)
        );
        assert_eq!(filter.decision, Some(Status::Deny));
    }
}
