//! Reasons why a policy file is invalid. The previous policy then stays in force.

use crate::json_location::{JsonLocation, SourceFile};
use std::fmt;

/// Error in a file, with its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The text is not JSON or does not have the expected shape.
    #[error("{place}: {message}")]
    Shape {
        /// File and line.
        place: Box<SourceLocation>,
        /// Message, with the column if the text is not JSON.
        message: String,
    },
    /// A rule is invalid.
    #[error("{place}, rule `{rule}`, field `{field}`: {message}")]
    Rule {
        /// File and line.
        place: Box<SourceLocation>,
        /// Name of the rule, or its position in the file.
        rule: String,
        /// Dotted path of the field.
        field: String,
        /// Message.
        message: String,
    },
    /// An annotation is invalid.
    #[error("{place}, tool `{server}/{tool}`, field `{field}`: {message}")]
    Tool {
        /// File and line.
        place: Box<SourceLocation>,
        /// Server name.
        server: String,
        /// Name of the tool, or its position in the file.
        tool: String,
        /// Dotted path of the field.
        field: String,
        /// Message.
        message: String,
    },
    /// A dynamic list is invalid.
    #[error("{place}, list `{list}`, field `{field}`: {message}")]
    List {
        /// File and line.
        place: Box<SourceLocation>,
        /// List name.
        list: String,
        /// Field name.
        field: String,
        /// Message.
        message: String,
    },
}

/// Location in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// File name.
    pub file: String,
    /// Line number from 1, if known.
    pub line: Option<usize>,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "`{}`, line {line}", self.file),
            None => write!(formatter, "`{}`", self.file),
        }
    }
}

impl SourceFile<'_> {
    /// Returns the file and line of a location below another one.
    pub(crate) fn place(&self, base: JsonLocation<'_>, below: JsonLocation<'_>) -> Box<SourceLocation> {
        Box::new(SourceLocation { file: self.file.to_owned(), line: self.line(base, below) })
    }

    /// Refuses an unsupported schema version.
    pub(crate) fn check_version(&self, version: u64) -> Result<(), LoadError> {
        if version == SCHEMA_VERSION {
            return Ok(());
        }
        let place =
            self.place(JsonLocation::Whole, JsonLocation::Field(&JsonLocation::Whole, "schemaVersion"));
        let message = format!("`schemaVersion` must be {SCHEMA_VERSION}: update IronCurtain, or the file");
        Err(LoadError::Shape { place, message })
    }
}

/// Supported version of the file formats.
const SCHEMA_VERSION: u64 = 1;

/// Returns the version of a file without one, as in the existing IronCurtain system.
pub(crate) fn unsaid_version() -> u64 {
    SCHEMA_VERSION
}
