//! Changes one value in the user's JSON text and preserves all other bytes.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

/// Error from changing a JSON text.
#[derive(Debug, thiserror::Error)]
pub enum JsonEditError {
    /// The path contains no key.
    #[error("expected at least one key, found none")]
    NoKey,
    /// The text is invalid JSON, or a value on the path is not an object.
    #[error("{0}")]
    NoObject(#[from] serde_json::Error),
    /// An object on the path contains the key twice.
    #[error("duplicate key `{0}`")]
    Duplicate(String),
    /// The key to remove does not exist.
    #[error("`{0}` not found")]
    NotFound(String),
    /// A value could not be located in the text. This does not occur for valid JSON.
    #[error("failed to locate `{0}` in the text")]
    Lost(String),
}

/// Returns the text with `value` at `path`, a list of object keys. Creates missing objects.
///
/// # Errors
/// Returns a [`JsonEditError`] if the text is not a JSON object or a value on `path` is not an object.
pub(crate) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, JsonEditError> {
    set_at_depth(text, path, value, 1)
}

fn set_at_depth(text: &str, path: &[&str], value: &Value, depth: usize) -> Result<String, JsonEditError> {
    let Some((key, rest)) = path.split_first() else { return Err(JsonEditError::NoKey) };
    let members = members(text)?;
    match find_member(&members, key)?.and_then(|index| members.get(index)) {
        Some((_, old)) => {
            let new = if rest.is_empty() {
                indented(value, depth)?
            } else {
                set_at_depth(old.get(), rest, value, depth + 1)?
            };
            splice(text, old.get(), &new).ok_or_else(|| JsonEditError::Lost((*key).to_owned()))
        }
        None => {
            let nested =
                rest.iter().rev().fold(value.clone(), |inner, key| serde_json::json!({ *key: inner }));
            append(text, members.is_empty(), key, &indented(&nested, depth)?, depth)
        }
    }
}

/// Returns the text without the value at `path`.
///
/// # Errors
/// Returns a [`JsonEditError`] if the text is not a JSON object or a value on `path` is not an object.
pub(crate) fn remove(text: &str, path: &[&str]) -> Result<String, JsonEditError> {
    let Some((key, rest)) = path.split_first() else { return Err(JsonEditError::NoKey) };
    let members = members(text)?;
    let index = find_member(&members, key)?.ok_or_else(|| JsonEditError::NotFound((*key).to_owned()))?;
    let not_found_again = || JsonEditError::Lost((*key).to_owned());
    let old = members.get(index).ok_or_else(not_found_again)?.1.get();
    if !rest.is_empty() {
        return splice(text, old, &remove(old, rest)?).ok_or_else(not_found_again);
    }
    let end_of = |part: &str| Some(start(text, part)? + part.len());
    let mut end = end_of(old).ok_or_else(not_found_again)?;
    let before = index.checked_sub(1).and_then(|before| members.get(before));
    let start_offset = match before {
        // Also removes the preceding comma.
        Some((_, before)) => end_of(before.get()),
        None => text.find('{').map(|open| open + 1),
    };
    if before.is_none() && members.len() > 1 {
        // Also removes the following comma.
        end += text.get(end..).and_then(|rest| rest.find(',')).ok_or_else(not_found_again)? + 1;
    }
    let head = start_offset.and_then(|start_offset| text.get(..start_offset)).ok_or_else(not_found_again)?;
    Ok(format!("{head}{}", text.get(end..).ok_or_else(not_found_again)?))
}

/// Parses an object into its members.
fn members(text: &str) -> Result<Vec<(String, &RawValue)>, JsonEditError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    Ok(reader.deserialize_map(Members).and_then(|members| reader.end().map(|()| members))?)
}

/// Returns the index of a key among the members.
fn find_member(members: &[(String, &RawValue)], key: &str) -> Result<Option<usize>, JsonEditError> {
    let mut found = members.iter().enumerate().filter(|(_, (name, _))| name == key).map(|(index, _)| index);
    let (member, duplicate) = (found.next(), found.next());
    if duplicate.is_some() { Err(JsonEditError::Duplicate(key.to_owned())) } else { Ok(member) }
}

/// Returns the byte offset of a slice within the text that contains it.
fn start(text: &str, part: &str) -> Option<usize> {
    (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)
}

/// Replaces a slice of the text.
fn splice(text: &str, part: &str, new: &str) -> Option<String> {
    let start = start(text, part)?;
    Some(format!("{}{new}{}", text.get(..start)?, text.get(start + part.len()..)?))
}

