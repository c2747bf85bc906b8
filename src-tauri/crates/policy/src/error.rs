//! Errors in policy files. If a file is invalid, the previous policy stays in effect.

use crate::json_location::{JsonLocation, SourceFile};
use std::fmt;

/// Error in a policy, annotations or lists file, with its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The text is not JSON, or its structure is wrong.
    #[error("{location}: {message}")]
    Shape {
        /// File name and line number.
        location: Box<SourceLocation>,
        /// Description of the error, with the column if the text is not JSON.
        message: String,
    },
    /// A rule is invalid.
    #[error("{location}, rule `{rule}`, field `{field}`: {message}")]
    Rule {
        /// File name and line number.
        location: Box<SourceLocation>,
        /// Name of the rule, or its position in the file.
        rule: String,
        /// Dotted path of the invalid field.
        field: String,
        /// Description of the error.
        message: String,
    },
    /// An annotation is invalid.
    #[error("{location}, tool `{server}/{tool}`, field `{field}`: {message}")]
    Tool {
        /// File name and line number.
        location: Box<SourceLocation>,
        /// Name of the server.
        server: String,
        /// Name of the tool, or its position in the file.
        tool: String,
        /// Dotted path of the invalid field.
        field: String,
        /// Description of the error.
        message: String,
    },
    /// A dynamic list is invalid.
    #[error("{location}, list `{list}`, field `{field}`: {message}")]
    List {
        /// File name and line number.
        location: Box<SourceLocation>,
        /// Name of the list.
        list: String,
        /// Name of the invalid field.
        field: String,
        /// Description of the error.
        message: String,
    },
}

/// File name and line number of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// File name.
    pub file: String,
    /// Line number, counted from 1, or `None` if unknown.
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
    /// Returns the file name and line number for the location `relative`, which is relative to `base`.
    pub(crate) fn location(&self, base: JsonLocation<'_>, relative: JsonLocation<'_>) -> Box<SourceLocation> {
        Box::new(SourceLocation { file: self.file.to_owned(), line: self.line(base, relative) })
    }

    /// Returns an error if the schema version is not supported.
    pub(crate) fn check_version(&self, version: u64) -> Result<(), LoadError> {
        if version == SCHEMA_VERSION {
            return Ok(());
        }
        let location =
            self.location(JsonLocation::Whole, JsonLocation::Field(&JsonLocation::Whole, "schemaVersion"));
        let message = format!("`schemaVersion` must be {SCHEMA_VERSION}; update IronCurtain, or the file");
        Err(LoadError::Shape { location, message })
    }
}

/// The only supported schema version of the file formats.
const SCHEMA_VERSION: u64 = 1;

/// Returns the schema version of a file that does not specify one. The existing IronCurtain system writes such files.
pub(crate) fn default_version() -> u64 {
    SCHEMA_VERSION
}
