//! `policy diff`: shows which calls the new policy decides more loosely or more strictly than the old policy.

use super::{PolicyInputs, PolicyReport};
use crate::lines::{TextLines, counted};
use ironcurtain_policy_tools::diff::{DecisionChange, Difference, ProbeOutcome, diff};
use serde_json::{Value, json};
use std::path::Path;

pub fn report(old: &Path, new: &Path, inputs: &PolicyInputs) -> anyhow::Result<PolicyReport> {
    let (old, new) = (super::open(Some(old), inputs)?, super::open(Some(new), inputs)?);
    let difference = diff(&old.snapshot.policy, &new.snapshot.policy, &new.snapshot.annotations);
    Ok(PolicyReport { text: in_words(&difference), json: as_json(&difference), good: true })
}

pub fn in_words(difference: &Difference) -> TextLines {
    let mut text = TextLines::default();
    for (what, rules) in
        [("added", &difference.added), ("removed", &difference.removed), ("changed", &difference.changed)]
    {
        rules.iter().for_each(|rule| text.line(format_args!("rule {what}: `{rule}`")));
    }
    if difference.reordered {
        text.line("rules were reordered");
    }
    for (what, looser) in [("LOOSER", true), ("stricter", false)] {
        for change in difference.decisions.iter().filter(|change| change.is_looser() == looser) {
            text.line(format_args!(
                "{what}: {}/{} from {} to {}, {}{}, as {}",
                change.server,
                change.tool,
                side(&change.old),
                side(&change.new),
                counted(change.probes, "probe"),
                if change.reaches_nothing { ", if its server can reach nothing" } else { "" },
                Value::Object(change.arguments.clone()),
            ));
        }
    }
    for tool in &difference.cut_short {
        text.line(format_args!(
            "not every probe of {tool} was tried: there are too many, or no valid one could be generated"
        ));
    }
    text.line(format_args!(
        "Compared {} by the rules alone; differences that no probe hits are not shown.",
        counted(difference.probes, "probe")
    ));
    text
}

fn side((outcome, rule): &(ProbeOutcome, String)) -> String {
    match outcome {
        ProbeOutcome::Uncovered => "deny (no rule)".to_owned(),
        ProbeOutcome::Allow | ProbeOutcome::Escalate | ProbeOutcome::Deny => {
            format!("{} (`{rule}`)", outcome.decision().as_str())
        }
    }
}

pub fn as_json(difference: &Difference) -> Value {
    let side = |looser: bool| {
        let changes = difference.decisions.iter().filter(|change| change.is_looser() == looser);
        changes.map(change_as_json).collect::<Vec<_>>()
    };
    json!({
        "added": difference.added, "removed": difference.removed, "changed": difference.changed,
        "reordered": difference.reordered, "looser": side(true), "stricter": side(false),
        "probes": difference.probes, "cutShort": difference.cut_short, "complete": false,
    })
}

fn change_as_json(change: &DecisionChange) -> Value {
    let side = |(outcome, rule): &(ProbeOutcome, String)| json!({ "decision": outcome.decision().as_str(), "rule": rule });
    let mut told = json!({
        "server": change.server, "tool": change.tool, "arguments": change.arguments,
        "old": side(&change.old), "new": side(&change.new), "probes": change.probes,
    });
    if let Some(told) = told.as_object_mut().filter(|_| change.reaches_nothing) {
        told.insert("serverReaches".to_owned(), json!("nothing"));
    }
    told
}
