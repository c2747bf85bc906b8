//! Parses a compiled-policy file strictly: an unknown condition makes the file invalid instead of being ignored.

pub(crate) mod conditions;

use super::index::Index;
use super::{Decision, Layer, Policy, ResolveWithin, Rule};
use crate::json_location::{JsonLocation, SourceFile};
use crate::{DynamicLists, LoadError, RuleReason, strict};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

impl Policy {
    /// Parses a compiled-policy file. `resolve` converts the folders in rules to canonical paths, and `lists`
    /// supplies the values for `@name`.
    ///
    /// # Errors
    /// Returns an error with the file, rule and field if anything in the file is invalid or unknown.
    pub fn from_json(
        text: &str,
        file: &str,
        resolve: &ResolveWithin<'_>,
        lists: &DynamicLists,
    ) -> Result<Self, LoadError> {
        let source = SourceFile { file, text };
        let stored: StoredFile = strict::read_file(source)?;
        source.check_version(stored.schema_version)?;
        let mut names = BTreeSet::new();
        let mut rules = Vec::with_capacity(stored.rules.len());
        for (index, rule) in stored.rules.into_iter().enumerate() {
            let reader = RuleReader { source, index, rule: rule_name(&rule, index) };
            let rule = RuleParser { reader: &reader, resolve, lists }.rule(rule)?;
            if !names.insert(rule.name().to_string()) {
                return Err(reader.error(field("name"), "another rule has this name"));
            }
            rules.push(rule);
        }
        let index = Index::new(&rules);
        Ok(Self { rules, index })
    }
}

/// Returns the name of a rule or, if it has none, its position in the file.
fn rule_name(stored: &Map<String, Value>, index: usize) -> String {
    match stored.get("name").and_then(Value::as_str) {
        Some(name) if !name.is_empty() => name.to_owned(),
        Some(_) | None => format!("number {}", index + 1),
    }
}

/// Reason for a rule that does not specify one.
const DEFAULT_REASON: &str = "the rule gives no reason";

const RULES: JsonLocation<'static> = JsonLocation::Field(&JsonLocation::Whole, "rules");

/// Returns the location of a field of the rule.
const fn field(name: &str) -> JsonLocation<'_> {
    JsonLocation::Field(&JsonLocation::Whole, name)
}

/// The rule that is being parsed. Error locations are relative to it.
pub(super) struct RuleReader<'a> {
    source: SourceFile<'a>,
    index: usize,
    rule: String,
}

impl RuleReader<'_> {
    fn take_field<T: DeserializeOwned>(
        &self,
        stored: &mut Map<String, Value>,
        name: &str,
    ) -> Result<T, LoadError> {
        let value = stored.remove(name).ok_or_else(|| self.error(field(name), "is missing"))?;
        self.read(field(name), value)
    }

    pub(super) fn read<T: DeserializeOwned>(
        &self,
        location: JsonLocation<'_>,
        value: Value,
    ) -> Result<T, LoadError> {
        strict::from_value(value).map_err(|invalid| {
            invalid.with_location(location, |location| self.error(location, invalid.message.as_str()))
        })
    }

    /// Returns the line number of a location in the rule, if known.
    pub(super) fn line(&self, location: JsonLocation<'_>) -> Option<usize> {
        self.source.line(JsonLocation::Item(&RULES, self.index), location)
    }

    fn error(&self, location: JsonLocation<'_>, message: impl Into<String>) -> LoadError {
        LoadError::Rule {
            location: self.source.location(JsonLocation::Item(&RULES, self.index), location),
            rule: self.rule.clone(),
            field: location.to_string(),
            message: message.into(),
        }
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StoredFile {
    /// Schema reference for editors; ignored.
    #[serde(default, rename = "$schema")]
    _schema: Option<Value>,
    #[serde(default = "crate::error::default_version")]
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    schema_version: u64,
    #[cfg_attr(test, schemars(with = "Vec<crate::schemas::RuleShape>"))]
    rules: Vec<Map<String, Value>>,
    /// Metadata of the program that generated the file; ignored.
    #[serde(default, rename = "generatedAt")]
    _generated_at: Option<Value>,
    #[serde(default, rename = "constitutionHash")]
    _constitution_hash: Option<Value>,
    #[serde(default, rename = "inputHash")]
    _input_hash: Option<Value>,
    #[serde(default, rename = "listDefinitions")]
    _list_definitions: Option<Value>,
    #[serde(default, rename = "skippedServers")]
    _skipped_servers: Option<Value>,
    #[serde(default, rename = "serverName")]
    _server_name: Option<Value>,
}

/// Data needed to parse a rule.
struct RuleParser<'a> {
    reader: &'a RuleReader<'a>,
    resolve: &'a ResolveWithin<'a>,
    lists: &'a DynamicLists,
}

impl RuleParser<'_> {
    fn rule(&self, mut stored: Map<String, Value>) -> Result<Rule, LoadError> {
        let reader = self.reader;
        let name: String = reader.take_field(&mut stored, "name")?;
        if name.is_empty() {
            return Err(reader.error(field("name"), "a rule needs a name"));
        }
        if crate::decision::is_reserved_name(&name) {
            let message = format!("`{name}` is a reserved name; rename the rule");
            return Err(reader.error(field("name"), message));
        }
        let mut text = |name: &str| match stored.remove(name) {
            Some(Value::String(text)) => Ok(text),
            None => Ok(String::new()),
            Some(_) => Err(reader.error(field(name), "must be a string")),
        };
        let (description, principle, reason) = (text("description")?, text("principle")?, text("reason")?);
        let then: String = reader.take_field(&mut stored, "then")?;
        let then = match then.as_str() {
            "allow" => Decision::Allow,
            "escalate" => Decision::Escalate,
            "deny" => Decision::Deny,
            other => return Err(reader.error(field("then"), format!("`{other}` is not a decision"))),
        };
        let condition: Map<String, Value> = reader.take_field(&mut stored, "if")?;
        let examples = reader.examples(stored.remove("examples"))?;
        if let Some(unknown) = stored.keys().next() {
            return Err(reader.error(field(unknown), "unknown field"));
        }
        let condition = self.conditions(then, condition)?;
        let reason = if reason.trim().is_empty() { DEFAULT_REASON.to_owned() } else { reason };
        let reason = RuleReason::new(name, reason);
        Ok(Rule {
            reason,
            description,
            principle,
            then,
            condition,
            layer: Layer::User,
            since_ms: 0,
            examples,
        })
    }
}
