//! `policy replay`: re-evaluates recorded calls with the policy in effect or a given policy.

use super::{PolicyReport, since};
use crate::lines::{TextLines, counted};
use ironcurtain_admin::trial::PolicyTrial;
use ironcurtain_policy::Decision;
use ironcurtain_policy_tools::Ruling;
use ironcurtain_policy_tools::replay::{
    AlikeCalls, AlikeGroups, Obstacle, Recorded, Replay, ReplayComparison,
};
use serde_json::{Value, json};

/// Maximum number of log entries listed for a group of similar calls.
const NAMED: usize = 5;

pub fn report(world: &PolicyTrial, since_ms: u64) -> anyhow::Result<PolicyReport> {
    let replay = world.replay(since_ms)?;
    let sorted = ReplayComparison::new(&replay);
    Ok(PolicyReport {
        text: in_words(&replay, &sorted),
        json: as_json(&replay, &sorted),
        good: replay.problem.is_none(),
    })
}

fn in_words(replay: &Replay, sorted: &ReplayComparison<'_>) -> TextLines {
    let mut text = TextLines::default();
    for (what, groups) in [("LOOSER", &sorted.looser), ("stricter", &sorted.stricter)] {
        groups.iter().for_each(|(alike, calls)| group_in_words(&mut text, what, alike, calls));
    }
    for (obstacle, calls) in &sorted.left_out {
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
        count(&sorted.looser),
        count(&sorted.stricter),
        sorted.same,
        sorted.left_out.values().map(Vec::len).sum::<usize>(),
    ));
    text
}

fn as_json(replay: &Replay, sorted: &ReplayComparison<'_>) -> Value {
    let groups = |groups: &AlikeGroups<'_>| -> Vec<Value> {
        groups.iter().map(|(alike, calls)| group_as_json(alike, calls)).collect()
    };
    let left_out = sorted.left_out.iter().map(|(obstacle, calls)| {
        json!({
            "kind": kind(obstacle), "message": obstacle.to_string(),
            "entries": calls.iter().map(|call| call.seq).collect::<Vec<_>>(),
        })
    });
    json!({
        "calls": replay.calls.len(), "entries": replay.entries, "problem": replay.problem,
        "looser": groups(&sorted.looser), "stricter": groups(&sorted.stricter), "same": sorted.same,
        "notReplayed": left_out.collect::<Vec<_>>(),
    })
}

fn count(groups: &AlikeGroups<'_>) -> usize {
    groups.values().map(Vec::len).sum()
}

fn group_in_words(text: &mut TextLines, what: &str, alike: &AlikeCalls<'_>, calls: &[(&Recorded, &Ruling)]) {
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
        text.line(format_args!("  for example on {}: {paths}  {}", since::words(call.time_ms), now.reason));
    }
}

/// Lists the log entries of the first [`NAMED`] calls.
fn entries<'a>(calls: impl Iterator<Item = &'a Recorded> + Clone) -> String {
    let numbers: Vec<String> = calls.clone().take(NAMED).map(|call| call.seq.to_string()).collect();
    let rest = calls.count().saturating_sub(NAMED);
    let more = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    format!("entries {}{more}", numbers.join(", "))
}

fn group_as_json(alike: &AlikeCalls<'_>, calls: &[(&Recorded, &Ruling)]) -> Value {
    let side = |(decision, rule): (Decision, &str)| json!({ "decision": decision.as_str(), "rule": rule });
    let calls = calls.iter().map(|(call, now)| {
        json!({
            "entry": call.seq, "timeMs": call.time_ms, "session": call.session, "client": call.client,
            "paths": call.paths, "granted": call.granted, "reason": now.reason,
        })
    });
    json!({
        "server": alike.server, "tool": alike.tool, "then": side(alike.then), "now": side(alike.now),
        "calls": calls.collect::<Vec<_>>(),
    })
}

fn kind(obstacle: &Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Redacted(_) => "redacted",
        Obstacle::ServerRemoved(_) => "server-gone",
        Obstacle::Moved { .. } => "moved",
        Obstacle::RepositoryRemoved(_) => "repository-gone",
    }
}
