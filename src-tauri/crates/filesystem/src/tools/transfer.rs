//! `move_file`: renames a file or directory, or copies it to another file system and removes the source.
//!
//! - Nothing is ever replaced. Where the file system supports it, the kernel creates the destination atomically or
//!   fails (`RENAME_NOREPLACE`, exclusive creation).
//! - The source is removed only after the copy is complete and synced.
//! - If copying fails, the source is intact and the destination does not exist.

mod copy;

use std::ffi::OsStr;
use std::io;

use cap_std::fs::Dir;

use super::Call;
use super::arguments::Arguments;
use crate::error::ToolError;
use crate::resolved_path::ResolvedPath;

pub(super) fn move_file(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<String, ToolError> {
    let (source, destination) = (arguments.string("source")?, arguments.string("destination")?);
    let from = call.resolve(source)?;
    let to = call.resolve(destination)?;
    match transfer(&from, &to, call) {
        Ok(()) => Ok(format!("Successfully moved {source} to {destination}")),
        Err(Failure::Io(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(ToolError::Exists(to.path().display().to_string()))
        }
        Err(Failure::Io(error)) => Err(ToolError::io_between(error, "rename", from.path(), to.path())),
        Err(Failure::Tool(error)) => Err(error),
    }
}

/// Reason a move failed: an I/O error, which is reported with both paths, or a different error.
enum Failure {
    Io(io::Error),
    Tool(ToolError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn transfer(from: &ResolvedPath, to: &ResolvedPath, call: &Call<'_>) -> Result<(), Failure> {
    if to.metadata().is_ok() {
        return Err(io::Error::from(io::ErrorKind::AlreadyExists).into());
    }
    let (from_directory, from_name) = from.parent()?;
    let (to_directory, to_name) = to.parent()?;
    match rename(&from_directory, from_name, &to_directory, to_name) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy::move_across(&from_directory, from_name, &to_directory, to_name, from.path(), call)
        }
        outcome => outcome.map_err(Failure::Io),
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn rename(from: &Dir, from_name: &OsStr, to: &Dir, to_name: &OsStr) -> io::Result<()> {
    use rustix::fs::{RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(from, from_name, to, to_name, RenameFlags::NOREPLACE) {
        // Some file systems do not support this flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rename_after_check(from, from_name, to, to_name),
        outcome => Ok(outcome?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn rename(from: &Dir, from_name: &OsStr, to: &Dir, to_name: &OsStr) -> io::Result<()> {
    rename_after_check(from, from_name, to, to_name)
}

fn rename_after_check(from: &Dir, from_name: &OsStr, to: &Dir, to_name: &OsStr) -> io::Result<()> {
    match to.symlink_metadata(to_name) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => from.rename(from_name, to, to_name),
        Err(error) => Err(error),
    }
}
