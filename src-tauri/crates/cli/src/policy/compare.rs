//! `policy diff`: shows which calls the new policy decides more loosely or more strictly than the old policy.

use super::{PolicyInputs, PolicyReport};
use crate::text_lines::{TextLines, counted};
use ironcurtain_policy_tools::diff::{DecisionChange, Difference, ProbeOutcome, diff};
use serde_json::{Value, json};
use std::path::Path;

pub fn report(old: &Path, new: &Path, inputs: &PolicyInputs) -> anyhow::Result<PolicyReport> {
    let (old, new) = (super::open(Some(old), inputs)?, super::open(Some(new), inputs)?);
    let difference = diff(&old.snapshot.policy, &new.snapshot.policy, &new.snapshot.annotations);
    Ok(PolicyReport { text: to_text(&difference), json: as_json(&difference), good: true })
}

pub fn to_text(difference: &Difference) -> TextLines {
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
                describe_decision(&change.old),
                describe_decision(&change.new),
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

fn describe_decision((outcome, rule): &(ProbeOutcome, String)) -> String {
    match outcome {
        ProbeOutcome::Uncovered => "deny (no rule)".to_owned(),
        ProbeOutcome::Allow | ProbeOutcome::Escalate | ProbeOutcome::Deny => {
            format!("{} (`{rule}`)", outcome.decision().as_str())
        }
    }
}

pub fn as_json(difference: &Difference) -> Value {
    let changes_as_json = |looser: bool| {
        let changes = difference.decisions.iter().filter(|change| change.is_looser() == looser);
        changes.map(change_as_json).collect::<Vec<_>>()
    };
    json!({
        "added": difference.added, "removed": difference.removed, "changed": difference.changed,
        "reordered": difference.reordered, "looser": changes_as_json(true), "stricter": changes_as_json(false),
        "probes": difference.probes, "cutShort": difference.cut_short, "complete": false,
    })
}

fn change_as_json(change: &DecisionChange) -> Value {
    let decision_as_json = |(outcome, rule): &(ProbeOutcome, String)| json!({ "decision": outcome.decision().as_str(), "rule": rule });
    let mut object = json!({
        "server": change.server, "tool": change.tool, "arguments": change.arguments,
        "old": decision_as_json(&change.old), "new": decision_as_json(&change.new), "probes": change.probes,
    });
    if let Some(object) = object.as_object_mut().filter(|_| change.reaches_nothing) {
        object.insert("serverReaches".to_owned(), json!("nothing"));
    }
    object
}
