//! Reads and writes regular files, up to a size limit.
//!
//! - Named pipes, sockets and devices are rejected. Opening them never blocks.
//! - Files are written in place, because a granted file may be a mount point, which cannot be replaced by a rename.

use std::fs::File;
use std::io::{Read as _, Write as _};

use cap_std::fs::OpenOptions;

use crate::error::ToolError;
use crate::resolved_path::ResolvedPath;

/// Maximum size of the text in a result, in bytes.
pub(crate) const TEXT_LIMIT: u64 = 64 * 1024 * 1024;

/// Opens a regular file for reading.
pub(crate) fn open(path: &ResolvedPath) -> Result<File, ToolError> {
    // Opening a device can have side effects, so the type is checked first. The check after opening is the decisive
    // one.
    let metadata = path.metadata().map_err(|error| ToolError::io(error, "open", path.path()))?;
    if metadata.is_dir() {
        return Err(ToolError::io(std::io::ErrorKind::IsADirectory.into(), "read", path.path()));
    }
    if !metadata.is_file() {
        return Err(not_regular(path));
    }
    let file = path
        .open_file(OpenOptions::new().read(true))
        .map_err(|error| ToolError::io(error, "open", path.path()))?;
    require_regular(path, file)
}

/// Reads a whole file of at most `limit` bytes. The error for a larger file includes `advice`.
pub(crate) fn read(path: &ResolvedPath, limit: u64, advice: &'static str) -> Result<Vec<u8>, ToolError> {
    let file = open(path)?;
    let fail = |error| ToolError::io(error, "read", path.path());
    let too_large = || ToolError::TooLarge { what: path.path().display().to_string(), limit, advice };
    let size = file.metadata().map_err(fail)?.len();
    if size > limit {
        return Err(too_large());
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(limit.saturating_add(1)).read_to_end(&mut content).map_err(fail)?;
    if u64::try_from(content.len()).is_ok_and(|length| length <= limit) {
        Ok(content)
    } else {
        Err(too_large())
    }
}

/// Reads a whole file as text, replacing invalid UTF-8 with U+FFFD.
pub(crate) fn read_text(path: &ResolvedPath) -> Result<String, ToolError> {
    read(path, TEXT_LIMIT, "use head or tail").map(to_text)
}

/// Decodes bytes as UTF-8, replacing invalid sequences with U+FFFD.
pub(crate) fn to_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Creates a file, or replaces its content in place.
pub(crate) fn write(path: &ResolvedPath, content: &[u8]) -> Result<(), ToolError> {
    let fail = |error| ToolError::io(error, "open", path.path());
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => return Err(fail(std::io::ErrorKind::IsADirectory.into())),
        Ok(metadata) if !metadata.is_file() => return Err(not_regular(path)),
        Ok(_) | Err(_) => {}
    }
    let file = path.open_file(OpenOptions::new().write(true).create(true)).map_err(fail)?;
    let mut file = require_regular(path, file)?;
    let fail = |error| ToolError::io(error, "write", path.path());
    file.set_len(0).map_err(fail)?;
    file.write_all(content).map_err(fail)
}

/// Returns the open file if it is a regular file, otherwise an error.
fn require_regular(path: &ResolvedPath, file: File) -> Result<File, ToolError> {
    let metadata = file.metadata().map_err(|error| ToolError::io(error, "fstat", path.path()))?;
    if metadata.is_file() { Ok(file) } else { Err(not_regular(path)) }
}

fn not_regular(path: &ResolvedPath) -> ToolError {
    ToolError::NotRegular(path.path().display().to_string())
}
