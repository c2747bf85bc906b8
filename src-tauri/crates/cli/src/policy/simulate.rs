//! `policy simulate`: a file of calls with the decisions that are expected, for whoever changes a policy.

use super::Report;
use super::explain::{reason, word};
use super::files::World;
use crate::sheet::{Sheet, counted};
use ironcurtain_daemon::ConfigError;
use ironcurtain_paths::bounded_read;
use ironcurtain_policy::{Decision, Denial, SourceLocation, strict};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io;
use std::path::{Path, PathBuf};

/// The version of the file format.
const VERSION: u64 = 1;

fn unsaid_version() -> u64 {
    VERSION
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Scenarios {
    #[serde(default = "unsaid_version")]
    schema_version: u64,
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
    let stored = read(file)?;
    let world = world.with_sandbox(stored.sandbox.as_deref())?;
    let (mut text, mut results, mut failed) = (Sheet::default(), Vec::new(), 0);
    for scenario in &stored.scenarios {
        let judged = world.judge(&scenario.server, &scenario.tool, &scenario.arguments, None)?;
        let (decision, rule, reason) = match &judged.outcome {
            Ok(explanation) => {
                let verdict = &explanation.verdict;
                (verdict.decision(), verdict.rule().into(), reason(verdict))
            }
            Err(Denial { rule, reason, .. }) => (Decision::Deny, rule.clone(), reason.clone()),
        };
        let expected = decision_of(scenario.expect);
        let good = decision == expected && scenario.rule.as_ref().is_none_or(|wanted| *rule == **wanted);
        if !good {
            failed += 1;
            let by = scenario.rule.as_ref().map(|rule| format!(" by `{rule}`")).unwrap_or_default();
            text.line(format_args!(
                "FAILED `{}`: expected {}{by}, but it is {} by `{rule}`: {reason}",
                scenario.name,
                word(expected),
                word(decision),
            ));
        }
        results.push(json!({
            "name": scenario.name, "good": good, "expected": word(expected), "expectedRule": scenario.rule,
            "decision": word(decision), "rule": rule, "reason": reason,
        }));
    }
    text.line(format_args!("{}, {failed} failed.", counted(results.len(), "scenario")));
    let json = json!({ "file": file.display().to_string(), "failed": failed, "scenarios": results });
    Ok(Report { text, json, good: failed == 0 })
}

fn read(file: &Path) -> anyhow::Result<Scenarios> {
    let unread = |source: io::Error| ConfigError::Io { path: file.to_path_buf(), source };
    let text = bounded_read::text(file).map_err(unread)?;
    let text =
        text.ok_or_else(|| unread(io::Error::new(io::ErrorKind::NotFound, "there is no such file")))?;
    let invalid = |line: Option<usize>, problem: String| ConfigError::Invalid {
        place: SourceLocation { file: file.display().to_string(), line },
        problem,
    };
    let stored = strict::read(&text).and_then(|stored| strict::exact(&text).map(|()| stored));
    let stored: Scenarios = stored.map_err(|misread| {
        let scenario = name_of(&text, &misread.field).map(|name| format!("scenario `{name}`, "));
        invalid(misread.line, format!("{}{misread}", scenario.unwrap_or_default()))
    })?;
    if stored.schema_version != VERSION {
        let problem = format!("`schemaVersion` must be {VERSION}");
        return Err(invalid(strict::line_of(&text, &["schemaVersion"]), problem).into());
    }
    let wrong = |field: &str, problem: &str| {
        Err(invalid(strict::line_of(&text, &[field]), format!("`{field}`: {problem}")).into())
    };
    if stored.scenarios.is_empty() {
        return wrong("scenarios", "there is none, so nothing would be tried");
    }
    let is_whole = |sandbox: &PathBuf| sandbox.is_absolute() || sandbox.starts_with("~");
    if !stored.sandbox.as_ref().is_none_or(is_whole) {
        return wrong("sandbox", "must be absolute or begin with `~/`");
    }
    Ok(stored)
}

/// The name of the scenario that a field, such as `scenarios[0].expect`, is in, where it has one.
fn name_of(text: &str, field: &str) -> Option<String> {
    let (index, _) = field.strip_prefix("scenarios[")?.split_once(']')?;
    let stored: Value = serde_json::from_str(text).ok()?;
    let name = stored.get("scenarios")?.get(index.parse::<usize>().ok()?)?.get("name")?;
    name.as_str().map(str::to_owned)
}

fn decision_of(expected: Expected) -> Decision {
    match expected {
        Expected::Allow => Decision::Allow,
        Expected::Escalate => Decision::Escalate,
        Expected::Deny => Decision::Deny,
    }
}
