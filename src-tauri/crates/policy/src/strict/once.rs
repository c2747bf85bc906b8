//! JSON that every reader takes for the same: no name comes twice in an object, at any depth, and none is one that this
//! library keeps for itself.
//!
//! - Of two fields of one name, readers could take different ones, and a person would be shown one of them.
//! - `serde_json` takes an object with one of its own names for what the text in it says, which nobody else does.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// The prefix of names that `serde_json` keeps for itself.
const RESERVED: &str = "$serde_json::private::";

/// Any JSON value in which each object has each name once.
#[derive(Debug, Clone, PartialEq)]
pub struct UniqueNames(pub Value);

impl<'de> Deserialize<'de> for UniqueNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if name.starts_with(RESERVED) {
                return Err(A::Error::custom(format_args!("`{name}` is not taken as a name")));
            }
            if fields.contains_key(&name) {
                return Err(A::Error::custom(format_args!("`{name}` comes twice")));
            }
            let UniqueNames(value) = map.next_value()?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(UniqueNames(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        serde_json::from_str(text).map(|UniqueNames(value)| value).map_err(|error| error.to_string())
    }

    #[test]
    fn what_has_each_name_once_is_read_as_everybody_reads_it() {
        let text = r#"{"a":[1,-1,18446744073709551615,1.5,-0.0,1e300,null,true,"a","a",{"a":{"b":1,"c":1}},{"a":1}],"":{}}"#;
        assert_eq!(read(text), Ok(serde_json::from_str(text).unwrap()));
    }

    #[test]
    fn a_name_that_comes_twice_is_found_at_any_depth_and_however_it_is_spelled() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"x":{"a":1,"\u0061":2}}]"#, r#"{"a":{},"b":[],"a":null}"#] {
            assert!(read(text).unwrap_err().starts_with("`a` comes twice"), "{text}");
        }
    }

    #[test]
    fn a_name_that_the_library_keeps_for_itself_is_refused_at_any_depth_and_however_it_is_spelled() {
        let hidden = r#"{"$serde_json::private::RawValue":"\"text\""}"#;
        assert_eq!(
            serde_json::from_str::<Value>(hidden).unwrap(),
            "text",
            "the library reads it for another thing"
        );
        for text in [
            hidden.to_owned(),
            format!("[{hidden}]"),
            format!(r#"{{"a":{{"b":{hidden}}}}}"#),
            hidden.replace('$', "\\u0024"),
            hidden.replace("RawValue", "Number"),
        ] {
            assert!(read(&text).unwrap_err().contains("` is not taken as a name"), "{text}");
        }
        let alike = r#"{"$serde_json":"$serde_json::private::RawValue"}"#;
        assert_eq!(read(alike), Ok(serde_json::json!({ "$serde_json": "$serde_json::private::RawValue" })));
    }
}
