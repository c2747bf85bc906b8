//! Converts the newest audit log entries for display.
//!
//! - Limits the size of a response, even if entries are long.

use super::{describe_entry, display_name, event_name, paths_and_host};
use ironcurtain_audit::{CallResult, Entry, EscalationResult, LogLine, PolicyDecision, newest};
use ironcurtain_protocol::{ActivityView, MAX_FRAME_BYTES};
use ironcurtain_visible as visible;
use std::io;
use std::path::Path;

/// Maximum total size of the entries in one response, in bytes.
const MAX_ANSWER_LEN: usize = MAX_FRAME_BYTES / 2;

/// Maximum displayed length of a string, in characters.
const MAX_TEXT_LEN: usize = 1000;

/// Maximum number of paths to display per entry.
const MAX_PATHS: usize = 20;

/// Reads the newest entries of the log. Returns them oldest first.
pub(crate) fn activity(dir: &Path, limit: usize) -> io::Result<Vec<ActivityView>> {
    Ok(fit_into_response(newest(dir, limit)?.map(view)))
}

/// Keeps the newest entries that fit into a response, in chronological order.
fn fit_into_response(newest_first: impl Iterator<Item = ActivityView>) -> Vec<ActivityView> {
    let mut remaining = MAX_ANSWER_LEN;
    let mut entries: Vec<ActivityView> = newest_first
        .take_while(|entry| {
            let length = serde_json::to_string(entry).map_or(usize::MAX, |text| text.len() + 1);
            let rest = remaining.checked_sub(length);
            remaining = rest.unwrap_or_default();
            rest.is_some()
        })
        .collect();
    entries.reverse();
    entries
}

fn view(found: LogLine) -> ActivityView {
    match found {
        LogLine::Entry(found) => shown_entry(*found),
        LogLine::TooLong { seq, timestamp, bytes } => too_long(seq, timestamp, bytes),
    }
}

/// Converts an entry for display.
#[must_use]
pub fn shown_entry(entry: Entry) -> ActivityView {
    let summary = display_text(&describe_entry(&entry));
    let mut paths: Vec<String> = paths_and_host(&entry);
    let more = paths.len().saturating_sub(MAX_PATHS);
    paths.truncate(MAX_PATHS);
    paths = paths.iter().map(|path| visible::path(&visible::head(path, MAX_TEXT_LEN))).collect();
    if more > 0 {
        paths.push(format!("… ({more} more)"));
    }
    let decided_by = entry.policy_decision.as_ref().and_then(PolicyDecision::basis);
    let status = entry.policy_decision.as_ref().map(|decision| decision.status.as_str());
    let answer = entry.escalation_result.as_ref().map(EscalationResult::as_str);
    let decision = status.or(answer).or(entry.result.as_ref().map(CallResult::as_str));
    ActivityView {
        seq: entry.seq,
        time_ms: entry.timestamp,
        event: event_name(entry.event).to_owned(),
        session: entry.session.as_deref().map(display_name),
        client: entry.client.as_deref().map(display_name),
        server: entry.server_name.as_deref().map(display_name),
        tool: entry.tool_name.as_deref().map(display_name),
        decision: decision.map(display_name),
        decided_by: decided_by.map(|by| display_name(by.as_str())),
        summary,
        paths,
    }
}

fn display_text(text: &str) -> String {
    visible::line(&visible::head(text, MAX_TEXT_LEN))
}

