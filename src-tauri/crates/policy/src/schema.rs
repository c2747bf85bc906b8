//! Validates arguments against the server's JSON Schema, using the keywords that determine a value's type.
//!
//! - Supported at every depth: `type`, `properties`, `required`, `additionalProperties`, `items`, `enum`, `const`,
//!   `anyOf`, `oneOf`, `allOf` and the schema `false`. For `oneOf`, one match is enough, because unsupported keywords
//!   may distinguish the alternatives.
//! - References, `not` and conditional keywords are ignored, so they allow everything.
//! - Keywords that only narrow a value, such as lengths, patterns and ranges, are left to the server.
//! - A schema is parsed once, when it is loaded. Validating a matching call allocates only for alternatives that do not
//!   match.

use crate::json_location::JsonLocation;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Mismatch between an argument and the schema.
#[derive(Debug, PartialEq, Eq)]
pub struct SchemaMismatch {
    /// Dotted path of the argument, or `None` for the arguments as a whole. The path can be empty, because an
    /// argument's name can be empty.
    path: Option<String>,
    message: String,
}

impl SchemaMismatch {
    /// Creates the error for a missing required field.
    pub(crate) fn missing(location: JsonLocation<'_>, name: &str) -> Self {
        JsonLocation::Field(&location, name).mismatch("is missing")
    }
}

impl fmt::Display for SchemaMismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            None => write!(formatter, "the arguments {}", self.message),
            Some(path) => write!(formatter, "argument `{path}` {}", self.message),
        }
    }
}

/// Validates arguments against a JSON Schema.
///
/// # Errors
/// Returns the first mismatch.
pub fn check(schema: &Value, arguments: &Map<String, Value>) -> Result<(), SchemaMismatch> {
    let shape = Schema::parse_arguments(schema);
    shape.check_object(arguments)?;
    shape.check_fields(arguments, JsonLocation::Whole)
}

/// The supported part of a JSON Schema.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schema {
    /// Permitted types, or `None` if every type is permitted.
    types: Option<Vec<Type>>,
    /// `true` for the schema `false`, which no value matches.
    rejects_all: bool,
    /// Values of `enum` and `const`, one list per keyword. A value must be in each list.
    allowed: Vec<Vec<Value>>,
    /// Alternatives from `anyOf` and `oneOf`. The value must match at least one schema in each list.
    any_of: Vec<Vec<Self>>,
    /// Schemas from `allOf`. The value must match all of them.
    all_of: Vec<Self>,
    properties: BTreeMap<String, Self>,
    required: Vec<Arc<str>>,
    additional: AdditionalProperties,
    items: Option<Box<Self>>,
}

/// Value of the `type` keyword.
#[derive(Debug, Clone, PartialEq)]
enum Type {
    Text,
    Number,
    Integer,
    Truth,
    List,
    Object,
    Null,
    /// Unknown type, which no value matches.
    Unknown(String),
}

/// Schema of one field, according to the object's schema.
pub(crate) enum FieldSchema<'a> {
    Any,
    /// No value. The field is not permitted.
    Forbidden,
    Schema(&'a Schema),
}

/// Fields that are permitted in addition to the declared properties.
#[derive(Debug, Clone, PartialEq, Default)]
enum AdditionalProperties {
    #[default]
    Any,
    None,
    Schema(Box<Schema>),
}

