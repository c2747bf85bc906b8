//! JSON that all parsers interpret identically: object keys are unique at every depth, and `serde_json` reserves none
//! of them.
//!
//! - With duplicate keys, parsers could use different values, and the user would see only one of them.
//! - `serde_json` replaces an object that has one of its reserved keys with the text inside it. No other parser does
//!   this.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Prefix of the keys that `serde_json` reserves.
const RESERVED: &str = "$serde_json::private::";

/// JSON value whose objects have unique keys.
#[derive(Debug, Clone, PartialEq)]
pub struct UniqueKeys(pub Value);

impl<'de> Deserialize<'de> for UniqueKeys {
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
                return Err(A::Error::custom(format_args!("`{name}` is not accepted as a name")));
            }
            if fields.contains_key(&name) {
                return Err(A::Error::custom(format_args!("`{name}` comes twice")));
            }
            let UniqueKeys(value) = map.next_value()?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(UniqueKeys(item)) = list.next_element()? {
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
        serde_json::from_str(text).map(|UniqueKeys(value)| value).map_err(|error| error.to_string())
    }

    #[test]
    fn unique_names_are_read_like_any_json() {
        let text = r#"{"a":[1,-1,18446744073709551615,1.5,-0.0,1e300,null,true,"a","a",{"a":{"b":1,"c":1}},{"a":1}],"":{}}"#;
        assert_eq!(read(text), Ok(serde_json::from_str(text).unwrap()));
    }

    #[test]
    fn duplicate_names_are_found_at_any_depth_and_in_any_spelling() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"x":{"a":1,"\u0061":2}}]"#, r#"{"a":{},"b":[],"a":null}"#] {
            assert!(read(text).unwrap_err().starts_with("`a` comes twice"), "{text}");
        }
    }

    #[test]
    fn reserved_names_are_refused_at_any_depth_and_in_any_spelling() {
        let hidden = r#"{"$serde_json::private::RawValue":"\"text\""}"#;
        assert_eq!(
            serde_json::from_str::<Value>(hidden).unwrap(),
            "text",
            "the library reads it differently"
        );
        for text in [
            hidden.to_owned(),
            format!("[{hidden}]"),
            format!(r#"{{"a":{{"b":{hidden}}}}}"#),
            hidden.replace('$', "\\u0024"),
            hidden.replace("RawValue", "Number"),
        ] {
            assert!(read(&text).unwrap_err().contains("` is not accepted as a name"), "{text}");
        }
        let alike = r#"{"$serde_json":"$serde_json::private::RawValue"}"#;
        assert_eq!(read(alike), Ok(serde_json::json!({ "$serde_json": "$serde_json::private::RawValue" })));
    }
}