/// Creates a placeholder for an entry that is too long to be read completely.
fn too_long(seq: u64, time_ms: u64, bytes: u64) -> ActivityView {
    ActivityView {
        seq,
        time_ms,
        event: "program".to_owned(),
        session: None,
        client: None,
        server: None,
        tool: None,
        decision: None,
        decided_by: None,
        summary: format!("An entry of {bytes} bytes, which is too long to be shown"),
        paths: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_audit::{Event, LOG_NAME};

    fn line(seq: u64, change: impl FnOnce(&mut Entry)) -> String {
        let mut entry = Entry::new(Event::Server, "x");
        (entry.seq, entry.timestamp) = (seq, seq * 10);
        change(&mut entry);
        serde_json::to_string(&entry).unwrap() + "\n"
    }

    fn read(text: &str, limit: usize) -> Vec<ActivityView> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(LOG_NAME), text).unwrap();
        activity(dir.path(), limit).unwrap()
    }

    #[test]
    fn names_and_paths_hide_nothing() {
        let mut entry = Entry::new(Event::Grant, "for x\u{202e}gpj.sh");
        entry.client = Some("a\u{200b}b".into());
        entry.server_name = Some("s\u{a0}".into());
        entry.tool_name = Some("t\n".repeat(300));
        entry.paths =
            vec!["/docs/x\u{202e}gpj.sh".into(), "/docs/\u{5d0}/\u{5d1}".into(), "/docs/grüße".into()];
        let shown = shown_entry(entry);
        assert_eq!(shown.summary, "For x\\u{202e}gpj.sh");
        assert_eq!(shown.client.as_deref(), Some("a\\u{200b}b"));
        assert_eq!(shown.server.as_deref(), Some("s\\u{a0}"));
        assert_eq!(shown.tool, Some(format!("{} … (400 characters more)", "t\\u{a}".repeat(100))));
        assert_eq!(shown.paths, ["/docs/x\\u{202e}gpj.sh", "/docs/\\u{5d0}/\\u{5d1}", "/docs/grüße"]);
    }

    #[test]
    fn entries_of_a_version_without_grounds_are_shown_without_guessing() {
        let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../audit/fixtures/without-grounds.jsonl");
        let entries = read(&std::fs::read_to_string(log).unwrap(), 100);
        assert_eq!(entries.len(), 20);
        let shown = |seq: u64| {
            let entry = entries.iter().find(|entry| entry.seq == seq).unwrap();
            (entry.decision.as_deref().unwrap(), entry.decided_by.as_deref(), entry.summary.as_str())
        };
        // The entry does not reveal whether this reason came from a rule or from the user.
        assert_eq!(shown(4), ("allow", None, "Allowed: approved: by the team"));
        assert_eq!(shown(5), ("ok", None, "Done"));
        assert_eq!(shown(7), ("approved", None, "You allowed it"));
        assert_eq!(shown(18), ("allow", Some("grant"), "Allowed by a grant"));
    }

    #[test]
    fn the_newest_entries_are_returned_and_oversized_lines_are_named() {
        let huge = line(2, |entry| entry.tool_name = Some("t".repeat(3_000_000)));
        let text = line(1, |_| ()) + &huge + "no entry\n" + &line(3, |_| ());
        let summaries: Vec<_> = read(&text, 10).into_iter().map(|e| (e.seq, e.time_ms, e.summary)).collect();
        let placeholder = format!("An entry of {} bytes, which is too long to be shown", huge.len());
        assert_eq!(summaries, [(1, 10, "X".to_owned()), (2, 20, placeholder), (3, 30, "X".to_owned())]);
        assert_eq!(read(&text, 1).iter().map(|e| e.seq).collect::<Vec<_>>(), [3]);
        assert!(read(&text, 0).is_empty());
    }

    #[test]
    fn long_texts_are_cut_and_an_answer_fits_its_frame() {
        let fill = |entry: &mut Entry| {
            entry.tool_name = Some("\u{1}".repeat(100_000));
            entry.paths = vec!["/a".repeat(1000); 100];
        };
        let text: String = (1..=400).map(|seq| line(seq, fill)).collect();
        let entries = read(&text, 400);
        let last = entries.last().unwrap();
        assert_eq!((last.seq, last.paths.len(), last.paths[20].as_str()), (400, 21, "… (80 more)"));
        assert!(last.tool.as_ref().unwrap().ends_with(" … (99800 characters more)"));
        assert!(serde_json::to_vec(&entries).unwrap().len() <= MAX_ANSWER_LEN + 1);
        assert!(entries.len() > 1 && entries.first().unwrap().seq > 1, "{}", entries.len());
    }
}
