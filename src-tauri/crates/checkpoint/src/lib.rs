//! Copies a folder before a run, detects later changes, and restores the folder.
//!
//! - Never follows symbolic links or crosses file systems: every operation opens its path beneath the folder.
//! - Never runs a program. Changes below `.git` are marked, so the caller can exclude them.
//! - INVARIANT: a path is modified only if it is still in the state that the comparison found.
//! - Pipes, sockets, devices, unreadable files, names that are not UTF-8 and other file systems are reported, but not
//!   copied. Owners, timestamps, extended attributes and additional hard links are not restored.

#![cfg(target_os = "linux")]

mod compare;
mod copy_folder;
mod record;
mod restore;
mod store;
mod tree;

pub use compare::{Change, Changes, DifferenceKind};
pub use record::{CheckpointInfo, NotCopied};
pub use restore::{NotRestored, Restored};
pub use store::{Checkpoint, Checkpoints};

use std::io;
use std::path::PathBuf;

/// Maximum number of files and folders in a checkpoint.
pub const MAX_ENTRIES: usize = 200_000;

/// Maximum number of files and folders that are compared with a checkpoint.
pub const MAX_COMPARED: usize = 5 * MAX_ENTRIES;

/// Maximum total length of the paths of files and folders that are listed, in bytes: 256 MiB.
pub const MAX_PATHS_LEN: usize = 256 << 20;

/// Maximum size of a checkpoint, in bytes, including files that share blocks with the original. A comparison reads at
/// most this much of files that are new or have a different size. Further such files are identified by their times.
pub const MAX_BYTES: u64 = 4 << 30;

/// Maximum number of checkpoints that are kept. A new checkpoint replaces the oldest one.
pub const MAX_CHECKPOINTS: usize = 10;

/// Error returned when a checkpoint operation fails.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Accessing the folder or a checkpoint file failed.
    #[error("failed to access `{path}`: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Error from the operating system.
        source: io::Error,
    },
    /// The folder's path is not UTF-8.
    #[error("the path `{}` is not valid UTF-8", .0.display())]
    NotUtf8(PathBuf),
    /// The folder has too many entries.
    #[error(
        "`{0}` has more than {MAX_ENTRIES} files and folders, or their paths are longer than {paths} \
         MiB together, which exceeds the limit for a checkpoint",
        paths = MAX_PATHS_LEN >> 20
    )]
    TooMany(String),
    /// The folder now has too many entries.
    #[error(
        "`{0}` now has more than {MAX_COMPARED} files and folders, or their paths are longer than {paths} \
         MiB together, which exceeds the limit for `undo`",
        paths = MAX_PATHS_LEN >> 20
    )]
    TooManyNow(String),
    /// The folder is too large.
    #[error("the files in `{0}` exceed {most} GiB, the maximum size of a checkpoint", most = MAX_BYTES >> 30)]
    TooLarge(String),
    /// Another process has the checkpoint open.
    #[error(
        "the checkpoint `{0}` is in use by its run or by another `ironcurtain undo`; end that process first"
    )]
    InUse(String),
    /// The checkpoint does not exist.
    #[error("unknown checkpoint `{0}`; run `ironcurtain undo` to list them")]
    Unknown(String),
    /// A checkpoint record is malformed.
    #[error("`{path}` is damaged: {source}")]
    Damaged {
        /// Path of the record.
        path: PathBuf,
        /// Error from parsing it.
        source: serde_json::Error,
    },
    /// A different folder is now at the path.
    #[error("`{0}` is not the folder from which the checkpoint was created")]
    DifferentFolder(String),
}

/// Returns a function that converts an I/O error on this path.
fn io_error(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> CheckpointError {
    let path = path.into();
    move |source| CheckpointError::Io { path, source }
}
