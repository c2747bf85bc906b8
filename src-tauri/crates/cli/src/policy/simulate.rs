//! `policy simulate`: a file of calls with the decisions that are expected, for whoever changes a policy.

use super::Report;
use super::explain::word;
use super::files::World;
use anyhow::{Context, bail};
use ironcurtain_policy::{Decision, Denial};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Scenarios {
    #[serde(default)]
    schema_version: Option<u64>,
    /// The session sandbox of every call.
    #[serde(default)]
    sandbox: Option<PathBuf>,
    scenarios: Vec<Scenario>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Scenario {
    name: String,
    server: String,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    expect: Expected,
    /// The rule that must decide, where that matters.
    #[serde(default)]
    rule: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Expected {
    Allow,
    Escalate,
    Deny,
}

pub fn report(world: World, file: &Path) -> anyhow::Result<Report> {
    let name = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("`{name}` cannot be read"))?;
    let stored: Scenarios = serde_json::from_str(&text).with_context(|| format!("`{name}`"))?;
    if stored.schema_version.is_some_and(|version| version != 1) {
        bail!("`{name}`: `schemaVersion` must be 1");
    }
    let world = world.with_sandbox(stored.sandbox.as_deref())?;
    let (mut text, mut results, mut failed) = (String::new(), Vec::new(), 0);
    for scenario in &stored.scenarios {
        let judged = world.judge(&scenario.server, &scenario.tool, &scenario.arguments, None)?;
        let (decision, rule, reason) = match &judged.outcome {
            Ok(explanation) => {
                let verdict = &explanation.verdict;
                (verdict.decision(), verdict.rule().into(), String::new())
            }
            Err(Denial { rule, reason }) => (Decision::Deny, rule.clone(), format!(": {reason}")),
        };
        let expected = decision_of(scenario.expect);
        let good =
            decision == expected && scenario.rule.as_ref().is_none_or(|wanted| rule == wanted.as_str());
        if !good {
            failed += 1;
            let by = scenario.rule.as_ref().map(|rule| format!(" by `{rule}`")).unwrap_or_default();
            text.push_str(&format!(
                "FAILED `{}`: expected {}{by}, but it is {} by `{rule}`{reason}\n",
                scenario.name,
                word(expected),
                word(decision),
            ));
        }
        results.push(json!({
            "name": scenario.name, "good": good, "expected": word(expected), "decision": word(decision), "rule": rule,
        }));
    }
    text.push_str(&format!("{} scenarios, {failed} failed.\n", results.len()));
    let json = json!({ "file": file, "failed": failed, "scenarios": results });
    Ok(Report { text, json, good: failed == 0 })
}

fn decision_of(expected: Expected) -> Decision {
    match expected {
        Expected::Allow => Decision::Allow,
        Expected::Escalate => Decision::Escalate,
        Expected::Deny => Decision::Deny,
    }
}
