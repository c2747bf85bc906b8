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
pub(crate) struct Made(Mutex<HashMap<(FileId, SystemTime), Origin>>);

impl Made {
    fn lock(&self) -> MutexGuard<'_, HashMap<(FileId, SystemTime), Origin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, facts: &Metadata, origin: Origin) {
        let mut made = self.lock();
        if made.len() < MAX_COUNT {
            made.extend(identity(facts).map(|file| (file, origin)));
        }
    }

    pub(crate) fn origin(&self, facts: &Metadata) -> Option<Origin> {
        self.lock().get(&identity(facts)?).cloned()
    }

    /// Returns `true` if the run created the file.
    pub(crate) fn has(&self, facts: &Metadata) -> bool {
        self.origin(facts).is_some_and(|origin| matches!(origin, Origin::Created | Origin::CreatedFor(..)))
    }

    /// Removes a file's recorded origin.
    pub(crate) fn remove(&self, facts: &Metadata) {
        let mut made = self.lock();
        identity(facts).iter().for_each(|file| _ = made.remove(file));
    }
}

fn identity(facts: &Metadata) -> Option<(FileId, SystemTime)> {
    Some((FileId::of(facts), facts.created().ok()?))
}
