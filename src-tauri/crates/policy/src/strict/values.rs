//! Deserializer that accepts only objects for structs and only strings for enums.
//!
//! - Errors contain the path to the invalid value.

use crate::json_location::JsonLocation;
use serde::de::value::StringDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};
use std::fmt;

/// Deserializes a value strictly.
pub(crate) fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, ValueError> {
    T::deserialize(Strict(value))
}

/// Deserialization error, with the path to the invalid value.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ValueError {
    /// Path to the invalid value, innermost step first.
    path: Vec<Step>,
    pub(crate) message: String,
}

#[derive(Debug)]
enum Step {
    Field(String),
    Item(usize),
}

impl ValueError {
    /// Calls `use_location` with the location of the error, relative to `base`.
    pub(crate) fn with_location<R>(
        &self,
        base: JsonLocation<'_>,
        use_location: impl FnOnce(JsonLocation<'_>) -> R,
    ) -> R {
        fn visit<R>(
            path: &[Step],
            at: JsonLocation<'_>,
            use_location: impl FnOnce(JsonLocation<'_>) -> R,
        ) -> R {
            match path.split_last() {
                None => use_location(at),
                Some((Step::Field(name), rest)) => visit(rest, JsonLocation::Field(&at, name), use_location),
                Some((Step::Item(index), rest)) => visit(rest, JsonLocation::Item(&at, *index), use_location),
            }
        }
        visit(&self.path, base, use_location)
    }

    fn inside(mut self, step: Step) -> Self {
        self.path.push(step);
        self
    }

    fn wrong_type(found: &Value, expected: &str) -> Self {
        let found = match found {
            Value::Null => Unexpected::Unit,
            Value::Bool(truth) => Unexpected::Bool(*truth),
            Value::Number(_) => Unexpected::Other("number"),
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        };
        de::Error::invalid_type(found, &expected)
    }
}

impl de::Error for ValueError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { path: Vec::new(), message: message.to_string() }
    }

    /// Creates a type error with JSON's type names instead of serde's.
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let words = [(Unexpected::Unit, "null"), (Unexpected::Seq, "list"), (Unexpected::Map, "object")];
        let word =
            words.into_iter().find(|(kind, _)| *kind == found).map(|(_, word)| Unexpected::Other(word));
        let found = word.unwrap_or(found);
        Self::custom(format_args!("invalid type: {found}, expected {expected}"))
    }
}

struct Strict(Value);

/// Defines deserializer methods that reject other JSON types before the visitor receives them.
macro_rules! only {
    ($kind:pat, $expected:literal: $($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
            match self.0 {
                $kind => self.deserialize_any(visitor),
                other => Err(ValueError::wrong_type(&other, $expected)),
            }
        }
    )*};
}

/// Defines deserializer methods that accept integers even if they are written with a fraction or an exponent.
macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
            match as_integer(&self.0) {
                Some(number) => {
                    let visited: Result<_, ValueError> = match (u64::try_from(number), i64::try_from(number)) {
                        (Ok(number), _) => visitor.visit_u64(number),
                        (Err(_), Ok(number)) => visitor.visit_i64(number),
                        (Err(_), Err(_)) => visitor.visit_i128(number),
                    };
                    visited.map_err(|_| de::Error::custom(format_args!("`{number}` is out of range")))
                }
                None => Err(ValueError::wrong_type(&self.0, "a whole number")),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Strict {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(truth) => visitor.visit_bool(truth),
            Value::Number(number) => number.deserialize_any(visitor).map_err(de::Error::custom),
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => visitor.visit_seq(Items(items.into_iter().enumerate())),
            Value::Object(fields) => visitor.visit_map(Fields { rest: fields.into_iter(), value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        self.deserialize_map(visitor)
    }

    /// Accepts only a string, which is the variant's name.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let Value::String(word) = self.0 else { return Err(ValueError::wrong_type(&self.0, "a string")) };
        visitor.visit_enum(word.into_deserializer())
    }

    only! { Value::Object(_), "an object": deserialize_map }
    only! { Value::Array(_), "a list": deserialize_seq }
    only! { Value::String(_), "a string": deserialize_str deserialize_string }
    only! { Value::Bool(_), "`true` or `false`": deserialize_bool }
    integers! { deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// Returns the value as an integer, or `None` if it is not an integer.
fn as_integer(value: &Value) -> Option<i128> {
    let Value::Number(number) = value else { return None };
    let integer = number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from));
    // Largest magnitude at which every integer is exact as an `f64`.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float_integer = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT);
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small enough")]
    integer.or_else(|| float_integer.map(|number| number as i128))
}

struct Items(std::iter::Enumerate<std::vec::IntoIter<Value>>);

impl<'de> SeqAccess<'de> for Items {
    type Error = ValueError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ValueError> {
        let Some((index, item)) = self.0.next() else { return Ok(None) };
        seed.deserialize(Strict(item)).map(Some).map_err(|error| error.inside(Step::Item(index)))
    }
}

struct Fields {
    rest: <Map<String, Value> as IntoIterator>::IntoIter,
    value: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ValueError> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        let key: StringDeserializer<ValueError> = name.clone().into_deserializer();
        let key = seed.deserialize(key).map_err(|error| error.inside(Step::Field(name.clone())))?;
        self.value = Some((name, value));
        Ok(Some(key))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ValueError> {
        let (name, value) =
            self.value.take().ok_or_else(|| <ValueError as de::Error>::custom("a value without a name"))?;
        seed.deserialize(Strict(value)).map_err(|error| error.inside(Step::Field(name)))
    }
}
