//! Counts the questions about files in each folder.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Number of questions about files in one folder after which the folder becomes the first offer.
const FOLDER_THRESHOLD: u32 = 2;

/// Maximum number of folders for which questions are counted.
const MAX_FOLDERS: usize = 10_000;

/// Number of questions asked so far about files in each folder.
#[derive(Debug, Default)]
pub(super) struct AskedFolders {
    /// Counts by the hash of the folder's path.
    counts: Mutex<HashMap<u64, u32>>,
    hasher: RandomState,
}

impl AskedFolders {
    /// Counts a question. Returns `true` if there have been enough questions about the folder to offer the folder
    /// first.
    pub(super) fn count_question(&self, path: &str) -> bool {
        let Some(folder) = Path::new(path).parent() else { return false };
        let folder = self.hasher.hash_one(folder);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MAX_FOLDERS && !counts.contains_key(&folder) {
            counts.clear();
        }
        let count = counts.entry(folder).or_default();
        *count += 1;
        *count > FOLDER_THRESHOLD
    }
}
