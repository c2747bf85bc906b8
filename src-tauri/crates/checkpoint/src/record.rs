//! Stored records of a checkpoint: the folder's state before the run, and the differences after it.

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Bound;

/// State of the folder before the run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Before {
    #[serde(flatten)]
    pub(crate) info: CheckpointInfo,
    /// Device and inode number of the folder.
    pub(crate) identity: (u64, u64),
    /// Id of the file system, or `None` in a checkpoint of an older version. Unlike the device number, it usually survives
    /// a restart of the computer.
    #[serde(default)]
    pub(crate) file_system: Option<u64>,
    /// Copied entries, keyed by the path relative to the folder.
    pub(crate) entries: BTreeMap<String, CopiedEntry>,
    pub(crate) not_copied: Vec<NotCopied>,
}

/// Folder and time of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointInfo {
    /// Path of the folder.
    pub folder: String,
    /// Time at which the folder was copied, in milliseconds since the Unix epoch.
    pub taken_ms: u64,
}

/// Path that a checkpoint does not cover, including everything below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NotCopied {
    /// Path relative to the folder. For a name that is not UTF-8, the path of the folder that contains it.
    pub path: String,
    /// Reason the path is not covered.
    pub why: String,
    /// `true` if only one entry in the folder `path` is not covered, because its name is not UTF-8.
    pub is_name: bool,
}

/// File, symbolic link or folder that a checkpoint can restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CopiedEntry {
    Folder {
        mode: u32,
    },
    /// A file, with the number of its copy and its original attributes.
    File {
        mode: u32,
        /// Id of the group, or `None` in a checkpoint of an older version.
        #[serde(default)]
        group: Option<u32>,
        copy: usize,
        stamp: Stamp,
    },
    Link {
        target: String,
    },
}

/// State of the differing paths when the run ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct After {
    pub(crate) left: BTreeMap<String, StateAfterRun>,
    pub(crate) not_copied: Vec<NotCopied>,
}

/// State in which a run left a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StateAfterRun {
    Nothing,
    Folder {
        mode: u32,
    },
    File {
        mode: u32,
        sha256: String,
    },
    /// A file or link that was not read, because it exceeded the limit or could not be read.
    #[serde(alias = "Large")]
    Unread {
        mode: u32,
        stamp: Stamp,
    },
    Link {
        target: String,
    },
    /// A pipe, socket or device.
    Other,
}

/// Identity and times of a file. Programs cannot set the inode change time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    inode: u64,
    size: i64,
    modified: (i64, u64),
    /// Inode change time, which a rename also changes.
    changed: (i64, u64),
}

impl Stamp {
    pub(crate) fn from_stat(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

impl Stamp {
    /// Returns the file's size in bytes.
    pub(crate) fn size(&self) -> u64 {
        u64::try_from(self.size).unwrap_or_default()
    }

    /// Returns the identity of a folder without its times, which change with its entries.
    pub(crate) fn from_folder_stat(stat: &Stat) -> Self {
        Self { inode: stat.st_ino, size: 0, modified: (0, 0), changed: (0, 0) }
    }

    /// Returns the stamp without the inode change time, which a rename changes.
    pub(crate) fn without_change(self) -> Self {
        Self { changed: (0, 0), ..self }
    }
}

impl Before {
    /// Returns `true` if this is the folder that was copied. The path is already known to be the same.
    pub(crate) fn is_folder(&self, (device, inode): (u64, u64), file_system: u64) -> bool {
        inode == self.identity.1
            && (device == self.identity.0 || file_system != 0 && self.file_system == Some(file_system))
    }

    /// Returns the number of a file's copy, or `None` if the path is not a copied file.
    pub(crate) fn copy_of(&self, path: &str) -> Option<usize> {
        match self.entries.get(path) {
            Some(CopiedEntry::File { copy, .. }) => Some(*copy),
            Some(CopiedEntry::Folder { .. } | CopiedEntry::Link { .. }) | None => None,
        }
    }
}

impl NotCopied {
    pub(crate) fn from_error(path: String, error: Errno) -> Self {
        let why = match error {
            Errno::XDEV => "it is on another file system".to_owned(),
            Errno::AGAIN => "it kept changing while it was copied".to_owned(),
            error => io::Error::from(error).to_string(),
        };
        Self { path, why, is_name: false }
    }

    pub(crate) fn special(path: String) -> Self {
        Self { path, why: "it is a pipe, a socket or a device".to_owned(), is_name: false }
    }

    pub(crate) fn not_utf8(folder: &str, name: &[u8]) -> Self {
        let why = format!("the name `{}` in it is not UTF-8", name.escape_ascii());
        Self { path: folder.to_owned(), why, is_name: true }
    }
}

/// Set of uncovered paths, each including everything below it. No path in the set is below another.
pub(crate) struct Uncovered(BTreeSet<String>);

impl Uncovered {
    pub(crate) fn new(all: &[NotCopied]) -> Self {
        let all: BTreeSet<String> =
            all.iter().filter(|one| !one.is_name).map(|one| sort_key(&one.path)).collect();
        let mut outer = Self(BTreeSet::new());
        for one in all {
            if !outer.contains_key_or_ancestor(&one) {
                outer.0.insert(one);
            }
        }
        outer
    }

    pub(crate) fn covers(&self, path: &str) -> bool {
        self.contains_key_or_ancestor(&sort_key(path))
    }

    fn contains_key_or_ancestor(&self, key: &str) -> bool {
        // Only the closest preceding path can be an ancestor, because no path in the set is below another.
        let last = self.0.range::<str, _>((Bound::Unbounded, Bound::Included(key))).next_back();
        let rest = last.and_then(|last| key.strip_prefix(last.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\0'))
    }
}

/// Returns a sort key that places a folder directly before everything below it.
fn sort_key(path: &str) -> String {
    path.replace('/', "\0")
}

/// Returns a file's permission bits.
pub(crate) fn permissions(stat: &Stat) -> u32 {
    stat.st_mode & 0o7777
}

/// Returns a file's type.
pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_an_uncovered_path_are_uncovered() {
        let all = ["a/b", "a/b/c", "a/b-c", "d", "e/f"].map(|path| NotCopied::special(path.to_owned()));
        let name = NotCopied::not_utf8("g", b"\xff");
        let uncovered = Uncovered::new(&[all.as_slice(), &[name]].concat());
        for path in ["a/b", "a/b/c", "a/b/c/d", "a/b/x", "a/b-c", "a/b-c/x", "d", "d/x/y", "e/f", "e/f/x"] {
            assert!(uncovered.covers(path), "{path}");
        }
        for path in ["", "a", "a/bc", "a/b-", "a/b-d", "a/c", "dd", "d-x", "e", "e/fx", "g", "g/x"] {
            assert!(!uncovered.covers(path), "{path}");
        }
    }
}
