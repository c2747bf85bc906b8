//! Settings files in YAML. Their entries are a mapping, or a list of mappings with a `name` field.

use super::{DocumentError, EntriesPath};
use serde_json::{Map, Value, json};
use std::str::FromStr;
use yaml_edit::{MappingBuilder, ScalarType, ScalarValue, SequenceBuilder, YamlError, YamlFile, YamlValue};

pub(crate) struct YamlDocument {
    file: YamlFile,
}

impl YamlDocument {
    pub(crate) fn parse(text: &str) -> Result<Self, DocumentError> {
        let syntax = |line, problem: String| DocumentError::Syntax { line, problem };
        let file = YamlFile::from_str(text).map_err(|problem| {
            let line = if let YamlError::Parse { line, .. } = &problem { line.unwrap_or(1) } else { 1 };
            syntax(line, problem.to_string())
        })?;
        let mut documents = file.documents();
        let first = documents.next();
        if documents.next().is_some() {
            return Err(syntax(1, "expected one YAML document, found several".to_owned()));
        }
        if let Some(first) = first {
            let value = YamlValue::from_document(&first).map_err(|problem| syntax(1, problem.to_string()))?;
            if !matches!(json_of(&value), Some(Value::Object(_) | Value::Null)) {
                return Err(syntax(1, "expected a mapping".to_owned()));
            }
        }
        Ok(Self { file })
    }

    pub(crate) fn entries(&self, entries_path: EntriesPath) -> Result<Vec<(String, Value)>, DocumentError> {
        let Some(container) = self.container(entries_path)? else { return Ok(Vec::new()) };
        let missing_entries = || DocumentError::NoEntries(entries_path.keys.join("."));
        match container {
            Value::Object(members) if !entries_path.is_list => Ok(members.into_iter().collect()),
            Value::Array(items) if entries_path.is_list => {
                let named = |item: Value| Some((item.get("name")?.as_str()?.to_owned(), item));
                items.into_iter().map(|item| named(item).ok_or_else(missing_entries)).collect()
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => Err(missing_entries()),
        }
    }

    pub(crate) fn set(
        &mut self,
        entries_path: EntriesPath,
        name: &str,
        value: &Value,
    ) -> Result<(), DocumentError> {
        let Value::Object(members) = value else {
            return Err(DocumentError::UnsupportedLayout(name.to_owned()));
        };
        let index = self.entries(entries_path)?.iter().position(|(found, _)| found == name);
        let mapping = to_format_value(members);
        let unsupported = || DocumentError::UnsupportedLayout(name.to_owned());
        let document = self.file.ensure_document();
        let Some((last, parent_keys)) = entries_path.keys.split_last() else { return Err(unsupported()) };
        let mut parent = document.as_mapping();
        for key in parent_keys {
            parent = parent.and_then(|parent| parent.get_mapping(*key));
        }
        let has_entries = self.container(entries_path)?.is_some();
        if has_entries {
            let parent = parent.ok_or_else(unsupported)?;
            let entry = mapping.build_document().as_mapping().ok_or_else(unsupported)?;
            if entries_path.is_list {
                let entries = parent.get_sequence(*last).ok_or_else(unsupported)?;
                match index {
                    Some(index) => drop(entries.set(index, &entry)),
                    None => entries.push(&entry),
                }
            } else {
                parent.get_mapping(*last).ok_or_else(unsupported)?.set(name, &entry);
            }
        } else if parent_keys.is_empty() {
            let container = if entries_path.is_list {
                MappingBuilder::new().insert_sequence(*last, SequenceBuilder::new().insert_mapping(mapping))
            } else {
                MappingBuilder::new()
                    .insert_mapping(*last, MappingBuilder::new().insert_mapping(name, mapping))
            };
            let container = container.build_document();
            let value = container.get(*last).ok_or_else(unsupported)?;
            document.set(*last, &value);
        } else {
            return Err(unsupported());
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, entries_path: EntriesPath, name: &str) -> Result<(), DocumentError> {
        let Some(index) = self.entries(entries_path)?.iter().position(|(found, _)| found == name) else {
            return Ok(());
        };
        let unsupported = || DocumentError::UnsupportedLayout(name.to_owned());
        let (last, parent_keys) = entries_path.keys.split_last().ok_or_else(unsupported)?;
        let mut parent =
            self.file.document().and_then(|document| document.as_mapping()).ok_or_else(unsupported)?;
        for key in parent_keys {
            parent = parent.get_mapping(*key).ok_or_else(unsupported)?;
        }
        let removed = if entries_path.is_list {
            parent.get_sequence(*last).and_then(|entries| entries.remove(index)).is_some()
        } else {
            parent.get_mapping(*last).and_then(|entries| entries.remove(name)).is_some()
        };
        if removed { Ok(()) } else { Err(unsupported()) }
    }

    pub(crate) fn text(&self) -> String {
        self.file.to_string()
    }

    /// Returns the value that contains the entries; `None` if it is missing or null.
    fn container(&self, entries_path: EntriesPath) -> Result<Option<Value>, DocumentError> {
        let Some(document) = self.file.document() else { return Ok(None) };
        let value = YamlValue::from_document(&document)
            .map_err(|problem| DocumentError::Syntax { line: 1, problem: problem.to_string() })?;
        let mut value = json_of(&value);
        for key in entries_path.keys {
            value = match value {
                Some(Value::Object(mut members)) => members.remove(*key),
                Some(Value::Null) | None => None,
                Some(_) => return Err(DocumentError::NoEntries((*key).to_owned())),
            };
        }
        Ok(value.filter(|value| !value.is_null()))
    }
}

/// Converts a value to JSON; `None` if JSON cannot represent it.
fn json_of(value: &YamlValue) -> Option<Value> {
    if let Some(members) = value.as_mapping() {
        let members = members.iter().map(|(key, value)| Some((key.clone(), json_of(value)?)));
        return members.collect::<Option<Map<_, _>>>().map(Value::Object);
    }
    if let Some(items) = value.as_sequence() {
        return items.iter().map(json_of).collect::<Option<_>>().map(Value::Array);
    }
    if let Some(flag) = value.to_bool() {
        return Some(json!(flag));
    }
    if let Some(whole) = value.to_i64() {
        return Some(json!(whole));
    }
    if let Some(number) = value.to_f64() {
        return Some(json!(number));
    }
    let scalar = value.as_scalar()?;
    Some(if scalar.scalar_type() == ScalarType::Null { Value::Null } else { json!(scalar.value()) })
}

fn to_format_value(members: &Map<String, Value>) -> MappingBuilder {
    members.iter().fold(MappingBuilder::new(), |mapping, (key, value)| match value {
        Value::Null => mapping.pair(key, YamlValue::Scalar(ScalarValue::null())),
        Value::Bool(flag) => mapping.pair(key, *flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => mapping.pair(key, whole),
            None => mapping.pair(key, number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => mapping.pair(key, text),
        Value::Array(items) => mapping.insert_sequence(key, sequence_of(items)),
        Value::Object(members) => mapping.insert_mapping(key, to_format_value(members)),
    })
}

fn sequence_of(items: &[Value]) -> SequenceBuilder {
    items.iter().fold(SequenceBuilder::new(), |sequence, item| match item {
        Value::Null => sequence.item(YamlValue::Scalar(ScalarValue::null())),
        Value::Bool(flag) => sequence.item(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => sequence.item(whole),
            None => sequence.item(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => sequence.item(text),
        Value::Array(items) => sequence.insert_sequence(sequence_of(items)),
        Value::Object(members) => sequence.insert_mapping(to_format_value(members)),
    })
}
