//! Checks a call's arguments against the tool's annotation and input schema.
//!
//! - An argument is accepted if it is annotated and the tool's input schema, if there is one, permits it.

use super::ArgumentRoles;
use crate::Denial;
use crate::json_location::JsonLocation;
use crate::schema::{Expected, Schema, SchemaMismatch};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Arguments that a call may contain. Built when the annotation is loaded, so that checking a valid call needs few
/// allocations.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct AcceptedArguments {
    /// Position of each accepted argument in the annotation.
    places: BTreeMap<String, usize>,
    /// Name and schema of each annotated argument, by position. `None` if the server declares no schema for it.
    shapes: Vec<Option<(Arc<str>, Schema)>>,
    /// Required arguments with their positions. If a required argument has no position, every call is invalid.
    required: Vec<(Arc<str>, Option<usize>)>,
    /// Schema for the arguments as a whole.
    whole: Schema,
}

/// Values in a call, by position in the annotation. Omitted arguments are `None`.
pub(crate) type Values<'a> = Vec<Option<&'a Value>>;

impl AcceptedArguments {
    pub(super) fn new(arguments: &[(Arc<str>, ArgumentRoles)], input_schema: Option<&Value>) -> Self {
        let whole = input_schema.map(Schema::of_arguments).unwrap_or_default();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut shapes = Vec::with_capacity(arguments.len());
        for (at, (name, _)) in arguments.iter().enumerate() {
            let (is_known, shape) = match whole.expects(name) {
                Expected::Anything => (true, None),
                Expected::Nothing => (false, None),
                Expected::This(shape) => (true, Some((name.clone(), shape.clone()))),
            };
            if is_known {
                places.insert(name.to_string(), at);
            }
            shapes.push(shape);
        }
        let required =
            whole.required().iter().map(|name| (name.clone(), places.get(&**name).copied())).collect();
        Self { places, shapes, required, whole }
    }

    /// Returns `true` if a call may contain an argument with this name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Checks the arguments of a call and returns their values by position.
    ///
    /// # Errors
    /// Returns a denial if an argument is unknown, missing or invalid.
    pub(crate) fn take<'a>(&self, arguments: &'a Map<String, Value>) -> Result<Values<'a>, Denial> {
        let mut values: Values<'_> = vec![None; self.shapes.len()];
        for (name, value) in arguments {
            let place = self.places.get(name).and_then(|place| values.get_mut(*place));
            *place.ok_or_else(|| Denial::invalid(format!("the tool has no argument `{name}`")))? =
                Some(value);
        }
        self.whole
            .check_whole(arguments)
            .and_then(|()| self.check(&values))
            .map_err(|misfit| Denial::invalid(misfit.to_string()))?;
        Ok(values)
    }

    fn check(&self, values: &[Option<&Value>]) -> Result<(), SchemaMismatch> {
        let given = |place: Option<usize>| place.and_then(|place| *values.get(place)?);
        if let Some((missing, _)) = self.required.iter().find(|(_, place)| given(*place).is_none()) {
            return Err(SchemaMismatch::missing(JsonLocation::Whole, missing));
        }
        let mut given =
            values.iter().zip(&self.shapes).filter_map(|(value, shape)| value.zip(shape.as_ref()));
        given.try_for_each(|(value, (name, shape))| shape.check_field(name, value))
    }
}
