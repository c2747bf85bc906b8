//! Flattened JSON Schema: references are resolved and alternatives are merged.
//!
//! - Schemas with unresolvable, circular or deeply nested references are not supported.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Maximum nesting depth of a schema, including references.
const MAX_DEPTH: usize = 12;

/// Maximum number of subschemas to visit per tool.
const MAX_COUNT: usize = 20_000;

/// Keywords that constrain the type of a value even if the schema has no `type`.
const TYPED_SUBSCHEMAS: [&str; 14] = [
    "$ref",
    "anyOf",
    "oneOf",
    "allOf",
    "properties",
    "items",
    "prefixItems",
    "required",
    "if",
    "then",
    "else",
    "enum",
    "const",
    "not",
];

/// The values that a schema permits, and its descriptions.
#[derive(Debug, Default, Clone)]
pub(super) struct Shape {
    /// Permitted JSON types. Contains `any` if a schema does not constrain the type.
    kinds: BTreeSet<String>,
    /// Descriptions and titles in lower case, one per line.
    pub(super) text: String,
    /// Values of `format`, `contentEncoding` and `contentMediaType`.
    pub(super) formats: Vec<String>,
    /// Strings that the schema enumerates or that it gives as an example or default.
    pub(super) samples: Vec<String>,
    /// Values of `pattern`.
    pub(super) patterns: Vec<String>,
    /// Strings that the schema enumerates, or `None` if it enumerates no values.
    enumerated: Option<Vec<String>>,
    /// `true` if strings other than the enumerated ones are permitted.
    allows_other_strings: bool,
    /// Merged schema of a list's items, or `None` if the items are not described.
    pub(super) items: Option<Box<Self>>,
    /// Declared properties of an object.
    pub(super) fields: Vec<(String, Self)>,
    /// Merged schema of undeclared properties, or `None` if they are not described.
    pub(super) undeclared: Option<Box<Self>>,
    problem: Option<&'static str>,
}

impl Shape {
    /// Flattens a JSON Schema.
    pub(super) fn flatten(schema: &Value) -> Self {
        let mut reader = Reader { root: schema, remaining: MAX_COUNT };
        let mut shape = Self::default();
        reader.read(schema, &mut shape, MAX_DEPTH);
        shape
    }

    /// Returns the reason the schema or a part of it is not supported, or `None` if all of it is supported.
    pub(super) fn unsupported(&self) -> Option<&'static str> {
        let nested = self.items.iter().chain(&self.undeclared).map(|shape| shape.unsupported());
        let fields = self.fields.iter().map(|(_, shape)| shape.unsupported());
        self.problem.or_else(|| nested.chain(fields).flatten().next())
    }

    /// Returns `true` if the value may be a string or a flat list of strings.
    pub(super) fn can_be_string(&self) -> bool {
        let here = self.kinds.is_empty() || self.has_kind("any") || self.has_kind("string");
        here || self.items.as_ref().is_some_and(|items| items.can_be_string()) || self.is_untyped_list()
    }

    /// Returns the enumerated strings, or `None` if other values are also permitted.
    pub(super) fn choices(&self) -> Option<&[String]> {
        let here = if self.has_kind("string") { self } else { self.items.as_deref()? };
        here.enumerated.as_deref().filter(|_| !here.allows_other_strings && !here.has_kind("any"))
    }

    /// Returns `true` if the value is a boolean.
    pub(super) fn is_boolean(&self) -> bool {
        self.has_kind("boolean") && !self.can_be_string()
    }

    fn has_kind(&self, kind: &str) -> bool {
        self.kinds.contains(kind)
    }

    /// Returns `true` if the value may be an object or a list that contains objects or lists.
    pub(super) fn is_nested(&self) -> bool {
        let list = self.items.as_ref().is_some_and(|items| items.is_object() || items.has_kind("array"));
        self.is_object() || list
    }

    /// Returns `true` if the value itself, not only a part of it, can be a string.
    pub(super) fn can_be_string_itself(&self) -> bool {
        self.has_kind("string") || self.has_kind("any")
    }

    /// Returns `true` if the value may be a list whose items are not described.
    pub(super) fn is_untyped_list(&self) -> bool {
        self.has_kind("array") && self.items.is_none()
    }

    fn is_object(&self) -> bool {
        self.has_kind("object") || !self.fields.is_empty() || self.undeclared.is_some()
    }

    /// Iterates over the schema and its items' schema, because the descriptions in both apply to the values.
    pub(super) fn flat(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.items.as_deref())
    }
}

