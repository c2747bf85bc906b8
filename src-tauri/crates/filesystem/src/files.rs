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
pub(crate) fn open(place: &ResolvedPath) -> Result<File, ToolError> {
    // Opening a device can have side effects, so the type is checked first. The check after opening is the decisive
    // one.
    let metadata = place.metadata().map_err(|error| ToolError::io(error, "open", place.path()))?;
    if metadata.is_dir() {
        return Err(ToolError::io(std::io::ErrorKind::IsADirectory.into(), "read", place.path()));
    }
    if !metadata.is_file() {
        return Err(not_regular(place));
    }
    let file = place
        .open_file(OpenOptions::new().read(true))
        .map_err(|error| ToolError::io(error, "open", place.path()))?;
    require_regular(place, file)
}

/// Reads a whole file of at most `limit` bytes. The error for a larger file includes `advice`.
pub(crate) fn read(place: &ResolvedPath, limit: u64, advice: &'static str) -> Result<Vec<u8>, ToolError> {
    let file = open(place)?;
    let fail = |error| ToolError::io(error, "read", place.path());
    let too_large = || ToolError::TooLarge { what: place.path().display().to_string(), limit, advice };
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
pub(crate) fn read_text(place: &ResolvedPath) -> Result<String, ToolError> {
    read(place, TEXT_LIMIT, "use head or tail").map(to_text)
}

/// Decodes bytes as UTF-8, replacing invalid sequences with U+FFFD.
pub(crate) fn to_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Creates a file, or replaces its content in place.
pub(crate) fn write(place: &ResolvedPath, content: &[u8]) -> Result<(), ToolError> {
    let fail = |error| ToolError::io(error, "open", place.path());
    match place.metadata() {
        Ok(metadata) if metadata.is_dir() => return Err(fail(std::io::ErrorKind::IsADirectory.into())),
        Ok(metadata) if !metadata.is_file() => return Err(not_regular(place)),
        Ok(_) | Err(_) => {}
    }
    let file = place.open_file(OpenOptions::new().write(true).create(true)).map_err(fail)?;
    let mut file = require_regular(place, file)?;
    let fail = |error| ToolError::io(error, "write", place.path());
    file.set_len(0).map_err(fail)?;
    file.write_all(content).map_err(fail)
}

/// Returns the open file if it is a regular file, otherwise an error.
fn require_regular(place: &ResolvedPath, file: File) -> Result<File, ToolError> {
    let metadata = file.metadata().map_err(|error| ToolError::io(error, "fstat", place.path()))?;
    if metadata.is_file() { Ok(file) } else { Err(not_regular(place)) }
}

fn not_regular(place: &ResolvedPath) -> ToolError {
    ToolError::NotRegular(place.path().display().to_string())
}
