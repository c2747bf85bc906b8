//! Files that this run created or moved aside: it may move and remove them without a further question.
//!
//! - The time of creation is part of a file's identity, because another program may remove the file, and its inode number is used
//!   again. On a file system without that time, no file counts as created.

use std::{
    collections::HashMap,
    fs::Metadata,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use crate::nodes::FileId;

/// Maximum number of files that are remembered. Others need permission like any file.
const MOST: usize = 1 << 16;

/// Origin of such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The run created it.
    Created,
    /// The run created it after the user had allowed once to change this file, which it may replace.
    CreatedFor(PathBuf, FileId),
    /// The run moved this file aside, to replace it.
    MovedAside(PathBuf),
    /// As [`MovedAside`](Self::MovedAside), when the user had allowed once to change it.
    MovedAsideOnce,
}

/// Such files.
#[derive(Debug, Default)]
pub(crate) struct Made(Mutex<HashMap<(FileId, SystemTime), Origin>>);

impl Made {
    fn lock(&self) -> MutexGuard<'_, HashMap<(FileId, SystemTime), Origin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, facts: &Metadata, origin: Origin) {
        let mut made = self.lock();
        if made.len() < MOST {
            made.extend(identity(facts).map(|file| (file, origin)));
        }
    }

    pub(crate) fn origin(&self, facts: &Metadata) -> Option<Origin> {
        self.lock().get(&identity(facts)?).cloned()
    }

    /// Returns whether the run created the file.
    pub(crate) fn has(&self, facts: &Metadata) -> bool {
        self.origin(facts).is_some_and(|origin| matches!(origin, Origin::Created | Origin::CreatedFor(..)))
    }

    /// Forgets a file.
    pub(crate) fn remove(&self, facts: &Metadata) {
        let mut made = self.lock();
        identity(facts).iter().for_each(|file| _ = made.remove(file));
    }
}

fn identity(facts: &Metadata) -> Option<(FileId, SystemTime)> {
    Some((FileId::of(facts), facts.created().ok()?))
}
