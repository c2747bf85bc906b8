//! Open folders: each lists what it contained when it was read from the start.

use std::{
    collections::HashMap,
    ffi::OsString,
    sync::{Arc, Mutex, PoisonError},
};

use rustix::io::Errno;

/// Maximum number of open folders.
const MOST: usize = 1 << 12;

/// Maximum number of entries of one folder that are listed.
pub(crate) const MOST_ENTRIES: usize = 1 << 20;

/// Entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderEntry {
    pub(crate) name: OsString,
    pub(crate) inode: u64,
    /// Type, as in `dirent.d_type`.
    pub(crate) kind: u8,
}

/// All open folders, by handle.
#[derive(Debug, Default)]
pub(crate) struct Directories(Mutex<Handles>);

#[derive(Debug, Default)]
struct Handles {
    snapshots: HashMap<u64, Arc<Vec<FolderEntry>>>,
    last: u64,
}

impl Directories {
    pub(crate) fn add(&self) -> Result<u64, Errno> {
        let mut handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if handles.snapshots.len() >= MOST {
            return Err(Errno::NFILE);
        }
        handles.last += 1;
        let handle = handles.last;
        handles.snapshots.insert(handle, Arc::default());
        Ok(handle)
    }

    /// Returns the entries that were listed last.
    pub(crate) fn listed(&self, handle: u64) -> Result<Arc<Vec<FolderEntry>>, Errno> {
        let handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        handles.snapshots.get(&handle).cloned().ok_or(Errno::BADF)
    }

    /// Stores the entries of an open folder.
    pub(crate) fn list(&self, handle: u64, entries: Vec<FolderEntry>) -> Result<(), Errno> {
        let mut handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *handles.snapshots.get_mut(&handle).ok_or(Errno::BADF)? = Arc::new(entries);
        Ok(())
    }

    pub(crate) fn remove(&self, handle: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).snapshots.remove(&handle);
    }
}
