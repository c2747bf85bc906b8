//! Files that this run created: it may move and remove them without permission.
//!
//! - The time of creation is part of a file's identity, because another program may remove the file, and its inode number is used
//!   again. On a file system without that time, no file counts as created.

use std::{
    collections::HashSet,
    fs::Metadata,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use crate::nodes::FileId;

/// Maximum number of files that are remembered. Others need permission like any file.
const MOST: usize = 1 << 16;

/// Created files.
#[derive(Debug, Default)]
pub(crate) struct Made(Mutex<HashSet<(FileId, SystemTime)>>);

impl Made {
    pub(crate) fn add(&self, facts: &Metadata) {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if made.len() < MOST {
            made.extend(identity(facts));
        }
    }

    pub(crate) fn has(&self, facts: &Metadata) -> bool {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        identity(facts).is_some_and(|file| made.contains(&file))
    }

    /// Forgets a removed file.
    pub(crate) fn remove(&self, facts: &Metadata) {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        identity(facts).iter().for_each(|file| _ = made.remove(file));
    }
}

fn identity(facts: &Metadata) -> Option<(FileId, SystemTime)> {
    Some((FileId::of(facts), facts.created().ok()?))
}
