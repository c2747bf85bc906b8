//! Fields of a JSON object, each kept as raw text.

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fmt;

/// Maximum number of fields for which names are compared pairwise. For so few fields, this is faster than a set.
const MAX_PAIRWISE: usize = 32;

/// Fields of an object in order, with raw values. A duplicate name is an error, because parsers differ in which value
/// they use.
#[derive(Debug, Default, Clone)]
pub struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// Returns the value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| &**v)
    }

    /// Replaces the value of a field, or appends the field.
    pub fn set(&mut self, name: &str, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Removes a field.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(n, _)| n != name);
    }

    /// Removes a field and returns its value.
    pub fn take(&mut self, name: &str) -> Option<Box<RawValue>> {
        let index = self.0.iter().position(|(n, _)| n == name)?;
        Some(self.0.remove(index).1)
    }

    /// Iterates over names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(n, v)| (n.as_str(), &**v))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                let mut names = HashSet::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    // For an object with millions of fields, comparing every pair of names would take hours.
                    if fields.0.len() == MAX_PAIRWISE {
                        names.extend(fields.0.iter().map(|(name, _)| name.clone()));
                    }
                    let is_repeated = match fields.0.len() < MAX_PAIRWISE {
                        true => fields.get(&name).is_some(),
                        false => !names.insert(name.clone()),
                    };
                    if is_repeated {
                        return Err(de::Error::custom(format_args!("the field `{name}` comes twice")));
                    }
                    fields.0.push((name, value));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_field_is_an_error() {
        let twice = serde_json::from_str::<Fields>(r#"{"path":"/a","path":"/b"}"#).unwrap_err();
        assert!(twice.to_string().starts_with("the field `path` comes twice"), "{twice}");
        let escaped = serde_json::from_str::<Fields>(r#"{"path":"/a","p\u0061th":"/b"}"#);
        assert!(escaped.is_err());
    }

    #[test]
    fn an_object_with_many_fields_is_parsed_in_linear_time() {
        let names: Vec<String> = (0..200_000).map(|n| format!("\"{n}\":0")).collect();
        let fields: Fields = serde_json::from_str(&format!("{{{}}}", names.join(","))).unwrap();
        assert_eq!(fields.iter().count(), 200_000);
        let twice = format!("{{{},\"7\":1}}", names.join(","));
        assert!(serde_json::from_str::<Fields>(&twice).unwrap_err().to_string().contains("`7` comes twice"));
    }
}
