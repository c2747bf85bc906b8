//! Checks a call's arguments against the tool's annotation and input schema.
//!
//! - An argument is accepted if it is annotated and the tool's input schema, if there is one, permits it.

use super::ArgumentRoles;
use crate::Denial;
use crate::json_location::JsonLocation;
use crate::schema::{FieldSchema, Schema, SchemaMismatch};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Arguments that a call may contain. Built when the annotation is loaded so that checking a valid call needs few
/// allocations.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct AcceptedArguments {
    /// Position of each accepted argument in the annotation.
    positions: BTreeMap<String, usize>,
    /// Name and schema of each annotated argument, by position. `None` if the server declares no schema for it.
    schemas: Vec<Option<(Arc<str>, Schema)>>,
    /// Required arguments with their positions. If a required argument has no position, every call is invalid.
    required: Vec<(Arc<str>, Option<usize>)>,
    /// Schema for the arguments as a whole.
    object_schema: Schema,
}

/// Values in a call, by position in the annotation. Omitted arguments are `None`.
pub(crate) type Values<'a> = Vec<Option<&'a Value>>;

impl AcceptedArguments {
    pub(super) fn new(arguments: &[(Arc<str>, ArgumentRoles)], input_schema: Option<&Value>) -> Self {
        let object_schema = input_schema.map(Schema::parse_arguments).unwrap_or_default();
        let mut positions: BTreeMap<String, usize> = BTreeMap::new();
        let mut schemas = Vec::with_capacity(arguments.len());
        for (index, (name, _)) in arguments.iter().enumerate() {
            let (is_accepted, schema) = match object_schema.field_schema(name) {
                FieldSchema::Any => (true, None),
                FieldSchema::Forbidden => (false, None),
                FieldSchema::Schema(schema) => (true, Some((name.clone(), schema.clone()))),
            };
            if is_accepted {
                positions.insert(name.to_string(), index);
            }
            schemas.push(schema);
        }
        let required = object_schema
            .required()
            .iter()
            .map(|name| (name.clone(), positions.get(&**name).copied()))
            .collect();
        Self { positions, schemas, required, object_schema }
    }

    /// Returns `true` if a call may contain an argument with this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.positions.contains_key(name)
    }

    /// Checks the arguments of a call and returns their values by position.
    ///
    /// # Errors
    /// Returns a denial if an argument is unknown, missing or invalid.
    pub(crate) fn check<'a>(&self, arguments: &'a Map<String, Value>) -> Result<Values<'a>, Denial> {
        let mut values: Values<'_> = vec![None; self.schemas.len()];
        for (name, value) in arguments {
            let position = self.positions.get(name).and_then(|position| values.get_mut(*position));
            *position.ok_or_else(|| Denial::invalid(format!("the tool has no argument `{name}`")))? =
                Some(value);
        }
        self.object_schema
            .check_object(arguments)
            .and_then(|()| self.check_values(&values))
            .map_err(|mismatch| Denial::invalid(mismatch.to_string()))?;
        Ok(values)
    }

    fn check_values(&self, values: &[Option<&Value>]) -> Result<(), SchemaMismatch> {
        let value_at = |position: Option<usize>| position.and_then(|position| *values.get(position)?);
        if let Some((missing, _)) = self.required.iter().find(|(_, position)| value_at(*position).is_none()) {
            return Err(SchemaMismatch::missing(JsonLocation::Whole, missing));
        }
        let mut with_schema =
            values.iter().zip(&self.schemas).filter_map(|(value, schema)| value.zip(schema.as_ref()));
        with_schema.try_for_each(|(value, (name, schema))| schema.check_field(name, value))
    }
}
