//! Scenarios: calls with the decisions that a policy should make.
//!
//! - The caller reads the file and judges the calls, because both need disk access.

use crate::Ruling;
use ironcurtain_policy::{Decision, strict};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Supported version of the scenarios format.
const VERSION: u64 = 1;

/// Parsed scenarios file.
#[derive(Debug)]
pub struct Scenarios {
    /// Sandbox directory that all calls share, or `None` if the session has no sandbox.
    pub sandbox: Option<PathBuf>,
    /// Scenarios in the order of the file. Never empty.
    pub all: Vec<Scenario>,
}

/// Call with its expected decision.
#[derive(Debug)]
pub struct Scenario {
    /// Name of the scenario.
    pub name: String,
    /// Name of the server.
    pub server: String,
    /// Name of the tool.
    pub tool: String,
    /// Arguments of the call.
    pub arguments: Map<String, Value>,
    /// Expected decision.
    pub expected: Decision,
    /// Name of the rule that must decide, or `None` if any rule may decide.
    pub rule: Option<String>,
}

/// Reason a scenarios file is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ScenariosError {
    /// Line number, counted from 1, or `None` if unknown.
    pub line: Option<usize>,
    /// Description of the error.
    pub problem: String,
}

impl Scenarios {
    /// Parses a scenarios file.
    ///
    /// # Errors
    /// Returns [`ScenariosError`], which names the scenario and the field, if the file is invalid.
    pub fn parse(text: &str) -> Result<Self, ScenariosError> {
        let stored = strict::read(text).and_then(|stored| strict::check_numbers(text).map(|()| stored));
        let stored: StoredScenarios = stored.map_err(|error| {
            let scenario = name_of(text, &error.field).map(|name| format!("scenario `{name}`, "));
            let problem = format!("{}{error}", scenario.unwrap_or_default());
            ScenariosError { line: error.line, problem }
        })?;
        let error_at =
            |field: &str, problem| Err(ScenariosError { line: strict::line_of(text, &[field]), problem });
        if stored.schema_version != VERSION {
            return error_at("schemaVersion", format!("`schemaVersion` must be {VERSION}"));
        }
        if stored.scenarios.is_empty() {
            return error_at("scenarios", "`scenarios` is empty; add at least one".to_owned());
        }
        let is_absolute_or_home = |sandbox: &PathBuf| sandbox.is_absolute() || sandbox.starts_with("~");
        if !stored.sandbox.as_ref().is_none_or(is_absolute_or_home) {
            return error_at("sandbox", "`sandbox`: must be absolute or start with `~/`".to_owned());
        }
        let all = stored.scenarios.into_iter().map(Scenario::from).collect();
        Ok(Self { sandbox: stored.sandbox, all })
    }
}

impl Scenario {
    /// Returns `true` if a ruling has the expected decision and, if the scenario names a rule, was made by that rule.
    #[must_use]
    pub fn expects(&self, ruling: &Ruling) -> bool {
        ruling.decision == self.expected && self.rule.as_ref().is_none_or(|rule| ruling.rule == *rule)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoredScenarios {
    #[serde(default = "default_version")]
    schema_version: u64,
    #[serde(default)]
    sandbox: Option<PathBuf>,
    scenarios: Vec<StoredScenario>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoredScenario {
    name: String,
    server: String,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    expect: Expected,
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

fn default_version() -> u64 {
    VERSION
}

impl From<StoredScenario> for Scenario {
    fn from(stored: StoredScenario) -> Self {
        let StoredScenario { name, server, tool, arguments, expect, rule } = stored;
        let expected = match expect {
            Expected::Allow => Decision::Allow,
            Expected::Escalate => Decision::Escalate,
            Expected::Deny => Decision::Deny,
        };
        Self { name, server, tool, arguments, expected, rule }
    }
}

/// Returns the name of the scenario that contains a field such as `scenarios[0].expect`, or `None` if it has no name.
fn name_of(text: &str, field: &str) -> Option<String> {
    let (index, _) = field.strip_prefix("scenarios[")?.split_once(']')?;
    let stored: Value = serde_json::from_str(text).ok()?;
    let name = stored.get("scenarios")?.get(index.parse::<usize>().ok()?)?.get("name")?;
    name.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(expect: &str) -> String {
        format!(
            r#"{{"scenarios": [{{"name": "n", "server": "s", "tool": "t", "expect": "{expect}", "rule": "r"}}]}}"#
        )
    }

    #[test]
    fn a_scenario_expects_its_decision_by_its_rule() {
        let scenarios = Scenarios::parse(&one("deny")).unwrap().all;
        let ruling = |decision, rule: &str| Ruling { decision, rule: rule.to_owned(), reason: String::new() };
        let expected = |ruling| scenarios[0].expects(&ruling);
        assert!(expected(ruling(Decision::Deny, "r")));
        assert!(!expected(ruling(Decision::Deny, "other")));
        assert!(!expected(ruling(Decision::Allow, "r")));
    }

    #[test]
    fn an_error_names_its_scenario_and_line() {
        let problem = |text: &str| Scenarios::parse(text).unwrap_err();
        let unknown = problem(&one("maybe"));
        assert!(unknown.problem.starts_with("scenario `n`, `scenarios[0].expect`"), "{unknown}");
        assert_eq!(unknown.line, Some(1));
        let none = problem("{\n\"scenarios\": []}");
        assert_eq!(
            (none.line, none.to_string().as_str()),
            (Some(2), "`scenarios` is empty; add at least one")
        );
    }
}
