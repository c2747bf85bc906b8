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

use crate::{nodes::FileId, path_tree::PathTree};

/// Time after which the inodes of hidden paths are looked up again.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Hidden paths and their inodes. All paths are relative to the root.
#[derive(Debug)]
pub(crate) struct Hidden {
    /// Hidden paths without symlinks.
    paths: Vec<PathBuf>,
    marks: PathTree<PathMarks>,
    files: Mutex<Option<(Instant, HashSet<FileId>)>>,
}

/// Properties of a path.
#[derive(Debug, Default)]
struct PathMarks {
    is_hidden: bool,
    /// `true` if the path or a path below it is hidden.
    has_hidden: bool,
    /// `true` for mount points, which are visible even inside a hidden folder, and all folders above them.
    is_above_mount_point: bool,
}

impl Hidden {
    /// Creates the collection from absolute paths.
    pub(crate) fn new(paths: &[PathBuf], mount_points: &[PathBuf]) -> Self {
        let mut marks = PathTree::<PathMarks>::default();
        for path in relative(paths) {
            let hidden = marks.update(path, |above| above.has_hidden = true);
            (hidden.is_hidden, hidden.has_hidden) = (true, true);
        }
        for path in relative(mount_points) {
            marks.update(path, |above| above.is_above_mount_point = true).is_above_mount_point = true;
        }
        Self { paths: relative(paths).map(Path::to_owned).collect(), marks, files: Mutex::new(None) }
    }

    /// Returns `true` if `path`, relative to the root, is a mount point or above one.
    pub(crate) fn is_above_mount_point(&self, path: &Path) -> bool {
        self.marks.get(path).is_some_and(|marks| marks.is_above_mount_point)
    }

    /// Returns `true` if `path`, relative to the root, is hidden or below a hidden path.
    pub(crate) fn contains_path(&self, path: &Path) -> bool {
        self.marks.along(path).any(|marks| marks.is_hidden)
    }

    /// Returns `true` if `path` is hidden or contains a hidden path.
    pub(crate) fn has_hidden_below(&self, path: &Path) -> bool {
        self.marks.get(path).is_some_and(|marks| marks.has_hidden)
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
