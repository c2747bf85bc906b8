//! Settings files in JSON with comments and trailing commas.

use super::{DocumentError, line_of};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

pub(crate) struct JsoncDocument {
    root: CstRootNode,
}

impl JsoncDocument {
    pub(crate) fn parse(text: &str) -> Result<Self, DocumentError> {
        let root = CstRootNode::parse(text, &options()).map_err(|problem| DocumentError::Syntax {
            line: line_of(text, problem.range().start),
            problem: problem.kind().to_string(),
        })?;
        Ok(Self { root })
    }

    pub(crate) fn entries(&self, keys: &[&str]) -> Result<Vec<(String, Value)>, DocumentError> {
        let Some(mut object) = self.object()? else { return Ok(Vec::new()) };
        for key in keys {
            let Some(property) = single_property(&object, key)? else { return Ok(Vec::new()) };
            object = property.object_value().ok_or_else(|| DocumentError::NoEntries((*key).to_owned()))?;
        }
        let entry = |property: CstObjectProp| {
            let name = property.decoded_name()?;
            Some((name, property.to_serde_value()?))
        };
        let unsupported = || DocumentError::NoEntries(keys.join("."));
        object.properties().into_iter().map(|property| entry(property).ok_or_else(unsupported)).collect()
    }

    pub(crate) fn set(&mut self, keys: &[&str], name: &str, value: &Value) -> Result<(), DocumentError> {
        let mut object = match self.object()? {
            Some(object) => object,
            None => self.root.object_value_or_set(),
        };
        for key in keys {
            object = match single_property(&object, key)? {
                None => object.object_value_or_set(key),
                Some(property) => {
                    property.object_value().ok_or_else(|| DocumentError::NoEntries((*key).to_owned()))?
                }
            };
        }
        match single_property(&object, name)? {
            Some(property) => property.set_value(input(value)),
            None => drop(object.append(name, input(value))),
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, keys: &[&str], name: &str) -> Result<(), DocumentError> {
        let Some(mut object) = self.object()? else { return Ok(()) };
        for key in keys {
            let Some(property) = single_property(&object, key)? else { return Ok(()) };
            object = property.object_value().ok_or_else(|| DocumentError::NoEntries((*key).to_owned()))?;
        }
        if let Some(property) = single_property(&object, name)? {
            property.remove();
        }
        Ok(())
    }

    pub(crate) fn text(&self) -> String {
        self.root.to_string()
    }

    /// Returns the root object, or `None` if the file is empty.
    fn object(&self) -> Result<Option<CstObject>, DocumentError> {
        match self.root.value() {
            None => Ok(None),
            Some(value) => {
                let problem = "expected a JSON object".to_owned();
                value.as_object().map(Some).ok_or(DocumentError::Syntax { line: 1, problem })
            }
        }
    }
}

/// Returns options that accept comments and trailing commas, as editors do, and reject other JSON extensions.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        ..ParseOptions::default()
    }
}

fn single_property(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, DocumentError> {
    let mut named = object.properties().into_iter().filter(|p| p.decoded_name().as_deref() == Some(name));
    match (named.next(), named.next()) {
        (found, None) => Ok(found),
        (_, Some(_)) => Err(DocumentError::Duplicate(name.to_owned())),
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}
