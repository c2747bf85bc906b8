//! Tool call errors, as shown to agents.
//!
//! - The texts match those of the reference server, and therefore Node.js, including capitalization and codes, because
//!   agents and the trusted process look for `Access denied`, `ENOENT`, `EACCES` and similar strings.
//! - A message about a path contains the path.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Tool call error. Sent as a result with `isError`, never as a protocol error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    #[error("Access denied - path outside allowed directories: {path} not in {allowed}")]
    OutsideAllowed { path: String, allowed: String },
    #[error("Access denied - symlink target outside allowed directories: {path} not in {allowed}")]
    LinkTargetOutside { path: String, allowed: String },
    #[error("Access denied - Windows-style path received on a POSIX host: {0}")]
    WindowsStyle(String),
    #[error("Access denied - not a regular file: {0}")]
    NotRegular(String),
    #[error("Parent directory does not exist: {0}")]
    NoParent(String),
    #[error("Destination already exists: {0}")]
    Exists(String),
    #[error("Cannot specify both head and tail parameters simultaneously")]
    HeadAndTail,
    #[error("Could not find exact match for edit:\n{0}")]
    NoMatch(String),
    #[error("Cannot edit a file that is not UTF-8 text: {0}")]
    NotText(String),
    #[error("Answer too large: {what} is over the limit of {limit} bytes; {advice}")]
    TooLarge { what: String, limit: u64, advice: &'static str },
    #[error("Directory tree too deep: more than {limit} levels at {path}")]
    TooDeep { path: String, limit: usize },
    #[error("Cancelled: the call was cancelled or its directory is no longer allowed")]
    Cancelled,
    #[error("MCP error -32602: Tool {0} not found")]
    UnknownTool(String),
    #[error("MCP error -32602: Input validation error: Invalid arguments for tool {tool}: {reason}")]
    Arguments { tool: String, reason: String },
    #[error("{0}")]
    Io(IoError),
}

/// I/O error with the failed system call and its paths.
#[derive(Debug)]
pub(crate) struct IoError {
    error: io::Error,
    call: &'static str,
    path: PathBuf,
    destination: Option<PathBuf>,
}

impl ToolError {
    /// Creates the error for a failed system call `call` on a path.
    pub(crate) fn io(error: io::Error, call: &'static str, path: &Path) -> Self {
        Self::Io(IoError { error, call, path: path.to_path_buf(), destination: None })
    }

    /// Creates the error for a failed system call with a source and a destination path.
    pub(crate) fn io_between(error: io::Error, call: &'static str, path: &Path, destination: &Path) -> Self {
        let destination = Some(destination.to_path_buf());
        Self::Io(IoError { error, call, path: path.to_path_buf(), destination })
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match describe(&self.error) {
            Some((code, text)) => write!(f, "{code}: {text}")?,
            None => write!(f, "{}", self.error)?,
        }
        write!(f, ", {} '{}'", self.call, self.path.display())?;
        match &self.destination {
            Some(destination) => write!(f, " -> '{}'", destination.display()),
            None => Ok(()),
        }
    }
}

/// Returns Node.js's code and text for an error with an errno, or `None` if the text is unknown.
#[cfg(unix)]
fn describe(error: &io::Error) -> Option<(&'static str, &'static str)> {
    use rustix::io::Errno;
    let Some(number) = error.raw_os_error() else {
        return describe_kind(error.kind());
    };
    Some(match Errno::from_raw_os_error(number) {
        Errno::ACCESS => ("EACCES", "permission denied"),
        Errno::BUSY => ("EBUSY", "resource busy or locked"),
        Errno::DQUOT => ("EDQUOT", "disk quota exceeded"),
        Errno::EXIST => ("EEXIST", "file already exists"),
        Errno::FBIG => ("EFBIG", "file too large"),
        Errno::INVAL => ("EINVAL", "invalid argument"),
        Errno::IO => ("EIO", "i/o error"),
        Errno::ISDIR => ("EISDIR", "illegal operation on a directory"),
        Errno::LOOP => ("ELOOP", "too many symbolic links encountered"),
        Errno::MFILE => ("EMFILE", "too many open files"),
        Errno::NAMETOOLONG => ("ENAMETOOLONG", "name too long"),
        Errno::NODEV => ("ENODEV", "no such device"),
        Errno::NOENT => ("ENOENT", "no such file or directory"),
        Errno::NOSPC => ("ENOSPC", "no space left on device"),
        Errno::NOTDIR => ("ENOTDIR", "not a directory"),
        Errno::NOTEMPTY => ("ENOTEMPTY", "directory not empty"),
        Errno::NXIO => ("ENXIO", "no such device or address"),
        Errno::PERM => ("EPERM", "operation not permitted"),
        Errno::ROFS => ("EROFS", "read-only file system"),
        Errno::TXTBSY => ("ETXTBSY", "text file is busy"),
        Errno::XDEV => ("EXDEV", "cross-device link not permitted"),
        _ => return None,
    })
}

#[cfg(not(unix))]
fn describe(error: &io::Error) -> Option<(&'static str, &'static str)> {
    describe_kind(error.kind())
}

/// Returns Node.js's code and text for an error without an errno: one of our own errors, or cap-std's error for a path
/// that leaves its directory.
fn describe_kind(kind: io::ErrorKind) -> Option<(&'static str, &'static str)> {
    let known = [
        (io::ErrorKind::PermissionDenied, "EACCES", "permission denied, path leaves its directory"),
        (io::ErrorKind::IsADirectory, "EISDIR", "illegal operation on a directory"),
        (io::ErrorKind::InvalidInput, "EINVAL", "invalid argument"),
    ];
    known.into_iter().find(|(known, ..)| *known == kind).map(|(_, code, text)| (code, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_nodes_do() {
        let missing = io::Error::from_raw_os_error(2);
        assert_eq!(
            ToolError::io(missing, "open", Path::new("/a b")).to_string(),
            "ENOENT: no such file or directory, open '/a b'"
        );
        let read_only = io::Error::from_raw_os_error(30);
        assert_eq!(
            ToolError::io_between(read_only, "rename", Path::new("/a"), Path::new("/b")).to_string(),
            "EROFS: read-only file system, rename '/a' -> '/b'"
        );
    }
}
