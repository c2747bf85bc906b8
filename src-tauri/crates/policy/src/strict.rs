//! Strict JSON parser that rejects input that two parsers could interpret differently.
//!
//! - Object keys are unique, and keys that the JSON library reserves are rejected.
//! - A list is never accepted in place of an object, although serde would fill a struct's fields from it in order.
//! - An integer may be written with a fraction: `1.0` is 1, as in JSON Schema.
//! - The text must not start with a byte order mark.

mod numbers;
mod unique_keys;
mod values;

pub use numbers::check_numbers;
pub use unique_keys::UniqueKeys;
pub(crate) use values::from_value;

use crate::json_location::{JsonLocation, SourceFile};
use crate::{LoadError, SourceLocation};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use values::ValueError;

/// Reason JSON text was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// Line number, counted from 1, or `None` if unknown.
    pub line: Option<usize>,
    /// Dotted path of the invalid value. Empty for the whole text.
    pub field: String,
    /// Description of the error.
    pub message: String,
}

/// Parses JSON text.
///
/// # Errors
/// Returns [`ReadError`] if the text is not JSON, not strict, or does not match the type.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, ReadError> {
    read_part(text, &[], parse(text)?)
}

/// Deserializes `value`, which is located in `text` at the field path `path`.
///
/// # Errors
/// Returns [`ReadError`] if the value does not match the type. The error's field path is relative to the value.
pub fn read_part<T: DeserializeOwned>(text: &str, path: &[&str], value: Value) -> Result<T, ReadError> {
    from_value(value).map_err(|wrong: ValueError| {
        let line = JsonLocation::Whole.with_path(path, |base| {
            wrong.with_location(JsonLocation::Whole, |location| {
                SourceFile { file: "", text }.line(base, location)
            })
        });
        ReadError {
            line,
            field: wrong.with_location(JsonLocation::Whole, |location| location.to_string()),
            message: wrong.message,
        }
    })
}

/// Returns the line number of the value at this field path, or of its innermost existing parent.
#[must_use]
pub fn line_of(text: &str, path: &[&str]) -> Option<usize> {
    JsonLocation::Whole
        .with_path(path, |location| SourceFile { file: "", text }.line(JsonLocation::Whole, location))
}

/// Parses the contents of a policy, annotations or lists file.
pub(crate) fn read_file<T: DeserializeOwned>(source: SourceFile<'_>) -> Result<T, LoadError> {
    read(source.text).map_err(|error| LoadError::Shape {
        location: Box::new(SourceLocation { file: source.file.to_owned(), line: error.line }),
        message: error.to_string(),
    })
}

fn parse(text: &str) -> Result<Value, ReadError> {
    let error_at = |line, message| ReadError { line, field: String::new(), message };
    if text.starts_with('\u{feff}') {
        let message = "it begins with a byte order mark; save it as UTF-8 without one";
        return Err(error_at(Some(1), message.to_owned()));
    }
    serde_json::from_str(text).map(|UniqueKeys(value)| value).map_err(|error| {
        let message = error.to_string();
        let (line, column) = (error.line(), error.column());
        match message.strip_suffix(&format!(" at line {line} column {column}")) {
            Some(message) => error_at(Some(line), format!("{message} (column {column})")),
            None => error_at(None, message),
        }
    })
}

impl std::error::Error for ReadError {}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => formatter.write_str(&self.message),
            field => write!(formatter, "`{field}`: {}", self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        count: u8,
        #[serde(default)]
        word: Option<Word>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Yes,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Outer {
        all: BTreeMap<String, Vec<Inner>>,
        #[serde(default)]
        name: String,
    }

    fn read_error(text: &str) -> (Option<usize>, String) {
        let error = read::<Outer>(text).unwrap_err();
        (error.line, error.to_string())
    }

    #[test]
    fn valid_input_is_accepted() {
        let text = "{\"all\": {\"a\": [{\"count\": 1.0, \"word\": \"yes\"}, {\"count\": 2}], \"b\": []}, \"other\": [{}]}";
        let one = Inner { count: 1, word: Some(Word::Yes) };
        let all = BTreeMap::from([
            ("a".to_owned(), vec![one, Inner { count: 2, word: None }]),
            ("b".to_owned(), Vec::new()),
        ]);
        assert_eq!(read(text), Ok(Outer { all, name: String::new() }));
    }

    #[test]
    fn invalid_input_is_named_with_its_location() {
        let inner = |text: &str| read_error(&format!("{{\"all\":\n {{\"a\": [\n{text}]}}}}"));
        for (text, line, message) in [
            (r#"{"count": 1}, [1]"#, 3, "`all.a[1]`: invalid type: list, expected an object"),
            (r#"{"count": [1]}"#, 3, "`all.a[0].count`: invalid type: list, expected a whole number"),
            (r#"{"count": 1.5}"#, 3, "`all.a[0].count`: invalid type: number, expected a whole number"),
            (r#"{"count": null}"#, 3, "`all.a[0].count`: invalid type: null, expected a whole number"),
            (r#"{"count": 300}"#, 3, "`all.a[0].count`: `300` is out of range"),
            (
                r#"{"count": 1, "word": {"yes": null}}"#,
                3,
                "`all.a[0].word`: invalid type: object, expected a string",
            ),
            (r#"{"count": 1, "word": "no"}"#, 3, "`all.a[0].word`: unknown variant `no`, expected `yes`"),
            (
                r#"{"count": 1, "more": 2}"#,
                3,
                "`all.a[0].more`: unknown field `more`, expected `count` or `word`",
            ),
            ("{}", 3, "`all.a[0]`: missing field `count`"),
            (r#"{"count": 1, "count": 1}"#, 3, "`count` comes twice (column 20)"),
        ] {
            assert_eq!(inner(text), (Some(line), message.to_owned()), "{text}");
        }
        for (text, line, message) in [
            ("[{}, \"\"]", Some(1), "invalid type: list, expected an object"),
            ("{\"all\": [],\n\"name\": \"\"}", Some(1), "`all`: invalid type: list, expected an object"),
            ("{\"all\": {},\n\"name\": 1}", Some(2), "`name`: invalid type: number, expected a string"),
            ("{\"all\": {\"a\": {}}}", Some(1), "`all.a`: invalid type: object, expected a list"),
            ("\u{feff}{}", Some(1), "it begins with a byte order mark; save it as UTF-8 without one"),
            ("{\n\"all\" {}}", Some(2), "expected `:` (column 7)"),
            ("", Some(1), "EOF while parsing a value (column 0)"),
        ] {
            assert_eq!(read_error(text), (line, message.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_part_is_located_in_its_file() {
        let text = "{\"x\":\n {\"y\":\n  {\"count\":\n\"1\"}}}";
        let part = serde_json::json!({ "count": "1" });
        let error = read_part::<Inner>(text, &["x", "y"], part).unwrap_err();
        assert_eq!((error.line, error.field.as_str()), (Some(4), "count"));
        assert_eq!([line_of(text, &["x", "y"]), line_of(text, &["x", "z"])], [Some(3), Some(2)]);
    }
}
