//! Files that the run created or moved aside. The run may move and remove them without asking again.
//!
//! - A file's identity includes its creation time, because inode numbers are reused. On file systems without creation
//!   times, no file counts as created by the run.

use std::{
    collections::HashMap,
    fs::Metadata,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use crate::nodes::FileId;

/// Maximum number of tracked files. Changing a file that the run created beyond this limit requires permission.
const MAX_COUNT: usize = 1 << 16;

/// Reason the run is allowed to move or remove a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The run created the file.
    Created,
    /// The run created the file after the user had allowed one change to the given file. The new file may replace the
    /// given file.
    CreatedFor(PathBuf, FileId),
    /// The run moved the file aside from this path in order to replace it.
    MovedAside(PathBuf),
    /// Like [`MovedAside`](Self::MovedAside), but the user had allowed only one change to the file.
    MovedAsideOnce,
}

/// Origins of files that the run created or moved aside.
#[derive(Debug, Default)]
pub(crate) struct CreatedFiles(Mutex<HashMap<(FileId, SystemTime), Origin>>);

impl CreatedFiles {
    fn lock(&self) -> MutexGuard<'_, HashMap<(FileId, SystemTime), Origin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, stat: &Metadata, origin: Origin) {
        let mut origins = self.lock();
        if origins.len() < MAX_COUNT {
            origins.extend(identity(stat).map(|file| (file, origin)));
        }
    }

    pub(crate) fn origin(&self, stat: &Metadata) -> Option<Origin> {
        self.lock().get(&identity(stat)?).cloned()
    }

    /// Returns `true` if the run created the file.
    pub(crate) fn contains(&self, stat: &Metadata) -> bool {
        self.origin(stat).is_some_and(|origin| matches!(origin, Origin::Created | Origin::CreatedFor(..)))
    }

    /// Removes a file's recorded origin.
    pub(crate) fn remove(&self, stat: &Metadata) {
        let mut origins = self.lock();
        identity(stat).iter().for_each(|file| _ = origins.remove(file));
    }
}

fn identity(stat: &Metadata) -> Option<(FileId, SystemTime)> {
    Some((FileId::new(stat), stat.created().ok()?))
}
