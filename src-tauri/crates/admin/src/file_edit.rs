//! Changing one place of a file of the person's, and replacing the file in one step.

use crate::json_edit::{self, JsonEditError};
use ironcurtain_paths::atomic_file;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

/// Why a file is not changed.
#[derive(Debug, thiserror::Error)]
pub enum FileEditError {
    /// It cannot be changed in this place.
    #[error("`{file}` cannot be changed: {problem}")]
    Edit {
        /// The file.
        file: PathBuf,
        /// Why not.
        problem: JsonEditError,
    },
    /// It cannot be written.
    #[error("`{file}` cannot be written: {source}")]
    Write {
        /// The file.
        file: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

impl FileEditError {
    pub(crate) fn write(file: &Path, source: io::Error) -> Self {
        Self::Write { file: file.to_path_buf(), source }
    }
}

/// The text of `file` with `value` at `path` ([`json_edit::set`]).
///
/// # Errors
/// [`FileEditError::Edit`].
pub(crate) fn set(file: &Path, text: &str, path: &[&str], value: &Value) -> Result<String, FileEditError> {
    json_edit::set(text, path, value)
        .map_err(|problem| FileEditError::Edit { file: file.to_path_buf(), problem })
}

/// The text of `file` without what is at `path` ([`json_edit::remove`]).
///
/// # Errors
/// [`FileEditError::Edit`].
pub(crate) fn remove(file: &Path, text: &str, path: &[&str]) -> Result<String, FileEditError> {
    json_edit::remove(text, path).map_err(|problem| FileEditError::Edit { file: file.to_path_buf(), problem })
}

/// Replaces the file.
///
/// # Errors
/// [`FileEditError::Write`]; then it is as it was.
pub(crate) fn replace(file: &Path, text: &str) -> Result<(), FileEditError> {
    atomic_file::replace(file, text).map_err(|source| FileEditError::write(file, source))
}
