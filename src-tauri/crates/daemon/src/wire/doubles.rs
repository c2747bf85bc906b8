//! Finding names that come twice in one object, at any depth: two readers could see two different messages, and a
//! person would be shown one of them.

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// Any JSON value in which no object has a name twice. It keeps nothing.
pub struct NoDoubles;

impl<'de> Deserialize<'de> for NoDoubles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Looking)
    }
}

struct Looking;

impl<'de> Visitor<'de> for Looking {
    type Value = NoDoubles;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NoDoubles, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value::<NoDoubles>()?;
            if names.contains(&name) {
                return Err(de::Error::custom(format_args!("the field `{name}` comes twice")));
            }
            names.insert(name);
        }
        Ok(NoDoubles)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<NoDoubles, A::Error> {
        while items.next_element::<NoDoubles>()?.is_some() {}
        Ok(NoDoubles)
    }

    fn visit_unit<E>(self) -> Result<NoDoubles, E> {
        Ok(NoDoubles)
    }

    fn visit_bool<E>(self, _: bool) -> Result<NoDoubles, E> {
        Ok(NoDoubles)
    }

    fn visit_i64<E>(self, _: i64) -> Result<NoDoubles, E> {
        Ok(NoDoubles)
    }

    fn visit_u64<E>(self, _: u64) -> Result<NoDoubles, E> {
        Ok(NoDoubles)
    }

    fn visit_f64<E>(self, _: f64) -> Result<NoDoubles, E> {
        Ok(NoDoubles)
    }

    fn visit_str<E>(self, _: &str) -> Result<NoDoubles, E> {
        Ok(NoDoubles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_is_found_at_any_depth_and_however_it_is_spelled() {
        let twice = |text: &str| serde_json::from_str::<NoDoubles>(text).err().map(|e| e.to_string());
        assert_eq!(twice(r#"{"a":[1,-1,1.5,null,true,"a","a",{"a":{"b":1,"c":1}},{"a":1}]}"#), None);
        for text in [r#"{"a":1,"a":1}"#, r#"[{"x":{"a":1,"\u0061":2}}]"#] {
            assert!(twice(text).unwrap().starts_with("the field `a` comes twice"), "{text}");
        }
    }
}
