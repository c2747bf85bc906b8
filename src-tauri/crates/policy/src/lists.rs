//! Named lists to which rules refer as `@name`.
//!
//! - A list contains its values and additions, minus its removals.
//! - A removal may be spelled differently from the value that it matches. In an allow rule, every value that the
//!   removal may match is removed. In a rule that denies or requires approval, only values with the same spelling are
//!   removed.
//! - A policy that refers to an undefined list is invalid, because a deny rule with a missing list would deny
//!   nothing.

use crate::json_location::{JsonLocation, SourceFile};
use crate::{Decision, LoadError, strict};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Lists in a dynamic-lists file, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DynamicLists {
    lists: BTreeMap<String, List>,
}

/// A list's values after additions and removals.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct List {
    /// Values for rules that deny or require approval: all except those with the same spelling as a removal.
    values: Vec<String>,
    /// Values for allow rules: all except those that a removal may match.
    allow_values: Vec<String>,
}

impl DynamicLists {
    /// Parses a dynamic-lists file.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a valid dynamic-lists file.
    pub fn from_json(text: &str, file: &str) -> Result<Self, LoadError> {
        let source = SourceFile { file, text };
        let stored: StoredFile = strict::read_file(source)?;
        source.check_version(stored.schema_version)?;
        let mut lists = BTreeMap::new();
        for (name, list) in stored.lists {
            let list = read_list(source, &name, list)?.apply_changes();
            lists.insert(name, list);
        }
        Ok(Self { lists })
    }

    /// Returns a list's values for rules that deny or require approval. Empty if the list does not exist.
    #[must_use]
    pub fn get(&self, name: &str) -> &[String] {
        self.lists.get(name).map_or(&[], |list| &list.values)
    }

    /// Returns a list's values for a rule with this decision, or `None` if the list does not exist.
    pub(crate) fn values_for(&self, name: &str, decision: Decision) -> Option<&[String]> {
        self.lists.get(name).map(|list| match decision {
            Decision::Allow => list.allow_values.as_slice(),
            Decision::Escalate | Decision::Deny => list.values.as_slice(),
        })
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StoredFile {
    #[serde(default = "crate::error::default_version")]
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    schema_version: u64,
    /// Metadata of the program that generated the file; ignored.
    #[serde(default, rename = "generatedAt")]
    _generated_at: Option<String>,
    #[cfg_attr(test, schemars(with = "BTreeMap<String, StoredList>"))]
    lists: BTreeMap<String, Map<String, Value>>,
}

/// Fields that record when and from which input a list was generated; ignored.
const IGNORED_FIELDS: [&str; 2] = ["inputHash", "resolvedAt"];

/// Parses a list field by field so that errors name the field.
fn read_list(
    source: SourceFile<'_>,
    list: &str,
    mut stored: Map<String, Value>,
) -> Result<StoredList, LoadError> {
    let lists = JsonLocation::Field(&JsonLocation::Whole, "lists");
    let error = |at: JsonLocation<'_>, message: &str| LoadError::List {
        location: source.location(JsonLocation::Field(&lists, list), at),
        list: list.to_owned(),
        field: at.to_string(),
        message: message.to_owned(),
    };
    let mut read_strings = |field: &str, required: bool| {
        let read = match stored.remove(field) {
            Some(value) => strict::from_value(value),
            None if required => Err(serde::de::Error::custom("is missing")),
            None => Ok(Vec::new()),
        };
        read.map_err(|invalid| {
            invalid.with_location(JsonLocation::Field(&JsonLocation::Whole, field), |at| {
                error(at, &invalid.message)
            })
        })
    };
    let read = StoredList {
        values: read_strings("values", true)?,
        manual_additions: read_strings("manualAdditions", false)?,
        manual_removals: read_strings("manualRemovals", false)?,
    };
    match stored.keys().find(|field| !IGNORED_FIELDS.contains(&field.as_str())) {
        Some(unknown) => Err(error(JsonLocation::Field(&JsonLocation::Whole, unknown), "unknown field")),
        None => Ok(read),
    }
}

#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase", transform = allow_ignored_fields))]
struct StoredList {
    values: Vec<String>,
    #[cfg_attr(test, schemars(default))]
    manual_additions: Vec<String>,
    #[cfg_attr(test, schemars(default))]
    manual_removals: Vec<String>,
}

#[cfg(test)]
fn allow_ignored_fields(schema: &mut schemars::Schema) {
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        fields.extend(IGNORED_FIELDS.map(|field| (field.to_owned(), Value::Bool(true))));
    }
}

impl StoredList {
    fn apply_changes(self) -> List {
        let removed: BTreeSet<String> = self.manual_removals.into_iter().collect();
        let removed_hosts: BTreeSet<String> = removed.iter().map(|value| normalize_host(value)).collect();
        let mut seen = BTreeSet::new();
        let all = self.values.into_iter().chain(self.manual_additions);
        let values: Vec<String> =
            all.filter(|value| !removed.contains(value) && seen.insert(value.clone())).collect();
        let allow_values =
            values.iter().filter(|value| !removed_hosts.contains(&normalize_host(value))).cloned().collect();
        List { values, allow_values }
    }
}

/// Converts a host to lower case and removes its trailing dot, because matching ignores case and trailing dots.
fn normalize_host(value: &str) -> String {
    value.trim_end_matches('.').to_lowercase()
}
