//! Files that the run has open, each with its real file and the permission under which it was opened.
//!
//! - Revoking a permission takes two steps. The file first refuses new writes. After the kernel has written back the
//!   file's pages, the file refuses all access.

use std::{
    collections::HashMap,
    fs::File,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};

use rustix::io::Errno;

use crate::gate::WantedAccess;

/// Maximum number of open files.
const MAX_COUNT: usize = 1 << 16;

/// File that the run has opened.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    pub(crate) node: u64,
    access: WantedAccess,
    /// `true` if the user allowed only this open. The permission then ends when the file is closed.
    is_once: bool,
    /// `true` if the descriptor is open for writing.
    is_writable: bool,
    state: AtomicU8,
}

const USABLE: u8 = 0;
const WRITE_BACK_ONLY: u8 = 1;
const REVOKED: u8 = 2;

impl OpenFile {
    pub(crate) fn new(
        file: File,
        node: u64,
        (access, is_once): (WantedAccess, bool),
        is_writable: bool,
    ) -> Self {
        Self { file, node, access, is_once, is_writable, state: AtomicU8::new(USABLE) }
    }

    /// Returns `true` if the file is open for writing.
    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Returns `true` if the permission under which the file was opened is still valid.
    pub(crate) fn is_permitted(&self, keeps: impl Fn(&WantedAccess) -> bool) -> bool {
        self.is_once || keeps(&self.access)
    }

    /// Returns the file for reading its content or attributes.
    pub(crate) fn to_read(&self) -> Result<&File, Errno> {
        if self.state.load(Ordering::Acquire) == REVOKED { Err(Errno::IO) } else { Ok(&self.file) }
    }

    /// Returns the file for writing. `from_cache` is `true` if the kernel is writing back a page that was changed
    /// earlier.
    pub(crate) fn to_write(&self, from_cache: bool) -> Result<&File, Errno> {
        match self.state.load(Ordering::Acquire) {
            USABLE => Ok(&self.file),
            WRITE_BACK_ONLY if from_cache => Ok(&self.file),
            _ => Err(Errno::IO),
        }
    }

    /// Refuses new writes, but still accepts pages that the kernel writes back.
    pub(crate) fn stop_writes(&self) {
        self.state.fetch_max(WRITE_BACK_ONLY, Ordering::AcqRel);
    }

    /// Refuses all access.
    pub(crate) fn revoke(&self) {
        self.state.store(REVOKED, Ordering::Release);
    }
}

/// Open files by handle.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles(Mutex<Handles>);

#[derive(Debug, Default)]
struct Handles {
    files: HashMap<u64, Arc<OpenFile>>,
    last: u64,
}

impl OpenFiles {
    fn lock(&self) -> MutexGuard<'_, Handles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a file. Returns its handle and the shared file.
    pub(crate) fn add(&self, file: OpenFile) -> Result<(u64, Arc<OpenFile>), Errno> {
        let mut handles = self.lock();
        if handles.files.len() >= MAX_COUNT {
            return Err(Errno::NFILE);
        }
        handles.last += 1;
        let handle = handles.last;
        let file = Arc::new(file);
        handles.files.insert(handle, file.clone());
        Ok((handle, file))
    }

    pub(crate) fn get(&self, handle: u64) -> Result<Arc<OpenFile>, Errno> {
        self.lock().files.get(&handle).cloned().ok_or(Errno::BADF)
    }

    /// Removes a handle and returns its node.
    pub(crate) fn remove(&self, handle: u64) -> Result<u64, Errno> {
        let removed = self.lock().files.remove(&handle);
        // Closes the file after the lock is released.
        removed.map(|file| file.node).ok_or(Errno::BADF)
    }

    /// Returns a file that is open for writing on this node and has not been revoked.
    pub(crate) fn writable_by_node(&self, node: u64) -> Option<Arc<OpenFile>> {
        let is_usable =
            |file: &&Arc<OpenFile>| file.node == node && file.is_writable() && file.to_write(false).is_ok();
        self.lock().files.values().find(is_usable).cloned()
    }

    /// Returns a file open on this node, even if its name was removed.
    pub(crate) fn by_node(&self, node: u64) -> Option<Arc<OpenFile>> {
        self.lock().files.values().find(|file| file.node == node).cloned()
    }

    /// Returns the files whose permission has been revoked.
    pub(crate) fn revoked(&self, keeps: impl Fn(&WantedAccess) -> bool) -> Vec<Arc<OpenFile>> {
        let handles = self.lock();
        let files = handles.files.values().filter(|file| !file.is_permitted(&keeps));
        files.cloned().collect()
    }
}
