//! The activity log for the page: a row for each call, a call's details, verification and export.

mod calls;
mod meaning;

pub(super) use calls::Call;

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use calls::details_of;
use ironcurtain_admin::export::{ExportError, LogExportFormat, export};
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::{Filter, FoundCall, Status, decisions_by_period, entries_of_call, search_calls};
use ironcurtain_protocol::{ActivityView, AuditCheckView, Reply, Request};
use meaning::Meanings;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Maximum number of calls on a page of the log.
const MAX_CALLS: usize = 1000;
/// Duration represented by one column in the 24-hour chart.
const QUARTER_MS: u64 = 15 * 60 * 1000;
/// Number of columns in the 24-hour chart.
const QUARTERS: usize = 96;

/// A page of calls, newest first.
#[derive(Debug, Serialize)]
pub(super) struct CallPage {
    calls: Vec<Call>,
    /// Position at which the next page continues, or `None` at the end of the log.
    next: Option<u64>,
}

/// Decisions in the last 24 hours, counted per quarter-hour.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Day {
    from_ms: u64,
    /// Numbers of allowed, escalated and denied calls per quarter-hour, oldest first.
    quarters: Vec<[u64; 3]>,
}

/// Filter requested by the page.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedCalls {
    text: String,
    decision: String,
    server: String,
    client: String,
    path: String,
    /// Earliest time of entries, in milliseconds since the Unix epoch, or 0 for no limit.
    from_ms: u64,
    /// Latest time of entries (exclusive), in milliseconds since the Unix epoch, or 0 for no limit.
    to_ms: u64,
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
    before: Option<u64>,
    most: usize,
) -> Result<CallPage, CommandError> {
    let Some(trusted) = state.backend.trusted() else {
        let reply = state.backend.request(Request::Activity { limit: most }).await;
        let Reply::Activity(entries) = reply else { return Err(CommandError::of(reply)) };
        return Ok(CallPage { calls: calls_of(entries), next: None });
    };
    let (log, filter) = (trusted.home.audit(), filter(&wanted, &state.home));
    run_blocking(move || page(&log, &filter, before, most.min(MAX_CALLS), &*trusted.daemon.policy())).await
}

pub(super) async fn call_details(state: &AppState, seq: u64) -> Result<Vec<(String, String)>, CommandError> {
    let log = trusted(state)?.home.audit();
    run_blocking(move || Ok::<_, io::Error>(details_of(&entries_of_call(&log, seq)?))).await
}

pub(super) async fn export_activity(
    state: &AppState,
    wanted: WantedCalls,
    format: FormWord,
) -> Result<Option<PathBuf>, CommandError> {
    let trusted = trusted(state)?;
    let (form, name) = match format {
        FormWord::Jsonl => (LogExportFormat::JsonLines, "ironcurtain-record.jsonl"),
        FormWord::Csv => (LogExportFormat::Table, "ironcurtain-record.csv"),
    };
    let filter = filter(&wanted, &state.home);
    let target = state.pickers.pick_new_file("Write the record to", &state.home, name).await;
    let Some(target) = target else { return Ok(None) };
    run_blocking(move || {
        // Only the user may read the log. The picker has already asked for permission to replace an existing file.
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&target);
        let file = file.map_err(ExportError::Write)?;
        export(&trusted.home, &filter, form, BufWriter::new(&file), |line| line)?;
        file.sync_all().map_err(ExportError::Write)?;
        Ok::<_, ExportError>(Some(target))
    })
    .await
}

pub(super) async fn check_log(state: &AppState) -> Result<AuditCheckView, CommandError> {
    let reply = state.backend.request(Request::VerifyAudit).await;
    if let Reply::Audit(check) = reply { Ok(check) } else { Err(CommandError::of(reply)) }
}

/// Returns the newest calls in a log that have a decision.
pub(super) fn newest_calls(log: &Path, most: usize, meanings: &impl Meanings) -> io::Result<Vec<Call>> {
    let found = search_calls(log, &Filter::default(), None, most * 6)?;
    let calls = found.into_iter().filter_map(|found| Call::of(found.entries, meanings));
    Ok(calls.filter(|call| call.decision.is_some()).take(most).collect())
}

/// Counts the decisions made in the last 24 hours.
pub(super) fn last_day(log: &Path) -> io::Result<Day> {
    let from_ms = (now_ms() / QUARTER_MS + 1).saturating_sub(QUARTERS as u64) * QUARTER_MS;
    let counts = decisions_by_period(log, from_ms, QUARTER_MS, QUARTERS)?;
    Ok(Day { from_ms, quarters: counts.iter().map(|one| [one.allowed, one.asked, one.denied]).collect() })
}

/// Converts entries that another program formatted, and returns them newest first.
pub(super) fn calls_of(entries: Vec<ActivityView>) -> Vec<Call> {
    entries.into_iter().rev().map(Call::from).collect()
}

