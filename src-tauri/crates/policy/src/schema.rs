//! Checks arguments against the shape a server declares, by the keywords that decide what a value is.
//!
//! - `type`, `properties`, `required`, `additionalProperties`, `items` and `enum`, at every depth.
//! - Keywords that only narrow a value (lengths, patterns, bounds) are the server's own business.

use serde_json::{Map, Value};
use std::fmt;

/// Where arguments do not fit.
#[derive(Debug, PartialEq, Eq)]
pub struct Misfit {
    path: String,
    message: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(formatter, "the arguments {}", self.message)
        } else {
            write!(formatter, "argument `{}` {}", self.path, self.message)
        }
    }
}

/// Checks arguments against a JSON Schema.
///
/// # Errors
/// The first place where they do not fit.
pub fn check(schema: &Value, arguments: &Map<String, Value>) -> Result<(), Misfit> {
    check_object(schema, arguments, "")
}

fn check_value(schema: &Value, value: &Value, path: &str) -> Result<(), Misfit> {
    check_type(schema, value, path)?;
    check_enum(schema, value, path)?;
    match value {
        Value::Object(fields) => check_object(schema, fields, path),
        Value::Array(items) => check_items(schema, items, path),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn check_object(schema: &Value, fields: &Map<String, Value>, path: &str) -> Result<(), Misfit> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for name in
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        if !fields.contains_key(name) {
            return Err(misfit(&below(path, name), "is missing"));
        }
    }
    for (name, value) in fields {
        let here = below(path, name);
        match (properties.and_then(|known| known.get(name)), schema.get("additionalProperties")) {
            (Some(schema), _) => check_value(schema, value, &here)?,
            (None, Some(Value::Bool(false))) => return Err(misfit(&here, "is not known")),
            (None, Some(extra @ Value::Object(_))) => check_value(extra, value, &here)?,
            (None, _) => {}
        }
    }
    Ok(())
}

fn check_items(schema: &Value, items: &[Value], path: &str) -> Result<(), Misfit> {
    let Some(schema) = schema.get("items") else { return Ok(()) };
    items
        .iter()
        .enumerate()
        .try_for_each(|(index, item)| check_value(schema, item, &format!("{path}[{index}]")))
}

fn check_type(schema: &Value, value: &Value, path: &str) -> Result<(), Misfit> {
    let wanted: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => return Ok(()),
    };
    if wanted.iter().any(|wanted| is_of_type(wanted, value)) {
        return Ok(());
    }
    Err(misfit(path, &format!("must be of type {}", wanted.join(" or "))))
}

fn is_of_type(wanted: &str, value: &Value) -> bool {
    match wanted {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    }
}

fn check_enum(schema: &Value, value: &Value, path: &str) -> Result<(), Misfit> {
    match schema.get("enum").and_then(Value::as_array) {
        Some(allowed) if !allowed.contains(value) => Err(misfit(path, "is not one of the values allowed")),
        Some(_) | None => Ok(()),
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn misfit(path: &str, message: &str) -> Misfit {
    Misfit { path: path.to_owned(), message: message.to_owned() }
}
