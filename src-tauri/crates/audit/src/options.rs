//! Location and retention settings of a log.

use crate::ChainPosition;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default size in bytes at which a log file is closed and a new one is started.
const DEFAULT_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Default retention time: one year.
const DEFAULT_RETENTION: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Location and retention settings of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// Directory of the log files.
    pub dir: PathBuf,
    /// Head file, stored outside `dir` so that an older copy of `dir` is detected. If it is `None`, truncation is not
    /// detected while no process has the log open.
    pub head: Option<PathBuf>,
    /// Newest entry according to another source. Used if the head file does not identify one.
    pub known_entry: Option<ChainPosition>,
    /// Size in bytes at which a new log file is started.
    pub file_bytes: u64,
    /// Age at which entries are removed.
    pub retention: Duration,
}

impl LogOptions {
    /// Creates the default settings for a log in `dir`.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_path_buf(),
            head: None,
            known_entry: None,
            file_bytes: DEFAULT_FILE_BYTES,
            retention: DEFAULT_RETENTION,
        }
    }
}