struct Reader<'a> {
    root: &'a Value,
    remaining: usize,
}

impl Reader<'_> {
    fn read(&mut self, schema: &Value, into: &mut Shape, depth: usize) {
        let Some(remaining) = self.remaining.checked_sub(1).filter(|_| depth > 0) else {
            into.problem = Some("is nested too deeply");
            return;
        };
        self.remaining = remaining;
        let Value::Object(schema) = schema else { return };
        if let Some(reference) = schema.get("$ref") {
            match reference.as_str().and_then(|text| self.root.pointer(text.strip_prefix('#')?)) {
                Some(target) => self.read(target, into, depth - 1),
                None => into.problem = Some("has a reference that cannot be resolved"),
            }
        }
        read_own_keywords(schema, into);
        for keyword in ["anyOf", "oneOf", "allOf"] {
            for one in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
                self.read(one, into, depth - 1);
            }
        }
        for keyword in ["if", "then", "else"] {
            if let Some(one) = schema.get(keyword) {
                self.read(one, into, depth - 1);
            }
        }
        self.read_subschemas(schema, into, depth - 1);
    }

    fn read_subschemas(&mut self, schema: &Map<String, Value>, into: &mut Shape, depth: usize) {
        for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let at = into.fields.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                into.fields.push((name.clone(), Shape::default()));
                into.fields.len() - 1
            });
            if let Some((_, known)) = into.fields.get_mut(at) {
                self.read(field, known, depth);
            }
        }
        for keyword in ["items", "prefixItems", "contains"] {
            let several = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
            for one in schema.get(keyword).filter(|one| one.is_object()).into_iter().chain(several) {
                self.read(one, into.items.get_or_insert_default(), depth);
            }
        }
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let extra = schema.get("additionalProperties").filter(|extra| extra.is_object());
        for one in extra.into_iter().chain(patterns.into_iter().flat_map(Map::values)) {
            self.read(one, into.undeclared.get_or_insert_default(), depth);
        }
    }
}

/// Adds the information in the schema itself but not in its subschemas.
fn read_own_keywords(schema: &Map<String, Value>, into: &mut Shape) {
    let kinds = match schema.get("type") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(_) | None => Vec::new(),
    };
    let (untyped, text) = (kinds.is_empty(), kinds.iter().any(|kind| kind == "string"));
    into.kinds.extend(kinds);
    if untyped && !TYPED_SUBSCHEMAS.iter().any(|keyword| schema.contains_key(*keyword)) {
        into.kinds.insert("any".to_owned());
    }
    for keyword in ["description", "title"] {
        if let Some(text) = schema.get(keyword).and_then(Value::as_str) {
            into.text.push_str(&text.to_lowercase());
            into.text.push('\n');
        }
    }
    let string = |keyword: &str| schema.get(keyword).and_then(Value::as_str).map(str::to_owned);
    into.formats.extend(["format", "contentEncoding", "contentMediaType"].into_iter().filter_map(string));
    into.patterns.extend(string("pattern"));
    for keyword in ["default", "example", "examples"] {
        into.samples.extend(schema.get(keyword).into_iter().flat_map(strings));
    }
    if let Some(allowed) = schema.get("enum").or_else(|| schema.get("const")) {
        if untyped {
            into.kinds.insert("string".to_owned());
        }
        into.enumerated.get_or_insert_default().extend(strings(allowed));
        into.samples.extend(strings(allowed));
    } else if text {
        into.allows_other_strings = true;
    }
}

/// Returns the strings of a list, or a single string as a list.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}
