//! The place where a log is kept, and for how long.

use crate::Written;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The size at which a file of the log is closed and another one begun, unless the person says otherwise.
const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The time for which entries are kept, unless the person says otherwise: a year.
const KEEP: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The place of a log, and how much of it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeping {
    /// The directory of its files.
    pub dir: PathBuf,
    /// The file that knows the newest entry. It lies elsewhere, so that an older copy of the directory shows. Without one, a
    /// log that was cut while nobody wrote it is not noticed.
    pub head: Option<PathBuf>,
    /// The newest entry as it is known elsewhere: it counts where the head file does not name one.
    pub elsewhere: Option<Written>,
    /// The size at which another file is begun.
    pub file_bytes: u64,
    /// The age at which entries are removed.
    pub keep: Duration,
}

impl Keeping {
    /// A log in this directory, kept as long as the person does not say otherwise.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_path_buf(), head: None, elsewhere: None, file_bytes: FILE_BYTES, keep: KEEP }
    }
}
