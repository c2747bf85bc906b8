//! Changes a value in one of the user's JSON files and replaces the file atomically.

use crate::json_edit::{self, JsonEditError};
use ironcurtain_paths::atomic_file;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

/// Error from changing a file.
#[derive(Debug, thiserror::Error)]
pub enum FileEditError {
    /// The text could not be changed.
    #[error("failed to change `{file}`: {problem}")]
    Edit {
        /// Path of the file.
        file: PathBuf,
        /// Reason for the failure.
        problem: JsonEditError,
    },
    /// The file could not be written.
    #[error("failed to write `{file}`: {source}")]
    Write {
        /// Path of the file.
        file: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
}

impl FileEditError {
    pub(crate) fn write(file: &Path, source: io::Error) -> Self {
        Self::Write { file: file.to_path_buf(), source }
    }
}

/// Returns the text of `file` with `value` at `path` ([`json_edit::set`]).
///
/// # Errors
/// Returns [`FileEditError::Edit`] if `text` is not valid JSON or does not contain an object where
/// `path` requires one.
pub(crate) fn set(file: &Path, text: &str, path: &[&str], value: &Value) -> Result<String, FileEditError> {
    json_edit::set(text, path, value)
        .map_err(|problem| FileEditError::Edit { file: file.to_path_buf(), problem })
}

/// Returns the text of `file` without the value at `path` ([`json_edit::remove`]).
///
/// # Errors
/// Returns [`FileEditError::Edit`] if `text` is not valid JSON or does not contain an object where
/// `path` requires one.
pub(crate) fn remove(file: &Path, text: &str, path: &[&str]) -> Result<String, FileEditError> {
    json_edit::remove(text, path).map_err(|problem| FileEditError::Edit { file: file.to_path_buf(), problem })
}

/// Replaces the file atomically.
///
/// # Errors
/// Returns [`FileEditError::Write`] on failure, in which case the file is unchanged.
pub(crate) fn replace(file: &Path, text: &str) -> Result<(), FileEditError> {
    atomic_file::replace(file, text).map_err(|source| FileEditError::write(file, source))
}
