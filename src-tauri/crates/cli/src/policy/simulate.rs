//! `policy simulate`: evaluates the calls in a scenario file and compares the decisions with the expected decisions.

use super::PolicyReport;
use crate::text_lines::{TextLines, counted};
use ironcurtain_admin::trial::PolicyTrial;
use ironcurtain_config::ConfigError;
use ironcurtain_paths::bounded_read;
use ironcurtain_policy::SourceLocation;
use ironcurtain_policy_tools::Ruling;
use ironcurtain_policy_tools::simulate::Scenarios;
use serde_json::json;
use std::io;
use std::path::Path;

pub fn report(trial: PolicyTrial, file: &Path) -> anyhow::Result<PolicyReport> {
    report_on(trial, &read(file)?, file)
}

/// Evaluates the scenarios. The report names `file` as their source.
pub fn report_on(trial: PolicyTrial, scenarios: &Scenarios, file: &Path) -> anyhow::Result<PolicyReport> {
    let trial = trial.with_sandbox(scenarios.sandbox.as_deref())?;
    let (mut text, mut results, mut failed) = (TextLines::default(), Vec::new(), 0);
    for scenario in &scenarios.all {
        let judged = trial.judge(&scenario.server, &scenario.tool, &scenario.arguments, None);
        let ruling = Ruling::from_judged(&judged.outcome);
        let good = scenario.expects(&ruling);
        let Ruling { decision, rule, reason } = ruling;
        let (expected, decision) = (scenario.expected.as_str(), decision.as_str());
        if !good {
            failed += 1;
            let by = scenario.rule.as_ref().map(|rule| format!(" by `{rule}`")).unwrap_or_default();
            text.line(format_args!(
                "FAILED `{}`: expected {expected}{by}, found {decision} by `{rule}`: {reason}",
                scenario.name,
            ));
        }
        results.push(json!({
            "name": scenario.name, "good": good, "expected": expected, "expectedRule": scenario.rule,
            "decision": decision, "rule": rule, "reason": reason,
        }));
    }
    text.line(format_args!("{}, {failed} failed.", counted(results.len(), "scenario")));
    let json = json!({ "file": file.display().to_string(), "failed": failed, "scenarios": results });
    Ok(PolicyReport { text, json, good: failed == 0 })
}

fn read(file: &Path) -> Result<Scenarios, ConfigError> {
    let unread = |source: io::Error| ConfigError::Io { path: file.to_path_buf(), source };
    let text = bounded_read::read_text(file).map_err(unread)?;
    let text =
        text.ok_or_else(|| unread(io::Error::new(io::ErrorKind::NotFound, "the file does not exist")))?;
    Scenarios::parse(&text).map_err(|error| ConfigError::Invalid {
        location: SourceLocation { file: file.display().to_string(), line: error.line },
        problem: error.problem,
    })
}
