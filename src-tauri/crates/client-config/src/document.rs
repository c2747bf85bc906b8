//! A client's settings file, parsed losslessly: edits preserve comments and layout.
//!
//! - INVARIANT: a changed text is parsed again before it is returned, to verify that the changed entries have their new
//!   values and that all other entries are unchanged ([`Document::changed`]).
//! - INVARIANT: a file that cannot be parsed completely is not changed. A duplicate key on the path to the entries is
//!   an error, because clients disagree on which value takes effect.

mod jsonc;
mod toml;
mod yaml;

use serde_json::Value;
use std::collections::BTreeMap;

/// Syntax of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON with optional comments and trailing commas.
    Json,
    Toml,
    Yaml,
}

/// Location of the server entries in a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntriesPath {
    /// Keys that lead from the root to the entries.
    pub keys: &'static [&'static str],
    /// `true` if the entries are a list of objects with a `name` field, `false` if they are an object with the names
    /// as keys. Only YAML files contain lists.
    pub is_list: bool,
}

/// Reason a settings file could not be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The file has a syntax error.
    #[error("line {line}: {problem}")]
    Syntax {
        /// Line number, counted from 1.
        line: usize,
        /// The parser's message.
        problem: String,
    },
    /// A key on the path to the entries has a value of the wrong type.
    #[error("`{0}` does not contain server entries")]
    NoEntries(String),
    /// A key on the path to the entries occurs twice.
    #[error("duplicate key `{0}`; remove one of them")]
    Duplicate(String),
    /// An entry has a form that cannot be edited automatically.
    #[error("unsupported format of the entry `{0}`; edit the file by hand")]
    UnsupportedLayout(String),
}

/// Parsed settings file, in one of the supported syntaxes.
pub(crate) enum Document {
    Json(jsonc::JsoncDocument),
    Toml(toml::TomlDocument),
    Yaml(yaml::YamlDocument),
}

impl Document {
    pub(crate) fn parse(format: Format, text: &str) -> Result<Self, DocumentError> {
        Ok(match format {
            Format::Json => Self::Json(jsonc::JsoncDocument::parse(text)?),
            Format::Toml => Self::Toml(toml::TomlDocument::parse(text)?),
            Format::Yaml => Self::Yaml(yaml::YamlDocument::parse(text)?),
        })
    }

    /// Returns the text of the file with the given entries set. A value of `None` removes the entry.
    pub(crate) fn set_entries(
        mut self,
        entries_path: EntriesPath,
        changes: &[(&str, Option<Value>)],
    ) -> Result<String, DocumentError> {
        let mut expected: BTreeMap<String, Value> = self.entries(entries_path)?.into_iter().collect();
        for (name, value) in changes {
            match value {
                Some(value) => {
                    self.set(entries_path, name, value)?;
                    expected.insert((*name).to_owned(), value.clone());
                }
                None => {
                    self.remove(entries_path, name)?;
                    expected.remove(*name);
                }
            }
        }
        let text = self.text();
        let found: BTreeMap<String, Value> =
            Self::parse(self.format(), &text)?.entries(entries_path)?.into_iter().collect();
        let mismatch = || expected.iter().find(|(name, value)| found.get(*name) != Some(value));
        match mismatch() {
            None if found.len() == expected.len() => Ok(text),
            None => Err(DocumentError::NoEntries(entries_path.keys.join("."))),
            Some((name, _)) => Err(DocumentError::UnsupportedLayout(name.clone())),
        }
    }

    fn format(&self) -> Format {
        match self {
            Self::Json(_) => Format::Json,
            Self::Toml(_) => Format::Toml,
            Self::Yaml(_) => Format::Yaml,
        }
    }

    /// Returns the names and values of the entries, in file order.
    pub(crate) fn entries(&self, entries_path: EntriesPath) -> Result<Vec<(String, Value)>, DocumentError> {
        match self {
            Self::Json(document) => document.entries(entries_path.keys),
            Self::Toml(document) => document.entries(entries_path.keys),
            Self::Yaml(document) => document.entries(entries_path),
        }
    }

    /// Sets an entry, creating the objects on the path to it if necessary.
    fn set(&mut self, entries_path: EntriesPath, name: &str, value: &Value) -> Result<(), DocumentError> {
        match self {
            Self::Json(document) => document.set(entries_path.keys, name, value),
            Self::Toml(document) => document.set(entries_path.keys, name, value),
            Self::Yaml(document) => document.set(entries_path, name, value),
        }
    }

    /// Removes an entry, if it exists.
    fn remove(&mut self, entries_path: EntriesPath, name: &str) -> Result<(), DocumentError> {
        match self {
            Self::Json(document) => document.remove(entries_path.keys, name),
            Self::Toml(document) => document.remove(entries_path.keys, name),
            Self::Yaml(document) => document.remove(entries_path, name),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Json(document) => document.text(),
            Self::Toml(document) => document.text(),
            Self::Yaml(document) => document.text(),
        }
    }
}

/// Returns the line number of a byte offset, counted from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}
