//! `policy check`: what is questionable about a policy.

use super::files::World;
use super::{Beside, Report};
use ironcurtain_policy::lint::{Finding, FindingKind, lint};
use serde_json::{Value, json};
use std::path::Path;

pub fn report(file: &Path, beside: &Beside) -> anyhow::Result<Report> {
    let world = World::open(Some(file), beside)?;
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
