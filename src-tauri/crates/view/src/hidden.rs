//! Paths that do not exist in the view.
//!
//! - A hidden path is recognized by its inode too, so a hard link to a hidden file, or a hidden folder on another mount of the disk,
//!   is not shown either. A hard link to a file inside a hidden folder is an ordinary file.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::nodes::FileId;

/// Time after which the inodes of hidden paths are read again.
const FRESH: Duration = Duration::from_secs(1);

/// Hidden paths.
#[derive(Debug)]
pub(crate) struct Hidden {
    /// Absolute paths without symlinks.
    paths: Vec<PathBuf>,
    files: Mutex<Option<(Instant, HashSet<FileId>)>>,
}

impl Hidden {
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, files: Mutex::new(None) }
    }

    /// Returns whether the path, relative to the root, is hidden or in a hidden folder.
    pub(crate) fn has_path(&self, path: &Path) -> bool {
        self.paths.iter().any(|hidden| hidden.strip_prefix("/").is_ok_and(|hidden| path.starts_with(hidden)))
    }

    /// Returns whether a hidden path is below this one.
    pub(crate) fn is_below(&self, path: &Path) -> bool {
        self.paths.iter().any(|hidden| hidden.strip_prefix("/").is_ok_and(|hidden| hidden.starts_with(path)))
    }

    /// Returns whether this is the file at a hidden path.
    pub(crate) fn has_file(&self, file: FileId) -> bool {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let known = files.take().filter(|(since, _)| since.elapsed() < FRESH);
        let known = known.unwrap_or_else(|| (Instant::now(), self.read()));
        let is_hidden = known.1.contains(&file);
        *files = Some(known);
        is_hidden
    }

    fn read(&self) -> HashSet<FileId> {
        let facts = self.paths.iter().filter_map(|path| std::fs::symlink_metadata(path).ok());
        facts.map(|facts| FileId::of(&facts)).collect()
    }
}