impl Schema {
    /// Parses a JSON Schema. A value that is not a schema permits everything.
    #[must_use]
    pub fn parse(schema: &Value) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let list = |field: &str| schema.get(field).and_then(Value::as_array);
        let strings = |field: &str| list(field).into_iter().flatten().filter_map(Value::as_str);
        let parse_all = |list: &Vec<Value>| list.iter().map(Self::parse).collect();
        let constant = schema.get("const").map(|only| vec![only.clone()]);
        Self {
            types: match schema.get("type") {
                Some(Value::String(alternative)) => Some(vec![Type::parse(alternative)]),
                Some(Value::Array(_)) => Some(strings("type").map(Type::parse).collect()),
                Some(_) | None => None,
            },
            rejects_all: *schema == Value::Bool(false),
            allowed: list("enum").cloned().into_iter().chain(constant).collect(),
            any_of: ["anyOf", "oneOf"].into_iter().filter_map(list).map(parse_all).collect(),
            all_of: list("allOf").map(parse_all).unwrap_or_default(),
            properties: properties.map(|(name, schema)| (name.clone(), Self::parse(schema))).collect(),
            required: strings("required").map(Arc::<str>::from).collect(),
            additional: match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => AdditionalProperties::None,
                Some(extra @ Value::Object(_)) => AdditionalProperties::Schema(Box::new(Self::parse(extra))),
                Some(_) | None => AdditionalProperties::Any,
            },
            items: schema.get("items").map(|items| Box::new(Self::parse(items))),
        }
    }

    /// Parses the schema of a tool's arguments. If it declares properties and does not set
    /// `additionalProperties`, other arguments are not permitted.
    pub(crate) fn parse_arguments(schema: &Value) -> Self {
        let has_no_additional = schema.get("additionalProperties").is_none();
        let has_properties = schema.get("properties").is_some_and(Value::is_object);
        let shape = Self::parse(schema);
        if has_no_additional && has_properties {
            Self { additional: AdditionalProperties::None, ..shape }
        } else {
            shape
        }
    }

    /// Returns the schema of a field.
    pub(crate) fn field_schema(&self, name: &str) -> FieldSchema<'_> {
        match (self.properties.get(name), &self.additional) {
            (Some(shape), _) => FieldSchema::Schema(shape),
            (None, AdditionalProperties::None) => FieldSchema::Forbidden,
            (None, AdditionalProperties::Schema(shape)) => FieldSchema::Schema(shape),
            (None, AdditionalProperties::Any) => FieldSchema::Any,
        }
    }

    /// Validates the value of a field against its schema.
    ///
    /// # Errors
    /// Returns the first mismatch.
    pub fn check_field(&self, name: &str, value: &Value) -> Result<(), SchemaMismatch> {
        self.check_value(value, JsonLocation::Field(&JsonLocation::Whole, name))
    }

    /// Validates the arguments as a whole, without checking the individual fields.
    pub(crate) fn check_object(&self, arguments: &Map<String, Value>) -> Result<(), SchemaMismatch> {
        if self.constrains_only_fields() {
            return Ok(());
        }
        let whole = Value::Object(arguments.clone());
        self.check_kind(&whole, JsonLocation::Whole)?;
        self.check_composed(&whole, JsonLocation::Whole)
    }

    /// Returns `true` if the schema constrains only the fields of an object, not the object as a
    /// whole.
    fn constrains_only_fields(&self) -> bool {
        let allows_objects = self.types.as_ref().is_none_or(|types| types.contains(&Type::Object));
        allows_objects
            && !self.rejects_all
            && self.allowed.is_empty()
            && self.any_of.is_empty()
            && self.all_of.is_empty()
    }

    fn check_value(&self, value: &Value, location: JsonLocation<'_>) -> Result<(), SchemaMismatch> {
        self.check_kind(value, location)?;
        self.check_composed(value, location)?;
        match value {
            Value::Object(fields) => self.check_fields(fields, location),
            Value::Array(items) => self.check_items(items, location),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn check_kind(&self, value: &Value, location: JsonLocation<'_>) -> Result<(), SchemaMismatch> {
        if self.rejects_all {
            return Err(location.mismatch("cannot have any value"));
        }
        if let Some(types) = &self.types
            && !types.iter().any(|allowed_type| allowed_type.matches(value))
        {
            let names: Vec<&str> = types.iter().map(Type::name).collect();
            return Err(location.mismatch(format!("must be of type {}", names.join(" or "))));
        }
        if !self.allowed.iter().all(|allowed| allowed.contains(value)) {
            return Err(location.mismatch("is not one of the allowed values"));
        }
        Ok(())
    }

    fn check_composed(&self, value: &Value, location: JsonLocation<'_>) -> Result<(), SchemaMismatch> {
        let matches = |alternative: &Self| alternative.check_value(value, location).is_ok();
        if !self.any_of.iter().all(|alternatives| alternatives.iter().any(matches)) {
            return Err(location.mismatch("must match one of the schema's alternatives"));
        }
        self.all_of.iter().try_for_each(|part| part.check_value(value, location))
    }

    fn check_fields(
        &self,
        fields: &Map<String, Value>,
        location: JsonLocation<'_>,
    ) -> Result<(), SchemaMismatch> {
        self.check_required(fields, location)?;
        for (name, value) in fields {
            let location = JsonLocation::Field(&location, name);
            match self.field_schema(name) {
                FieldSchema::Schema(shape) => shape.check_value(value, location)?,
                FieldSchema::Forbidden => return Err(location.mismatch("is not known")),
                FieldSchema::Any => {}
            }
        }
        Ok(())
    }

    /// Checks that every required field is present.
    fn check_required(
        &self,
        fields: &Map<String, Value>,
        location: JsonLocation<'_>,
    ) -> Result<(), SchemaMismatch> {
        match self.required.iter().find(|name| !fields.contains_key(&***name)) {
            Some(missing) => Err(SchemaMismatch::missing(location, missing)),
            None => Ok(()),
        }
    }

    /// Returns the names of the required fields.
    pub(crate) fn required(&self) -> &[Arc<str>] {
        &self.required
    }

    fn check_items(&self, items: &[Value], location: JsonLocation<'_>) -> Result<(), SchemaMismatch> {
        let Some(shape) = &self.items else { return Ok(()) };
        let mut items = items.iter().enumerate();
        items.try_for_each(|(index, item)| shape.check_value(item, JsonLocation::Item(&location, index)))
    }
}

impl Type {
    fn parse(name: &str) -> Self {
        match name {
            "string" => Self::Text,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Truth,
            "array" => Self::List,
            "object" => Self::Object,
            "null" => Self::Null,
            other => Self::Unknown(other.to_owned()),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Text => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Truth => "boolean",
            Self::List => "array",
            Self::Object => "object",
            Self::Null => "null",
            Self::Unknown(name) => name,
        }
    }

    fn matches(&self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            Self::Truth => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            Self::Null => value.is_null(),
            Self::Unknown(_) => false,
        }
    }
}

impl JsonLocation<'_> {
    fn mismatch(self, message: impl Into<String>) -> SchemaMismatch {
        let path = match self {
            JsonLocation::Whole => None,
            JsonLocation::Field(..) | JsonLocation::Item(..) => Some(self.to_string()),
        };
        SchemaMismatch { path, message: message.into() }
    }
}