fn page(
    log: &Path,
    filter: &Filter,
    before: Option<u64>,
    most: usize,
    meanings: &impl Meanings,
) -> io::Result<CallPage> {
    let found = search_calls(log, filter, before, most)?;
    let next = found.last().filter(|_| found.len() == most).map(|last| last.newest_seq);
    let call = |FoundCall { entries, .. }| Call::of(entries, meanings);
    Ok(CallPage { calls: found.into_iter().filter_map(call).collect(), next })
}

fn filter(wanted: &WantedCalls, home: &Path) -> Filter {
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let path = given(&wanted.path).map(|path| match path.strip_prefix('~') {
        Some(rest) => format!("{}{rest}", home.display()),
        None => path,
    });
    Filter {
        text: given(&wanted.text),
        server: given(&wanted.server),
        client: given(&wanted.client),
        path,
        decision: match wanted.decision.as_str() {
            "allow" => Some(Status::Allow),
            "deny" => Some(Status::Deny),
            "escalate" => Some(Status::Escalate),
            _ => None,
        },
        since_ms: (wanted.from_ms > 0).then_some(wanted.from_ms),
        until_ms: (wanted.to_ms > 0).then(|| wanted.to_ms - 1),
        ..Filter::default()
    }
}

#[cfg(test)]
mod tests {
    use super::meaning::tests::ByName;
    use super::*;
    use ironcurtain_audit::{CallResult, DecidedBy, Entry, Event, LOG_NAME, PolicyDecision};

    fn write(dir: &Path, entries: &[Entry]) {
        let text: String = entries.iter().map(|entry| serde_json::to_string(entry).unwrap() + "\n").collect();
        std::fs::write(dir.join(LOG_NAME), text.replacen("}\n", ",\"prev\":\"x\"}\n", 1)).unwrap();
    }

    fn decision(seq: u64, time: u64, allow: bool) -> Entry {
        let mut entry = Entry::new(Event::Decision, "");
        (entry.seq, entry.timestamp) = (seq, time);
        (entry.session, entry.request_id) = (Some("s".into()), Some(seq.to_string()));
        entry.tool_name = Some("read_file".into());
        let of = if allow { PolicyDecision::allow } else { PolicyDecision::deny };
        entry.policy_decision = Some(of(DecidedBy::Rule, "work", ""));
        entry
    }

    #[test]
    fn pages_continue_where_the_last_one_ended_and_repeat_no_call() {
        let dir = tempfile::tempdir().unwrap();
        let mut entries: Vec<Entry> = (1..=9).map(|seq| decision(seq, seq, true)).collect();
        // The call is on the page with its decision, so it is not repeated here.
        let mut end = Entry::outcome_of(2, CallResult::Ok, 1);
        (end.seq, end.timestamp) = (10, 10);
        entries.push(end);
        write(dir.path(), &entries);
        let (mut seen, mut next) = (Vec::new(), None);
        loop {
            let page = page(dir.path(), &Filter::default(), next, 4, &ByName).unwrap();
            seen.extend(page.calls.iter().map(|call| call.seq));
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        assert_eq!(seen, [2, 9, 8, 7, 6, 5, 4, 3, 1]);
        assert_eq!(newest_calls(dir.path(), 2, &ByName).unwrap().len(), 2);
    }

    #[test]
    fn the_last_day_ends_with_the_current_quarter_hour() {
        let dir = tempfile::tempdir().unwrap();
        let now = now_ms();
        let entries =
            [decision(1, now - 25 * 3_600_000, true), decision(2, now, true), decision(3, now, false)];
        write(dir.path(), &entries);
        let day = last_day(dir.path()).unwrap();
        assert_eq!(day.quarters.len(), 96);
        let all = |at: usize| day.quarters.iter().map(|one| one[at]).sum::<u64>();
        assert_eq!([all(0), all(1), all(2)], [1, 0, 1], "the one before is not of this day");
        let end = day.from_ms + QUARTERS as u64 * QUARTER_MS;
        assert!(now < end && end - now_ms() <= QUARTER_MS);
    }

    #[test]
    fn a_folder_filter_may_abbreviate_home_and_a_time_of_zero_is_none() {
        let wanted = WantedCalls {
            text: "  ".into(),
            decision: "deny".into(),
            server: String::new(),
            client: "Claude Code".into(),
            path: "~/Documents".into(),
            from_ms: 0,
            to_ms: 900,
        };
        let filter = filter(&wanted, Path::new("/home/ada"));
        assert_eq!((filter.path.as_deref(), filter.text), (Some("/home/ada/Documents"), None));
        assert_eq!((filter.since_ms, filter.until_ms), (None, Some(899)));
        assert_eq!((filter.client.as_deref(), filter.decision), (Some("Claude Code"), Some(Status::Deny)));
    }
}
