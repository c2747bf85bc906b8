//! Flattened JSON Schema: references are resolved and alternatives are merged.
//!
//! - Schemas with unresolvable, circular or deeply nested references are not supported.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Maximum nesting depth of a schema, including references.
const DEPTH: usize = 12;

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
    words: Option<Vec<String>>,
    /// `true` if strings other than the enumerated ones are permitted.
    free: bool,
    /// Merged schema of a list's items, or `None` if the items are not described.
    pub(super) items: Option<Box<Self>>,
    /// Declared properties of an object.
    pub(super) fields: Vec<(String, Self)>,
    /// Merged schema of undeclared properties, or `None` if they are not described.
    pub(super) others: Option<Box<Self>>,
    trouble: Option<&'static str>,
}

impl Shape {
    /// Flattens a JSON Schema.
    pub(super) fn of(schema: &Value) -> Self {
        let mut reader = Reader { root: schema, left: MAX_COUNT };
        let mut shape = Self::default();
        reader.read(schema, &mut shape, DEPTH);
        shape
    }

    /// Returns the reason the schema or a part of it is not supported, or `None` if all of it is supported.
    pub(super) fn unsupported(&self) -> Option<&'static str> {
        let below = self.items.iter().chain(&self.others).map(|shape| shape.unsupported());
        let fields = self.fields.iter().map(|(_, shape)| shape.unsupported());
        self.trouble.or_else(|| below.chain(fields).flatten().next())
    }

    /// Returns `true` if the value may be a string or a flat list of strings.
    pub(super) fn may_be_text(&self) -> bool {
        let here = self.kinds.is_empty() || self.is("any") || self.is("string");
        here || self.items.as_ref().is_some_and(|items| items.may_be_text()) || self.is_bare_list()
    }

    /// Returns the enumerated strings, or `None` if other values are also permitted.
    pub(super) fn choices(&self) -> Option<&[String]> {
        let here = if self.is("string") { self } else { self.items.as_deref()? };
        here.words.as_deref().filter(|_| !here.free && !here.is("any"))
    }

    /// Returns `true` if the value is a boolean.
    pub(super) fn is_truth(&self) -> bool {
        self.is("boolean") && !self.may_be_text()
    }

    fn is(&self, kind: &str) -> bool {
        self.kinds.contains(kind)
    }

    /// Returns `true` if the value may be an object or a list that contains objects or lists.
    pub(super) fn is_nested(&self) -> bool {
        let list = self.items.as_ref().is_some_and(|items| items.is_object() || items.is("array"));
        self.is_object() || list
    }

    /// Returns `true` if the value itself, not only a part of it, can be a string.
    pub(super) fn is_text_besides(&self) -> bool {
        self.is("string") || self.is("any")
    }

    /// Returns `true` if the value may be a list whose items are not described.
    pub(super) fn is_bare_list(&self) -> bool {
        self.is("array") && self.items.is_none()
    }

    fn is_object(&self) -> bool {
        self.is("object") || !self.fields.is_empty() || self.others.is_some()
    }

    /// Iterates over the schema and its items' schema, because the descriptions in both apply to the values.
    pub(super) fn flat(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.items.as_deref())
    }
}

struct Reader<'a> {
    root: &'a Value,
    left: usize,
}

impl Reader<'_> {
    fn read(&mut self, schema: &Value, into: &mut Shape, depth: usize) {
        let Some(left) = self.left.checked_sub(1).filter(|_| depth > 0) else {
            into.trouble = Some("is nested too deeply");
            return;
        };
        self.left = left;
        let Value::Object(schema) = schema else { return };
        if let Some(reference) = schema.get("$ref") {
            match reference.as_str().and_then(|text| self.root.pointer(text.strip_prefix('#')?)) {
                Some(target) => self.read(target, into, depth - 1),
                None => into.trouble = Some("has a reference that cannot be resolved"),
            }
        }
        plain(schema, into);
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
        self.read_parts(schema, into, depth - 1);
    }

    fn read_parts(&mut self, schema: &Map<String, Value>, into: &mut Shape, depth: usize) {
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
            self.read(one, into.others.get_or_insert_default(), depth);
        }
    }
}

/// Adds the information in the schema itself but not in its subschemas.
fn plain(schema: &Map<String, Value>, into: &mut Shape) {
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
    let texts = |keyword: &str| schema.get(keyword).and_then(Value::as_str).map(str::to_owned);
    into.formats.extend(["format", "contentEncoding", "contentMediaType"].into_iter().filter_map(texts));
    into.patterns.extend(texts("pattern"));
    for keyword in ["default", "example", "examples"] {
        into.samples.extend(schema.get(keyword).into_iter().flat_map(strings));
    }
    if let Some(allowed) = schema.get("enum").or_else(|| schema.get("const")) {
        if untyped {
            into.kinds.insert("string".to_owned());
        }
        into.words.get_or_insert_default().extend(strings(allowed));
        into.samples.extend(strings(allowed));
    } else if text {
        into.free = true;
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
