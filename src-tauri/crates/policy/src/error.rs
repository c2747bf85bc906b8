//! Why a policy file is refused. The policy before it stays in force.

use crate::json_location::{JsonLocation, SourceFile};
use std::fmt;

/// A file that was not taken, and where it is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Not JSON, or not of the expected shape.
    #[error("{place}: {message}")]
    Shape {
        /// The file and the line.
        place: Box<SourceLocation>,
        /// The error; with the column when it is not JSON.
        message: String,
    },
    /// A rule is wrong.
    #[error("{place}, rule `{rule}`, field `{field}`: {message}")]
    Rule {
        /// The file and the line.
        place: Box<SourceLocation>,
        /// Name of the rule, or its place in the file.
        rule: String,
        /// The field, dotted.
        field: String,
        /// The error.
        message: String,
    },
    /// An annotation is wrong.
    #[error("{place}, tool `{server}/{tool}`, field `{field}`: {message}")]
    Tool {
        /// The file and the line.
        place: Box<SourceLocation>,
        /// The server.
        server: String,
        /// Name of the tool, or its place in the file.
        tool: String,
        /// The field, dotted.
        field: String,
        /// The error.
        message: String,
    },
    /// A dynamic list is wrong.
    #[error("{place}, list `{list}`, field `{field}`: {message}")]
    List {
        /// The file and the line.
        place: Box<SourceLocation>,
        /// The list.
        list: String,
        /// The field.
        field: String,
        /// The error.
        message: String,
    },
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file.
    pub file: String,
    /// The line, counted from 1, where it is known.
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
    /// A place below another one, as an error names it.
    pub(crate) fn place(&self, base: JsonLocation<'_>, below: JsonLocation<'_>) -> Box<SourceLocation> {
        Box::new(SourceLocation { file: self.file.to_owned(), line: self.line(base, below) })
    }

    /// Refuses a file of a version that is not understood.
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

/// The version of the file formats that is understood.
const SCHEMA_VERSION: u64 = 1;

/// That of a file that names none, as those of the system this one follows.
pub(crate) fn unsaid_version() -> u64 {
    SCHEMA_VERSION
}
