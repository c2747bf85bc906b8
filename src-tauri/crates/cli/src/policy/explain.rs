//! `policy explain`: how one call is judged, in words.

use super::Report;
use super::client::Held;
use super::files::{Judged, World};
use anyhow::Context;
use ironcurtain_daemon::facts::FoundPath;
use ironcurtain_policy::{Decision, Denial, Miss, Reason, Settled, SharedStr, Step, Verdict};
use serde_json::{Map, Value, json};

const NO_GRANTS: &str = "Grants are not part of this; `--client` says whose are to count.\n";

pub fn report(
    world: &World,
    server: &str,
    tool: &str,
    arguments: &str,
    held: Option<&Held>,
) -> anyhow::Result<Report> {
    let arguments: Map<String, Value> =
        serde_json::from_str(arguments).context("`--args` must be a JSON object")?;
    let judged = world.judge(server, tool, &arguments, held)?;
    let mut text = format!("{server}/{tool}\n");
    judged.paths.iter().for_each(|path| text.push_str(&path_in_words(path)));
    match &judged.outcome {
        Err(denial) => text.push_str(&denial_in_words(denial)),
        Ok(explanation) => {
            explanation.steps.iter().for_each(|step| text.push_str(&step_in_words(step)));
            text.push_str(&verdict_in_words(&explanation.verdict));
        }
    }
    text.push_str(&held.map_or_else(|| NO_GRANTS.to_owned(), Held::in_words));
    let mut json = json(server, tool, &judged);
    if let (Some(held), Some(fields)) = (held, json.as_object_mut()) {
        fields.insert("client".to_owned(), held.as_json());
    }
    Ok(Report { text, json, good: true })
}

/// The word for a decision, as in the files.
pub fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Escalate => "escalate",
        Decision::Deny => "deny",
    }
}

fn path_in_words(found: &FoundPath) -> String {
    let mut text = format!("  `{}` is {}\n", found.argument, found.written);
    for link in &found.links {
        text.push_str(&format!("    the link {} leads to {}\n", link.at, link.target));
    }
    if found.path.as_str() != found.written {
        text.push_str(&format!("    which is {}\n", found.path));
    }
    text
}

fn step_in_words(step: &Step) -> String {
    let what = match (step.role, step.argument.as_str()) {
        (None, _) => "  the call as a whole".to_owned(),
        (Some(role), "") => format!("  {role}: {}", step.subject),
        (Some(role), argument) => format!("  {role} in `{argument}`: {}", step.subject),
    };
    let mut text = format!("{what}\n");
    for (rule, miss) in &step.passed {
        text.push_str(&format!("    not `{rule}`: {}\n", miss_in_words(*miss)));
    }
    let settled = match &step.settled {
        Settled::Sandbox => "allow: it is inside the session sandbox".to_owned(),
        Settled::Grant(id) => format!("allow: by the grant `{id}`"),
        Settled::Rule { name, then, reason } => format!("{}: by the rule `{name}`: {reason}", word(*then)),
        Settled::Nothing => "deny: no rule covers it".to_owned(),
    };
    text.push_str(&format!("    {settled}\n"));
    if step.gated {
        text.push_str("    escalate: it is not among the hosts of this server\n");
    }
    text
}

fn miss_in_words(miss: Miss) -> &'static str {
    match miss {
        Miss::OtherRoles => "it does not speak about this role",
        Miss::NotWithin => "the path is not in its folder",
        Miss::NotInDomains => "a value of this role leads to none of its hosts",
        Miss::NotListed => "a value is not on its list",
        Miss::InDoubt => {
            "whether it is meant for the value is not known, and in doubt the stricter rule decides"
        }
        Miss::NoResource => "the conditions do not hold for a tool that names no resource",
    }
}

fn verdict_in_words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Allow(permit) => {
            format!(
                "Verdict: ALLOW, by {}.\n",
                permit.reasons().iter().map(name).collect::<Vec<_>>().join(", ")
            )
        }
        Verdict::Escalate(escalation) => {
            let mut text =
                format!("Verdict: ESCALATE, by `{}`: {}\n", escalation.by.rule, escalation.by.reason);
            for asked in &escalation.values {
                let role = asked.role.map_or("the call", |role| role.name());
                text.push_str(&format!("  asks about {role}: {} (by `{}`)\n", asked.subject, asked.by.rule));
            }
            text
        }
        Verdict::Deny(denial) => denial_in_words(denial),
    }
}

fn name(reason: &Reason) -> String {
    format!("`{}`", reason.rule)
}

fn denial_in_words(denial: &Denial) -> String {
    format!("Verdict: DENY, by `{}`: {}\n", denial.rule, denial.reason)
}

fn json(server: &str, tool: &str, judged: &Judged) -> Value {
    let paths: Vec<Value> = judged
        .paths
        .iter()
        .map(|found| {
            let links = found.links.iter().map(|link| json!({ "at": link.at, "target": link.target }));
            let links: Vec<Value> = links.collect();
            json!({ "argument": found.argument, "written": found.written, "path": found.path, "links": links })
        })
        .collect();
    let (steps, decision, rule, reason) = match &judged.outcome {
        Err(denial) => (Vec::new(), "deny", denial.rule.clone(), denial.reason.clone()),
        Ok(explanation) => {
            let verdict = &explanation.verdict;
            let steps = explanation.steps.iter().map(step_as_json).collect();
            (steps, word(verdict.decision()), verdict.rule().into(), reason(verdict))
        }
    };
    json!({
        "server": server, "tool": tool, "paths": paths, "steps": steps,
        "decision": decision, "rule": rule, "reason": reason,
    })
}

fn reason(verdict: &Verdict) -> SharedStr {
    match verdict {
        Verdict::Allow(permit) => {
            permit.reasons().first().map(|first| first.reason.clone()).unwrap_or_default()
        }
        Verdict::Escalate(escalation) => escalation.by.reason.clone(),
        Verdict::Deny(denial) => denial.reason.clone(),
    }
}

fn step_as_json(step: &Step) -> Value {
    let settled = match &step.settled {
        Settled::Sandbox => json!({ "by": "sandbox", "decision": "allow" }),
        Settled::Grant(id) => json!({ "by": "grant", "grant": id, "decision": "allow" }),
        Settled::Rule { name, then, reason } => {
            json!({ "by": "rule", "rule": name, "decision": word(*then), "reason": reason })
        }
        Settled::Nothing => json!({ "by": "nothing", "decision": "deny" }),
    };
    let passed = |(rule, miss): &(SharedStr, Miss)| json!({ "rule": rule, "why": miss_in_words(*miss) });
    json!({
        "role": step.role.map(|role| role.name()), "argument": step.argument, "subject": step.subject.to_string(),
        "settled": settled, "gated": step.gated, "passed": step.passed.iter().map(passed).collect::<Vec<_>>(),
    })
}
