//! Copies a folder before a run, finds later changes, and restores the folder.
//!
//! - Follows no symbolic link and enters no other file system: every operation opens its path beneath the folder.
//! - Runs no program. Paths below `.git` are marked, so that a caller can exclude them.
//! - INVARIANT: a path is changed only if it is still in the state that the comparison found.
//! - Not copied, but reported: pipes, sockets, devices, unreadable files, names that are not UTF-8, other file
//!   systems. Owners, timestamps, extended attributes and additional hard links are not restored.

#![cfg(target_os = "linux")]

mod compare;
mod record;
mod restore;
mod store;
mod take;
mod tree;

pub use compare::{Change, Changes, DifferenceKind};
pub use record::{CheckpointInfo, NotCopied};
pub use restore::{NotRestored, Restored};
pub use store::{Checkpoint, Checkpoints};

use std::io;
use std::path::PathBuf;

/// Maximum number of files and folders in a checkpoint.
pub const MOST_ENTRIES: usize = 200_000;

/// Maximum number of files and folders that are compared with a checkpoint.
pub const MOST_COMPARED: usize = 5 * MOST_ENTRIES;

/// Maximum size of a checkpoint. A file that shares its blocks with the original counts too. A comparison reads at most as much of the
/// files that are new or have another size; the others are identified by their times.
pub const MOST_BYTES: u64 = 4 << 30;

/// Number of checkpoints to keep. A new checkpoint removes the oldest.
pub const KEPT: usize = 10;

/// Reason why a checkpoint operation failed.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file of the checkpoint, or the folder itself, cannot be used.
    #[error("failed to use `{path}`: {source}")]
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
    #[error("`{0}` has more than {MOST_ENTRIES} files and folders; a checkpoint has at most that many")]
    TooMany(String),
    /// The folder now has too many entries.
    #[error("`{0}` now has more than {MOST_COMPARED} files and folders; `undo` compares at most that many")]
    TooManyNow(String),
    /// The folder is too large.
    #[error("the files in `{0}` have more than {most} GiB together; a checkpoint has at most that much", most = MOST_BYTES >> 30)]
    TooLarge(String),
    /// Another process has the checkpoint open.
    #[error("the checkpoint `{0}` is in use by its run or another `ironcurtain undo`; end it first")]
    InUse(String),
    /// There is no such checkpoint.
    #[error("there is no checkpoint `{0}`; `ironcurtain undo` lists them")]
    Unknown(String),
    /// A record of the checkpoint is damaged.
    #[error("`{path}` is damaged: {source}")]
    Damaged {
        /// The record.
        path: PathBuf,
        /// Error from parsing it.
        source: serde_json::Error,
    },
    /// A different folder is now at the path.
    #[error("`{0}` is not the folder of the checkpoint any more")]
    OtherFolder(String),
}

/// Returns a function that adds the path to an error.
fn at(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> CheckpointError {
    let path = path.into();
    move |source| CheckpointError::Io { path, source }
}
