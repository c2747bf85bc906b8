//! Why a policy file is refused. The policy before it stays in force.

/// A file that was not taken, and where it is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Not JSON, or not of the expected shape.
    #[error("`{file}`: {message}")]
    Shape {
        /// The file.
        file: String,
        /// What is wrong, with line and column.
        message: String,
    },
    /// A rule is wrong.
    #[error("`{file}`, rule `{rule}`, field `{field}`: {message}")]
    Rule {
        /// The file.
        file: String,
        /// Name of the rule, or its place in the file.
        rule: String,
        /// The field, dotted.
        field: String,
        /// What is wrong.
        message: String,
    },
    /// An annotation is wrong.
    #[error("`{file}`, tool `{server}/{tool}`, field `{field}`: {message}")]
    Tool {
        /// The file.
        file: String,
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// The field, dotted.
        field: String,
        /// What is wrong.
        message: String,
    },
    /// A dynamic list is wrong.
    #[error("`{file}`, list `{list}`: {message}")]
    List {
        /// The file.
        file: String,
        /// The list.
        list: String,
        /// What is wrong.
        message: String,
    },
}

/// The version of the file formats that is understood. Files of the system this one follows have none.
const SCHEMA_VERSION: u64 = 1;

/// Refuses a file of a version that is not understood.
pub(crate) fn check_version(file: &str, version: Option<u64>) -> Result<(), LoadError> {
    if version.is_none_or(|version| version == SCHEMA_VERSION) {
        return Ok(());
    }
    let message = format!("`schemaVersion` must be {SCHEMA_VERSION}: update IronCurtain, or the file");
    Err(LoadError::Shape { file: file.to_owned(), message })
}
