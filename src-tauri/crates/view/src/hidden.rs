//! Paths that are hidden in the view. They appear to be missing.
//!
//! - A hidden path is also recognized by its inode so that hard links to a hidden file and other mounts of a hidden
//!   folder are also hidden. A hard link to a file inside a hidden folder is not hidden.
//! - A mount point inside a hidden folder is visible, and so are the folders above it. Everything else in these folders
//!   is hidden.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::nodes::FileId;

/// Time after which the inodes of hidden paths are looked up again.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Hidden paths and their inodes. All paths are relative to the root, and are found by their hash: every request looks for
/// its path and the folders above it.
#[derive(Debug)]
pub(crate) struct Hidden {
    /// Hidden paths without symlinks.
    paths: HashSet<PathBuf>,
    /// Hidden paths and all folders above them.
    above_hidden: HashSet<PathBuf>,
    /// Mount points, which are visible even inside a hidden folder, and all folders above them.
    above_mount_points: HashSet<PathBuf>,
    files: Mutex<Option<(Instant, HashSet<FileId>)>>,
}

impl Hidden {
    /// Creates the collection from absolute paths.
    pub(crate) fn new(paths: &[PathBuf], mount_points: &[PathBuf]) -> Self {
        Self {
            paths: relative(paths).map(Path::to_owned).collect(),
            above_hidden: with_folders_above(paths),
            above_mount_points: with_folders_above(mount_points),
            files: Mutex::new(None),
        }
    }

    /// Returns `true` if `path`, relative to the root, is a mount point or above one.
    pub(crate) fn is_above_mount_point(&self, path: &Path) -> bool {
        self.above_mount_points.contains(path)
    }

    /// Returns `true` if `path`, relative to the root, is hidden or below a hidden path.
    pub(crate) fn contains_path(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.paths.contains(above))
    }

    /// Returns `true` if `path` is hidden or contains a hidden path.
    pub(crate) fn has_hidden_below(&self, path: &Path) -> bool {
        self.above_hidden.contains(path)
    }

    /// Returns `true` if the file is at a hidden path.
    pub(crate) fn contains_file(&self, file: FileId) -> bool {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = files.take().filter(|(since, _)| since.elapsed() < REFRESH_INTERVAL);
        let cached = cached.unwrap_or_else(|| (Instant::now(), self.read()));
        let is_hidden = cached.1.contains(&file);
        *files = Some(cached);
        is_hidden
    }

    fn read(&self) -> HashSet<FileId> {
        let paths = self.paths.iter().map(|path| Path::new("/").join(path));
        let stat = paths.filter_map(|path| std::fs::symlink_metadata(path).ok());
        stat.map(|stat| FileId::new(&stat)).collect()
    }
}

fn relative(paths: &[PathBuf]) -> impl Iterator<Item = &Path> {
    paths.iter().filter_map(|path| path.strip_prefix("/").ok())
}

/// Returns absolute paths and all folders above them, relative to the root.
fn with_folders_above(paths: &[PathBuf]) -> HashSet<PathBuf> {
    relative(paths).flat_map(Path::ancestors).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_makes_only_itself_and_the_folders_above_it_visible() {
        let hidden = Hidden::new(&["/ours".into()], &["/ours/sessions/a/sandbox".into()]);
        for visible in ["ours", "ours/sessions", "ours/sessions/a", "ours/sessions/a/sandbox"] {
            assert!(hidden.is_above_mount_point(Path::new(visible)), "{visible}");
        }
        for other in ["ours/audit", "ours/sessions/b", "ours/sessions/a/log", "ours/sessions/a/sandbox/x"] {
            assert!(
                hidden.contains_path(Path::new(other)) && !hidden.is_above_mount_point(Path::new(other)),
                "{other}"
            );
        }
    }
}
