//! Files that this run created: it may move and remove them without permission.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use crate::nodes::FileId;

/// Maximum number of files that are remembered. Others need permission like any file.
const MOST: usize = 1 << 16;

/// Created files.
#[derive(Debug, Default)]
pub(crate) struct Made(Mutex<HashSet<FileId>>);

impl Made {
    pub(crate) fn add(&self, file: FileId) {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if made.len() < MOST {
            made.insert(file);
        }
    }

    pub(crate) fn has(&self, file: FileId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&file)
    }

    /// Forgets a removed file, whose inode number may be used again.
    pub(crate) fn remove(&self, file: FileId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&file);
    }
}
