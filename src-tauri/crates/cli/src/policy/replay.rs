//! `policy replay`: re-evaluates recorded calls with the policy in effect or a given policy.

use super::{PolicyReport, point_in_time};
use crate::text_lines::{TextLines, counted};
use ironcurtain_admin::trial::PolicyTrial;
use ironcurtain_policy::Decision;
use ironcurtain_policy_tools::Ruling;
use ironcurtain_policy_tools::replay::{
    CallGroupKey, CallGroups, CannotReplay, RecordedCall, Replay, ReplayComparison,
};
use serde_json::{Value, json};

/// Maximum number of log entries listed for a group of similar calls.
const MAX_LISTED: usize = 5;

pub fn report(trial: &PolicyTrial, since_ms: u64) -> anyhow::Result<PolicyReport> {
    let replay = trial.replay(since_ms)?;
    let comparison = ReplayComparison::new(&replay);
    Ok(PolicyReport {
        text: to_text(&replay, &comparison),
        json: as_json(&replay, &comparison),
        good: replay.problem.is_none(),
    })
}

fn to_text(replay: &Replay, comparison: &ReplayComparison<'_>) -> TextLines {
    let mut text = TextLines::default();
    for (what, groups) in [("LOOSER", &comparison.looser), ("stricter", &comparison.stricter)] {
        groups.iter().for_each(|(alike, calls)| append_group(&mut text, what, alike, calls));
    }
    for (obstacle, calls) in &comparison.not_replayed {
        let entries = entries(calls.iter().copied());
        text.line(format_args!("not replayed: {obstacle} ({entries})"));
    }
    if let Some(problem) = &replay.problem {
        text.line(format_args!(
            "THE AUDIT LOG WAS CHANGED after {} entries: {problem}; later entries were not replayed",
            replay.entries
        ));
    }
    text.line(format_args!(
        "{} recorded: {} looser, {} stricter, {} unchanged, {} not replayed.",
        counted(replay.calls.len(), "call"),
        count(&comparison.looser),
        count(&comparison.stricter),
        comparison.same,
        comparison.not_replayed.values().map(Vec::len).sum::<usize>(),
    ));
    text
}

fn as_json(replay: &Replay, comparison: &ReplayComparison<'_>) -> Value {
    let groups = |groups: &CallGroups<'_>| -> Vec<Value> {
        groups.iter().map(|(alike, calls)| group_as_json(alike, calls)).collect()
    };
    let left_out = comparison.not_replayed.iter().map(|(obstacle, calls)| {
        json!({
            "kind": obstacle_name(obstacle), "message": obstacle.to_string(),
            "entries": calls.iter().map(|call| call.seq).collect::<Vec<_>>(),
        })
    });
    json!({
        "calls": replay.calls.len(), "entries": replay.entries, "problem": replay.problem,
        "looser": groups(&comparison.looser), "stricter": groups(&comparison.stricter), "same": comparison.same,
        "notReplayed": left_out.collect::<Vec<_>>(),
    })
}

fn count(groups: &CallGroups<'_>) -> usize {
    groups.values().map(Vec::len).sum()
}

fn append_group(
    text: &mut TextLines,
    what: &str,
    alike: &CallGroupKey<'_>,
    calls: &[(&RecordedCall, &Ruling)],
) {
    text.line(format_args!(
        "{what}: {}/{} from {} (`{}`) to {} (`{}`), {} ({})",
        alike.server,
        alike.tool,
        alike.then.0.as_str(),
        alike.then.1,
        alike.now.0.as_str(),
        alike.now.1,
        counted(calls.len(), "call"),
        entries(calls.iter().map(|(call, _)| *call)),
    ));
    if let Some((call, now)) = calls.first() {
        let paths = call.paths.join(" ");
        text.line(format_args!(
            "  for example on {}: {paths}  {}",
            point_in_time::format_time(call.time_ms),
            now.reason
        ));
    }
}

/// Lists the log entries of the first [`MAX_LISTED`] calls.
fn entries<'a>(calls: impl Iterator<Item = &'a RecordedCall> + Clone) -> String {
    let numbers: Vec<String> = calls.clone().take(MAX_LISTED).map(|call| call.seq.to_string()).collect();
    let rest = calls.count().saturating_sub(MAX_LISTED);
    let more = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    format!("entries {}{more}", numbers.join(", "))
}

fn group_as_json(alike: &CallGroupKey<'_>, calls: &[(&RecordedCall, &Ruling)]) -> Value {
    let decision_as_json =
        |(decision, rule): (Decision, &str)| json!({ "decision": decision.as_str(), "rule": rule });
    let calls = calls.iter().map(|(call, now)| {
        json!({
            "entry": call.seq, "timeMs": call.time_ms, "session": call.session, "client": call.client,
            "paths": call.paths, "granted": call.granted, "reason": now.reason,
        })
    });
    json!({
        "server": alike.server, "tool": alike.tool, "then": decision_as_json(alike.then), "now": decision_as_json(alike.now),
        "calls": calls.collect::<Vec<_>>(),
    })
}

fn obstacle_name(obstacle: &CannotReplay) -> &'static str {
    match obstacle {
        CannotReplay::Redacted(_) => "redacted",
        CannotReplay::ServerRemoved(_) => "server-gone",
        CannotReplay::Moved { .. } => "moved",
        CannotReplay::RepositoryRemoved(_) => "repository-gone",
    }
}
