//! A settings file of a client as a tree that can be written back with all that the person wrote in it.
//!
//! - INVARIANT: a changed text is read again before anybody sees it: the entries that were meant are as they were to be, and all
//!   others as they were ([`Document::changed`]).
//! - INVARIANT: what cannot be read whole is not changed. A key that is there twice on the way to the entries is an error, since
//!   clients differ in which of the two they take.

mod jsonc;
mod toml;
mod yaml;

use serde_json::Value;
use std::collections::BTreeMap;

/// The language of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, with comments and trailing commas where a client takes them.
    Json,
    Toml,
    Yaml,
}

/// The part of a file that its entries are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The keys that lead there.
    pub keys: &'static [&'static str],
    /// The entries are a list, each with its `name`, and not an object with their names as keys. YAML alone has that.
    pub is_list: bool,
}

/// Why a file cannot be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The text is not of its language.
    #[error("line {line}: {problem}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The parser's answer.
        problem: String,
    },
    /// A key on the way to the entries holds something else.
    #[error("`{0}` does not hold entries")]
    NoEntries(String),
    /// It cannot be known which of the two is meant.
    #[error("`{0}` is there twice: remove one of them")]
    Twice(String),
    /// An entry has a form that cannot be changed here.
    #[error("the entry `{0}` has a form that cannot be changed: edit the file by hand")]
    Unusual(String),
}

/// A file's tree.
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

    /// The text with entries set, or removed where there is no value.
    pub(crate) fn changed(
        mut self,
        place: Place,
        changes: &[(&str, Option<Value>)],
    ) -> Result<String, DocumentError> {
        let mut expected: BTreeMap<String, Value> = self.entries(place)?.into_iter().collect();
        for (name, value) in changes {
            match value {
                Some(value) => {
                    self.set(place, name, value)?;
                    expected.insert((*name).to_owned(), value.clone());
                }
                None => {
                    self.remove(place, name)?;
                    expected.remove(*name);
                }
            }
        }
        let text = self.text();
        let found: BTreeMap<String, Value> =
            Self::parse(self.format(), &text)?.entries(place)?.into_iter().collect();
        let lost = || expected.iter().find(|(name, value)| found.get(*name) != Some(value));
        match lost() {
            None if found.len() == expected.len() => Ok(text),
            None => Err(DocumentError::NoEntries(place.keys.join("."))),
            Some((name, _)) => Err(DocumentError::Unusual(name.clone())),
        }
    }

    fn format(&self) -> Format {
        match self {
            Self::Json(_) => Format::Json,
            Self::Toml(_) => Format::Toml,
            Self::Yaml(_) => Format::Yaml,
        }
    }

    /// The entries with their names, in their order.
    pub(crate) fn entries(&self, place: Place) -> Result<Vec<(String, Value)>, DocumentError> {
        match self {
            Self::Json(document) => document.entries(place.keys),
            Self::Toml(document) => document.entries(place.keys),
            Self::Yaml(document) => document.entries(place),
        }
    }

    /// Sets one entry; the objects on the way to it are made where they are missing.
    fn set(&mut self, place: Place, name: &str, value: &Value) -> Result<(), DocumentError> {
        match self {
            Self::Json(document) => document.set(place.keys, name, value),
            Self::Toml(document) => document.set(place.keys, name, value),
            Self::Yaml(document) => document.set(place, name, value),
        }
    }

    /// Removes one entry, if it is there.
    fn remove(&mut self, place: Place, name: &str) -> Result<(), DocumentError> {
        match self {
            Self::Json(document) => document.remove(place.keys, name),
            Self::Toml(document) => document.remove(place.keys, name),
            Self::Yaml(document) => document.remove(place, name),
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

/// The number of the line in which a byte is, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}
