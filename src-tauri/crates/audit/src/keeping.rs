//! Location and retention of a log.

use crate::Written;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default size at which a log file is closed and a new one started.
const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Default retention time: one year.
const KEEP: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Location and retention settings of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeping {
    /// Directory of the log files.
    pub dir: PathBuf,
    /// Head file with the newest entry. It is stored elsewhere, to detect an older copy of the
    /// directory. Without it, truncation goes undetected if no process is writing the log.
    pub head: Option<PathBuf>,
    /// Newest entry as known from another source; used if the head file does not name one.
    pub elsewhere: Option<Written>,
    /// Size in bytes at which a new file is started.
    pub file_bytes: u64,
    /// Age at which entries are removed.
    pub keep: Duration,
}

impl Keeping {
    /// Creates the default settings for a directory.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_path_buf(), head: None, elsewhere: None, file_bytes: FILE_BYTES, keep: KEEP }
    }
}
