//! Open folders, each with a snapshot of its entries. Reading a folder from the start takes a new snapshot.

use std::{
    collections::HashMap,
    ffi::OsString,
    sync::{Arc, Mutex, PoisonError},
};

use rustix::io::Errno;

/// Maximum number of open folders.
const MAX_COUNT: usize = 1 << 12;

/// Maximum number of listed entries per folder.
pub(crate) const MAX_ENTRIES: usize = 1 << 20;

/// Maximum memory used by all snapshots, in bytes: 256 MiB.
const MAX_MEMORY: usize = 256 << 20;

/// Directory entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderEntry {
    pub(crate) name: OsString,
    pub(crate) inode: u64,
    /// File type, as in `dirent.d_type`.
    pub(crate) kind: u8,
}

/// All open folders, by file handle.
#[derive(Debug, Default)]
pub(crate) struct Directories(Mutex<Handles>);

#[derive(Debug, Default)]
struct Handles {
    snapshots: HashMap<u64, Snapshot>,
    last: u64,
}

#[derive(Debug, Default)]
struct Snapshot {
    entries: Arc<Vec<FolderEntry>>,
    /// Memory used by the entries, in bytes.
    memory: usize,
}

impl Directories {
    pub(crate) fn add(&self) -> Result<u64, Errno> {
        let mut handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if handles.snapshots.len() >= MAX_COUNT {
            return Err(Errno::NFILE);
        }
        handles.last += 1;
        let handle = handles.last;
        handles.snapshots.insert(handle, Snapshot::default());
        Ok(handle)
    }

    /// Returns the entries of the latest snapshot.
    pub(crate) fn snapshot(&self, handle: u64) -> Result<Arc<Vec<FolderEntry>>, Errno> {
        let handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        handles.snapshots.get(&handle).map(|snapshot| snapshot.entries.clone()).ok_or(Errno::BADF)
    }

    /// Stores a new snapshot for an open folder.
    pub(crate) fn set_snapshot(&self, handle: u64, entries: Vec<FolderEntry>) -> Result<(), Errno> {
        let memory = entries.iter().map(|entry| size_of::<FolderEntry>() + entry.name.len()).sum();
        let mut handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = handles.snapshots.iter().filter(|(other, _)| **other != handle);
        let kept: usize = kept.map(|(_, snapshot)| snapshot.memory).sum();
        if kept + memory > MAX_MEMORY {
            return Err(Errno::NFILE);
        }
        let snapshot = Snapshot { entries: Arc::new(entries), memory };
        *handles.snapshots.get_mut(&handle).ok_or(Errno::BADF)? = snapshot;
        Ok(())
    }

    pub(crate) fn remove(&self, handle: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).snapshots.remove(&handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_all_snapshots_is_bounded() {
        let directories = Directories::default();
        let entries = || {
            let entry = FolderEntry { name: "x".repeat(255).into(), inode: 1, kind: 8 };
            vec![entry; MAX_MEMORY / 4 / (255 + size_of::<FolderEntry>())]
        };
        let handles: Vec<u64> = (0..5).map(|_| directories.add().unwrap()).collect();
        handles[..4].iter().for_each(|handle| directories.set_snapshot(*handle, entries()).unwrap());
        assert_eq!(directories.set_snapshot(handles[4], entries()), Err(Errno::NFILE));
        // Reading a folder again replaces its own snapshot.
        directories.set_snapshot(handles[0], entries()).unwrap();
        directories.remove(handles[0]);
        directories.set_snapshot(handles[4], entries()).unwrap();
    }
}