/// Appends a member to an object's text.
fn append(text: &str, empty: bool, key: &str, value: &str, depth: usize) -> Result<String, JsonEditError> {
    let close = text.rfind('}').ok_or_else(|| JsonEditError::Lost(key.to_owned()))?;
    let (before, after) = text.split_at(close);
    let comma = if empty { "" } else { "," };
    let key = serde_json::to_string(key)?;
    let (inner, outer) = ("  ".repeat(depth), "  ".repeat(depth - 1));
    Ok(format!("{}{comma}\n{inner}{key}: {value}\n{outer}{after}", before.trim_end()))
}

fn indented(value: &Value, depth: usize) -> Result<String, JsonEditError> {
    let text = serde_json::to_string_pretty(value)?;
    // JSON strings contain no raw line breaks, so this changes only the layout.
    Ok(text.replace('\n', &format!("\n{}", "  ".repeat(depth))))
}

/// Visitor that collects an object's members in order, each with its raw text.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn only_the_given_value_changes() {
        let text = "{\n    \"a\" : {\"x\":1.50,\n\"y\": [ ] },\n  \"b\":\"\\u0041\" }\n";
        let with = |path: &[&str], value: Value| set(text, path, &value).unwrap();
        assert_eq!(with(&["a", "x"], json!(2)), text.replace("1.50", "2"));
        assert_eq!(with(&["b"], json!({ "c": 1 })), text.replace("\"\\u0041\"", "{\n    \"c\": 1\n  }"));
        assert_eq!(with(&["z"], json!([])), text.replace("041\" }", "041\",\n  \"z\": []\n}"));
        assert_eq!(with(&["a", "z"], json!(3)), text.replace("[ ] }", "[ ],\n    \"z\": 3\n  }"));
        assert_eq!(set("{}", &["s", "t"], &json!(1)).unwrap(), "{\n  \"s\": {\n    \"t\": 1\n  }\n}");
        for (bad, problem) in [
            ("[]", "expected an object"),
            ("{\"a\":1,\"a\":2}", "duplicate key `a`"),
            ("{\"a\":1}", "expected an object"),
            ("{\"a\":{}} x", "trailing characters"),
        ] {
            let error = set(bad, &["a", "b"], &json!(1)).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn removing_a_member_removes_one_comma() {
        let text = "{\n  \"_comment\": \"mine\",\n  \"a\": { \"x\" : 1.50, \"y\": [ ] },\n  \"b\":2 }\n";
        let without = |path: &[&str]| remove(text, path).unwrap();
        assert_eq!(without(&["b"]), text.replace(",\n  \"b\":2", ""));
        assert_eq!(without(&["a"]), text.replace("\n  \"a\": { \"x\" : 1.50, \"y\": [ ] },", ""));
        assert_eq!(without(&["_comment"]), text.replace("\n  \"_comment\": \"mine\",", ""));
        assert_eq!(without(&["a", "x"]), text.replace(" \"x\" : 1.50,", ""));
        assert_eq!(remove("{ \"a\": 1 }", &["a"]).unwrap(), "{ }");
        for (path, problem) in
            [(&["z"][..], "`z` not found"), (&["b", "x"], "expected an object"), (&[], "at least one key")]
        {
            let error = remove(text, path).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
        assert!(remove("{\"a\":1,\"a\":2}", &["a"]).unwrap_err().to_string().contains("duplicate key `a`"));
    }

    proptest! {
        #[test]
        fn remove_deletes_only_the_given_key(
            keys in prop::collection::btree_set("[a-z\"\\\\,{} ]{0,3}", 1..5), at in any::<prop::sample::Index>(), pretty in any::<bool>(),
        ) {
            let mut object: serde_json::Map<_, _> = keys.iter().map(|k| (k.clone(), json!({ "in,": k }))).collect();
            let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) }.unwrap();
            let key = at.get(&keys.iter().collect::<Vec<_>>()).to_string();
            let changed = remove(&text, &[key.as_str()]).unwrap();
            object.remove(&key);
            prop_assert_eq!(serde_json::from_str::<Value>(&changed).unwrap(), Value::Object(object));
        }

        #[test]
        fn set_changes_only_the_given_key(
            keys in prop::collection::btree_set("[a-z\"\\\\é ]{0,3}", 0..5), key in "[a-z\"\\\\é ]{0,3}", pretty in any::<bool>(),
        ) {
            let mut object: serde_json::Map<_, _> = keys.iter().map(|k| (k.clone(), json!({ "in": k }))).collect();
            let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) }.unwrap();
            let changed = set(&text, &[key.as_str()], &json!({ "new": [1, 2] })).unwrap();
            object.insert(key, json!({ "new": [1, 2] }));
            prop_assert_eq!(serde_json::from_str::<Value>(&changed).unwrap(), Value::Object(object));
        }
    }
}
