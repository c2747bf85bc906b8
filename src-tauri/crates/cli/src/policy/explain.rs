//! `policy explain`: explains how a call is decided.

use super::{PolicyReport, client};
use crate::text_lines::TextLines;
use anyhow::anyhow;
use ironcurtain_admin::trial::{ClientGrants, JudgedCall, PolicyTrial};
use ironcurtain_consent::found_paths::FoundPath;
use ironcurtain_policy::{
    Denial, Explanation, ExplanationStep, Mismatch, RuleReason, StepBasis, Verdict, strict,
};
use ironcurtain_policy_tools::Ruling;
use ironcurtain_policy_tools::explained::{
    decision_of, describe_mismatch, describe_value, is_decided_by_host_list, reason_of,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const NO_GRANTS: &str = "Grants were not considered; use `--client` to include those of a client.";

pub fn report(
    trial: &PolicyTrial,
    server: &str,
    tool: &str,
    arguments: &str,
    held: Option<&ClientGrants>,
) -> anyhow::Result<PolicyReport> {
    let read = strict::read(arguments).and_then(|read| strict::check_numbers(arguments).map(|()| read));
    let arguments: Map<String, Value> =
        read.map_err(|misread| anyhow!("`--args` must be a JSON object: {misread}"))?;
    let judged = trial.judge(server, tool, &arguments, held);
    let mut text = TextLines::default();
    text.line(format_args!("{server}/{tool}"));
    judged.paths.iter().for_each(|path| append_path(&mut text, path));
    match &judged.outcome {
        Err(denial) => text.line(describe_denial(denial)),
        Ok(explanation) => {
            explanation.steps.iter().for_each(|step| append_step(&mut text, step));
            append_verdict(&mut text, &explanation.verdict);
        }
    }
    match held {
        Some(held) => text.append(&client::to_text(held)),
        None => text.line(NO_GRANTS),
    }
    let mut json = json(server, tool, &judged);
    if let (Some(held), Some(fields)) = (held, json.as_object_mut()) {
        fields.insert("client".to_owned(), client::as_json(held));
    }
    Ok(PolicyReport { text, json, good: true })
}

fn append_path(text: &mut TextLines, found: &FoundPath) {
    text.line(format_args!("  `{}` is {}", found.argument, found.written));
    for link in &found.links {
        text.line(format_args!("    the symlink {} leads to {}", link.path, link.target));
    }
    if found.path.as_str() != found.written {
        text.line(format_args!("    which is {}", found.path));
    }
}

fn append_step(text: &mut TextLines, step: &ExplanationStep) {
    text.line(format_args!("  {}", describe_value(step)));
    for (rule, miss) in &step.skipped_rules {
        text.line(format_args!("    not `{rule}`: {}", describe_mismatch(*miss)));
    }
    text.line(format_args!("    {}: {}", decision_of(step).as_str(), reason_of(step)));
}

fn append_verdict(text: &mut TextLines, verdict: &Verdict) {
    match verdict {
        Verdict::Allow(permit) => {
            let reasons = std::iter::once(permit.reason()).chain(permit.others());
            let by = reasons.map(name).collect::<Vec<_>>().join(", ");
            text.line(format_args!("Verdict: ALLOW, by {by}."));
        }
        Verdict::Escalate(escalation) => {
            let by = &escalation.by;
            text.line(format_args!("Verdict: ESCALATE, by `{}`: {}", by.rule, by.reason));
            for asked in &escalation.values {
                let role = asked.role.map_or("the call", |role| role.name());
                text.line(format_args!("  asks about {role}: {} (by `{}`)", asked.subject, asked.by.rule));
            }
        }
        Verdict::Deny(denial) => {
            text.line(describe_denial(denial));
            for also in &denial.others {
                text.line(format_args!("  also denied by `{}`: {}", also.rule, also.reason));
            }
        }
    }
}

fn name(reason: &RuleReason) -> String {
    format!("`{}`", reason.rule)
}

fn describe_denial(denial: &Denial) -> String {
    format!("Verdict: DENY, by `{}`: {}", denial.rule, denial.reason)
}

fn json(server: &str, tool: &str, judged: &JudgedCall) -> Value {
    let paths: Vec<Value> = judged
        .paths
        .iter()
        .map(|found| {
            let links = found.links.iter().map(|link| json!({ "at": link.path, "target": link.target }));
            let links: Vec<Value> = links.collect();
            json!({ "argument": found.argument, "written": found.written, "path": found.path, "links": links })
        })
        .collect();
    let Ruling { decision, rule, reason } = Ruling::from_judged(&judged.outcome);
    let (steps, asked, others) = match &judged.outcome {
        Err(_) => (Vec::new(), Vec::new(), Vec::new()),
        Ok(Explanation { steps, verdict }) => (
            steps.iter().map(step_as_json).collect(),
            questions_as_json(verdict),
            other_rules_as_json(verdict),
        ),
    };
    json!({
        "server": server, "tool": tool, "paths": paths, "steps": steps,
        "decision": decision.as_str(), "rule": rule, "reason": reason, "asked": asked, "others": others,
    })
}

/// Returns the argument values that require approval, as JSON.
fn questions_as_json(verdict: &Verdict) -> Vec<Value> {
    let Verdict::Escalate(escalation) = verdict else { return Vec::new() };
    let asked = escalation.values.iter().map(|asked| {
        json!({
            "role": asked.role.map(|role| role.name()), "argument": asked.argument,
            "subject": asked.subject.to_string(), "rule": asked.by.rule, "reason": asked.by.reason,
        })
    });
    asked.collect()
}

/// Returns the other rules that matched, with their reasons.
fn other_rules_as_json(verdict: &Verdict) -> Vec<Value> {
    let others = match verdict {
        Verdict::Allow(permit) => permit.others(),
        Verdict::Escalate(escalation) => &escalation.others,
        Verdict::Deny(denial) => &denial.others,
    };
    others.iter().map(|by| json!({ "rule": by.rule, "reason": by.reason })).collect()
}

fn step_as_json(step: &ExplanationStep) -> Value {
    let decision = decision_of(step).as_str();
    let by = match &step.basis {
        StepBasis::SessionFolder => json!({ "by": "sandbox", "decision": decision }),
        StepBasis::Grant(id) => json!({ "by": "grant", "grant": id, "decision": decision }),
        // The gate decides before any rule is evaluated.
        StepBasis::Rule { name, .. } if is_decided_by_host_list(step) => {
            json!({ "by": "gate", "rule": name, "decision": decision })
        }
        StepBasis::Rule { name, reason, .. } => {
            json!({ "by": "rule", "rule": name, "decision": decision, "reason": reason })
        }
        StepBasis::Confined => json!({ "by": "confined", "decision": decision }),
        StepBasis::Unannotated => json!({ "by": "unannotated", "decision": decision }),
        StepBasis::NoRule if step.outside_allowed_hosts => json!({ "by": "gate", "decision": decision }),
        StepBasis::NoRule => json!({ "by": "nothing", "decision": decision }),
    };
    let skipped_rule =
        |(rule, miss): &(Arc<str>, Mismatch)| json!({ "rule": rule, "why": describe_mismatch(*miss) });
    json!({
        "role": step.role.map(|role| role.name()), "argument": step.argument, "subject": step.subject.to_string(),
        "settled": by, "gated": step.outside_allowed_hosts, "passed": step.skipped_rules.iter().map(skipped_rule).collect::<Vec<_>>(),
    })
}
