//! `policy check`: what is questionable about a policy, and why one would not be taken.

use super::files::World;
use super::{Beside, Report};
use ironcurtain_daemon::LawError;
use ironcurtain_policy::LoadError;
use ironcurtain_policy::lint::{Finding, FindingKind, lint};
use serde_json::{Value, json};
use std::path::Path;

pub fn report(file: &Path, beside: &Beside) -> anyhow::Result<Report> {
    let world = match World::open(Some(file), beside) {
        Ok(world) => world,
        Err(problem) => {
            return match problem.downcast_ref::<LawError>() {
                Some(LawError::Load(error)) => Ok(refusal(file, error)),
                Some(_) | None => Err(problem),
            };
        }
    };
    let findings = lint(&world.law.policy, &world.law.annotations, &world.law.home);
    let name = file.display();
    let mut text: String = findings.iter().map(|finding| format!("`{name}`, {finding}\n")).collect();
    text.push_str(&format!("{} rules, {} findings.\n", world.law.policy.rules().len(), findings.len()));
    let json = json!({
        "file": file,
        "rules": world.law.policy.rules().len(),
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
    });
    Ok(Report { text, json, good: findings.is_empty() })
}

fn finding(finding: &Finding) -> Value {
    let kind = match &finding.kind {
        FindingKind::Shadowed { .. } => "shadowed",
        FindingKind::Dead(_) => "dead",
        FindingKind::BroadFolder(_) => "broad-folder",
        FindingKind::AnyHost => "any-host",
        FindingKind::Uncovered(_) => "uncovered-tool",
    };
    let place = if finding.rule.is_some() { "field" } else { "tool" };
    json!({ "kind": kind, "rule": finding.rule, place: finding.field, "message": finding.kind.to_string() })
}

/// What the loader says of a file that it does not take: the policy, or one of those around it.
fn refusal(file: &Path, error: &LoadError) -> Report {
    let found = match error {
        LoadError::Shape { place, message } => {
            json!({ "kind": "refused", "file": place.file, "line": place.line, "message": message })
        }
        LoadError::Rule { place, rule, field, message } => json!({
            "kind": "refused", "file": place.file, "line": place.line, "rule": rule, "field": field, "message": message,
        }),
        LoadError::Tool { place, server, tool, field, message } => json!({
            "kind": "refused", "file": place.file, "line": place.line, "server": server, "tool": tool, "field": field,
            "message": message,
        }),
        LoadError::List { place, list, field, message } => json!({
            "kind": "refused", "file": place.file, "line": place.line, "list": list, "field": field, "message": message,
        }),
    };
    let json = json!({ "file": file, "findings": [found] });
    Report { text: format!("REFUSED: {error}\n"), json, good: false }
}
