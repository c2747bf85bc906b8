//! Typed access to a tool call's arguments.
//!
//! - Error messages match those of the reference server so that agents correct their calls in the same way.
//! - Unknown arguments are ignored.

use rmcp::model::JsonObject;
use serde_json::Value;

use crate::error::ToolError;

/// Arguments of a tool call.
pub(super) struct Arguments<'a> {
    tool: &'a str,
    values: JsonObject,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(tool: &'a str, values: JsonObject) -> Self {
        Self { tool, values }
    }

    /// Returns a required string argument.
    pub(super) fn string(&self, name: &str) -> Result<&str, ToolError> {
        self.string_at(self.values.get(name), name)
    }

    /// Returns an optional number argument.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, ToolError> {
        match self.values.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            other => Err(self.mismatch("number", other, name)),
        }
    }

    /// Returns an optional boolean argument, or `false` if it is missing.
    pub(super) fn flag(&self, name: &str) -> Result<bool, ToolError> {
        match self.values.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            other => Err(self.mismatch("boolean", other, name)),
        }
    }

    /// Returns an optional argument that must be one of two words, or the first word if it is missing.
    pub(super) fn choice(&self, name: &str, words: [&'static str; 2]) -> Result<&'static str, ToolError> {
        let [first, second] = words;
        match self.values.get(name) {
            None => Ok(first),
            Some(Value::String(word)) if word == first => Ok(first),
            Some(Value::String(word)) if word == second => Ok(second),
            Some(_) => {
                Err(self
                    .refuse(format!("Invalid option: expected one of \"{first}\"|\"{second}\" at {name}")))
            }
        }
    }

    /// Returns a required list of strings.
    pub(super) fn strings(&self, name: &str) -> Result<Vec<&str>, ToolError> {
        let items = self.items(name)?;
        let text = |(index, item)| self.string_at(Some(item), &format!("{name}[{index}]"));
        items.iter().enumerate().map(text).collect()
    }

    /// Returns an optional list of strings, or an empty list if it is missing.
    pub(super) fn optional_strings(&self, name: &str) -> Result<Vec<&str>, ToolError> {
        if self.values.contains_key(name) { self.strings(name) } else { Ok(Vec::new()) }
    }

    /// Returns a required list of objects with two string fields each.
    pub(super) fn pairs<'v>(&'v self, name: &str, keys: [&str; 2]) -> Result<Vec<[&'v str; 2]>, ToolError> {
        let [first, second] = keys;
        let pair = |(index, item): (usize, &'v Value)| {
            if !item.is_object() {
                return Err(self.mismatch("object", Some(item), &format!("{name}[{index}]")));
            }
            Ok([
                self.string_at(item.get(first), &format!("{name}[{index}].{first}"))?,
                self.string_at(item.get(second), &format!("{name}[{index}].{second}"))?,
            ])
        };
        self.items(name)?.iter().enumerate().map(pair).collect()
    }

    /// Creates the error for an invalid argument.
    pub(super) fn refuse(&self, reason: String) -> ToolError {
        ToolError::Arguments { tool: self.tool.to_owned(), reason }
    }

    fn items(&self, name: &str) -> Result<&[Value], ToolError> {
        match self.values.get(name) {
            Some(Value::Array(items)) => Ok(items),
            other => Err(self.mismatch("array", other, name)),
        }
    }

    fn string_at<'v>(&self, value: Option<&'v Value>, label: &str) -> Result<&'v str, ToolError> {
        match value {
            Some(Value::String(text)) => Ok(text),
            other => Err(self.mismatch("string", other, label)),
        }
    }

    fn mismatch(&self, expected: &str, value: Option<&Value>, label: &str) -> ToolError {
        let received = match value {
            None => "undefined",
            Some(Value::Null) => "null",
            Some(Value::Bool(_)) => "boolean",
            Some(Value::Number(_)) => "number",
            Some(Value::String(_)) => "string",
            Some(Value::Array(_)) => "array",
            Some(Value::Object(_)) => "object",
        };
        self.refuse(format!("Invalid input: expected {expected}, received {received} at {label}"))
    }
}
