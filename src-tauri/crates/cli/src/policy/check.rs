//! `policy check`: reports questionable rules, or the reason the policy was rejected.

use super::{PolicyInputs, PolicyReport};
use crate::error_report::location_of_load_error;
use crate::text_lines::{TextLines, counted};
use ironcurtain_admin::trial::TrialError;
use ironcurtain_config::SnapshotError;
use ironcurtain_policy::{LoadError, SourceLocation};
use ironcurtain_policy_tools::RuleLines;
use ironcurtain_policy_tools::lint::{LintFinding, LintKind, lint};
use serde_json::{Map, Value, json};
use std::path::Path;

pub fn report(file: &Path, inputs: &PolicyInputs) -> anyhow::Result<PolicyReport> {
    let trial = match super::open(Some(file), inputs) {
        Ok(trial) => trial,
        Err(problem) => {
            return match problem.downcast_ref::<TrialError>() {
                Some(TrialError::Snapshot(SnapshotError::Load(error))) => Ok(refusal(file, error)),
                Some(_) | None => Err(problem),
            };
        }
    };
    let snapshot = &trial.snapshot;
    let lines = RuleLines::parse(snapshot.policy_text());
    let findings: Vec<Located> =
        lint(&snapshot.policy, &snapshot.annotations, &snapshot.protected, &snapshot.home)
            .into_iter()
            .map(|finding| {
                let line = finding.rule.as_ref().and_then(|rule| lines.line(rule, &finding.field));
                Located { finding, line }
            })
            .collect();
    let name = file.display().to_string();
    let mut text: TextLines = findings.iter().map(|located| located.to_text(&name)).collect();
    text.line(format_args!(
        "{}, {}.",
        counted(snapshot.policy.rules().len(), "rule"),
        counted(findings.len(), "finding")
    ));
    let asking = trial.servers_asking_about_unannotated();
    if !asking.is_empty() {
        text.line(format_args!(
            "Calls of unannotated tools require your approval on `{}`, unless a rule denies everything there.",
            asking.join("`, `")
        ));
    }
    let json = json!({
        "file": name,
        "asksAboutUnannotated": asking,
        "rules": snapshot.policy.rules().len(),
        "findings": findings.iter().map(Located::as_json).collect::<Vec<_>>(),
    });
    Ok(PolicyReport { text, json, good: findings.is_empty() })
}

/// Finding with the line number of the rule that it is about.
struct Located {
    finding: LintFinding,
    line: Option<usize>,
}

impl Located {
    fn to_text(&self, file: &str) -> String {
        format!("{}, {}", SourceLocation { file: file.to_owned(), line: self.line }, self.finding)
    }

    fn as_json(&self) -> Value {
        let LintFinding { rule, field, kind } = &self.finding;
        let place_key = if rule.is_some() { "field" } else { "tool" };
        let mut object = Map::new();
        object.insert("kind".to_owned(), kind_name(kind).into());
        object.insert("line".to_owned(), self.line.into());
        object.insert("rule".to_owned(), rule.as_deref().into());
        object.insert(place_key.to_owned(), field.as_str().into());
        object.insert("message".to_owned(), kind.to_string().into());
        if let LintKind::Shadowed { by, has_other_decision } = kind {
            object.insert("by".to_owned(), by.as_slice().into());
            object.insert("otherwise".to_owned(), (*has_other_decision).into());
        }
        object.into()
    }
}

fn kind_name(kind: &LintKind) -> &'static str {
    match kind {
        LintKind::Shadowed { .. } => "shadowed",
        LintKind::Dead(_) => "dead",
        LintKind::SkippedTools(_) => "passed-over",
        LintKind::UnknownName(_) => "unknown-name",
        LintKind::ProtectedFolder(_) => "protected-folder",
        LintKind::Wildcard(_) => "wildcard",
        LintKind::BroadFolder(_) => "broad-folder",
        LintKind::AnyHost => "any-host",
        LintKind::Everything(_) => "everything",
        LintKind::Uncovered(_) => "uncovered-tool",
    }
}

/// Reports the reason the policy or another file was rejected.
fn refusal(file: &Path, error: &LoadError) -> PolicyReport {
    let (LoadError::Shape { message, .. }
    | LoadError::Rule { message, .. }
    | LoadError::Tool { message, .. }
    | LoadError::List { message, .. }) = error;
    let mut found = location_of_load_error(error);
    found.insert("kind".to_owned(), "refused".into());
    found.insert("message".to_owned(), message.as_str().into());
    let json = json!({ "file": file.display().to_string(), "findings": [found] });
    PolicyReport { text: [format!("REJECTED: {error}")].into_iter().collect(), json, good: false }
}
