//! Examples of a rule: calls that it must cover, and calls that it must not cover.

use super::load::RuleReader;
use crate::LoadError;
use crate::json_location::JsonLocation;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Call that tests a rule when the policy is loaded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Example {
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) arguments: Arc<Map<String, Value>>,
    /// `true` if the rule must cover the call, `false` if the rule must not cover it.
    pub(crate) matches: bool,
    /// Dotted path of the example within the rule.
    pub(crate) field: String,
    pub(crate) line: Option<usize>,
}

#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StoredExamples {
    /// Calls with a value that the rule covers.
    #[serde(rename = "match")]
    #[cfg_attr(test, schemars(with = "Vec<StoredExample>"))]
    matching: Vec<Value>,
    /// Calls without a value that the rule covers.
    #[serde(rename = "noMatch")]
    #[cfg_attr(test, schemars(with = "Vec<StoredExample>"))]
    non_matching: Vec<Value>,
}

/// A call. Its paths are absolute or start with `~/`, without `.` and `..`.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct StoredExample {
    server: String,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

impl RuleReader<'_> {
    /// Parses the examples of the rule. Those under `match` come first.
    pub(super) fn examples(&self, stored: Option<Value>) -> Result<Vec<Example>, LoadError> {
        let Some(stored) = stored else { return Ok(Vec::new()) };
        let location = JsonLocation::Field(&JsonLocation::Whole, "examples");
        let stored: StoredExamples = self.read(location, stored)?;
        let mut examples = Vec::new();
        for (name, calls, matches) in
            [("match", stored.matching, true), ("noMatch", stored.non_matching, false)]
        {
            let list_location = JsonLocation::Field(&location, name);
            for (index, call) in calls.into_iter().enumerate() {
                let location = JsonLocation::Item(&list_location, index);
                let StoredExample { server, tool, arguments } = self.read(location, call)?;
                let (arguments, field, line) = (arguments.into(), location.to_string(), self.line(location));
                examples.push(Example { server, tool, arguments, matches, field, line });
            }
        }
        Ok(examples)
    }
}
