//! Calls that a rule says it covers, and calls that it says it does not: held against the rule when the file is loaded.
//!
//! - By spelling alone: paths in examples, and the folders of the rules they are held against, are taken as they are
//!   written, with `~` as the person's home. Nothing is looked up on disk.
//! - A rule covers a call when it covers one of its values, whatever the rules before it say.

use super::load::Reading;
use super::{Conditions, Policy, Rule};
use crate::judge::cover;
use crate::spot::Spot;
use crate::{Annotations, Fact, LoadError, Place, PlannedValue, ResolvedCall};
use ironcurtain_paths::CanonicalPath;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A call that a rule does or does not cover.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Example {
    server: String,
    tool: String,
    arguments: Arc<Map<String, Value>>,
    /// Whether the rule is to cover it.
    matches: bool,
    /// Where in the rule it stands.
    field: String,
    line: Option<usize>,
}

#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StoredExamples {
    /// Calls of which the rule covers something.
    #[serde(rename = "match")]
    #[cfg_attr(test, schemars(with = "Vec<StoredExample>"))]
    matching: Vec<Value>,
    /// Calls of which it covers nothing.
    #[serde(rename = "noMatch")]
    #[cfg_attr(test, schemars(with = "Vec<StoredExample>"))]
    others: Vec<Value>,
}

/// A call. Its paths are absolute or begin with `~/`, without `.` and `..`.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct StoredExample {
    server: String,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

impl Policy {
    /// Holds every example of the rules against its rule. `file` is what the policy was read from.
    ///
    /// # Errors
    /// The first example that fails, with file, line, rule and its place in the rule.
    pub fn check_examples(
        &self,
        file: &str,
        annotations: &Annotations,
        home: &CanonicalPath,
    ) -> Result<(), LoadError> {
        for rule in &self.rules {
            for example in &rule.examples {
                example.check(rule, annotations, home).map_err(|message| LoadError::Rule {
                    place: Box::new(Place { file: file.to_owned(), line: example.line }),
                    rule: rule.name().to_string(),
                    field: example.field.clone(),
                    message,
                })?;
            }
        }
        Ok(())
    }
}

impl Reading<'_> {
    /// The examples of the rule, those that match first.
    pub(super) fn examples(&self, stored: Option<Value>) -> Result<Vec<Example>, LoadError> {
        let Some(stored) = stored else { return Ok(Vec::new()) };
        let at = Spot::Field(&Spot::Whole, "examples");
        let stored: StoredExamples = self.read(at, stored)?;
        let mut examples = Vec::new();
        for (name, calls, matches) in [("match", stored.matching, true), ("noMatch", stored.others, false)] {
            let all = Spot::Field(&at, name);
            for (index, call) in calls.into_iter().enumerate() {
                let at = Spot::Item(&all, index);
                let StoredExample { server, tool, arguments } = self.read(at, call)?;
                let (arguments, field, line) = (arguments.into(), at.to_string(), self.line(at));
                examples.push(Example { server, tool, arguments, matches, field, line });
            }
        }
        Ok(examples)
    }
}

impl Example {
    fn check(&self, rule: &Rule, annotations: &Annotations, home: &CanonicalPath) -> Result<(), String> {
        let call = self.call(annotations, home)?;
        let rule = spelled(rule, home)?;
        let covers = names(&rule.condition, &self.server, &self.tool) && cover::covers_some(&rule, &call);
        match (self.matches, covers) {
            (true, true) | (false, false) => Ok(()),
            (true, false) => Err("the rule does not cover this call".to_owned()),
            (false, true) => Err("the rule covers this call".to_owned()),
        }
    }

    fn call(&self, annotations: &Annotations, home: &CanonicalPath) -> Result<ResolvedCall, String> {
        let plan = annotations.plan(&self.server, &self.tool, &self.arguments);
        let plan = plan.map_err(|denial| denial.reason.to_string())?;
        let fact = |value: &PlannedValue<'_>| match value.raw {
            Some(raw) if value.is_path() => lexical(raw, home).map(Fact::Path),
            Some(_) | None => Ok(Fact::Plain),
        };
        let facts = plan.values().iter().map(fact).collect::<Result<Vec<_>, _>>()?;
        plan.with_facts(facts).map_err(|denial| denial.reason.to_string())
    }
}

/// The rule with its folder as it is written.
fn spelled(rule: &Rule, home: &CanonicalPath) -> Result<Rule, String> {
    let mut rule = rule.clone();
    if let Some(paths) = &mut rule.condition.paths {
        paths.within = lexical(&paths.written, home)?;
    }
    Ok(rule)
}

/// A path by its spelling: absolute, or below the home.
fn lexical(raw: &str, home: &CanonicalPath) -> Result<CanonicalPath, String> {
    let rest = raw.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let absolute = rest.map(|rest| format!("{home}{rest}"));
    let absolute = absolute.as_deref().unwrap_or(raw);
    let trimmed = absolute.strip_suffix('/').filter(|trimmed| !trimmed.is_empty()).unwrap_or(absolute);
    CanonicalPath::assume_canonical(trimmed).map_err(|error| error.to_string())
}

fn names(condition: &Conditions, server: &str, tool: &str) -> bool {
    let has = |names: &Option<Vec<String>>, name: &str| {
        names.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
    };
    has(&condition.server, server) && has(&condition.tool, tool)
}
