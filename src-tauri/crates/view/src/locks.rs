//! The run's file locks. They are taken on the real files so that programs outside the sandbox respect them.
//!
//! - Each pair of file and lock owner has its own descriptor for range locks. The owners are processes of the run, but
//!   the kernel regards this process as the owner of all locks.
//! - Waiting locks block no thread. One thread retries them at short intervals, and whenever the run releases a lock.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use nix::{
    fcntl::{FcntlArg, fcntl},
    libc,
};
use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
};

use crate::{
    nodes::FileId,
    open_files::OpenFile,
    real_tree::{errno, metadata},
    wire::{LockKind, LockRange},
};

/// Interval at which waiting locks are retried.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum number of descriptors that hold range locks.
const MAX_DESCRIPTORS: usize = 1 << 12;

/// Maximum number of waiting lock requests.
const MAX_WAITING: usize = 1 << 12;

/// All locks and pending lock requests of a view.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    descriptors: HashMap<(FileId, u64), OwnerDescriptor>,
    waiting: Vec<LockRequest>,
    is_closed: bool,
}

#[derive(Debug)]
struct OwnerDescriptor {
    file: Arc<File>,
    /// Handle of the open file through which the owner last locked the file.
    handle: u64,
}

/// Lock request that is waiting for another lock to be released.
#[derive(Clone, Debug)]
pub(crate) struct LockRequest {
    /// Unique number of the FUSE request.
    pub(crate) unique: u64,
    pub(crate) open: Arc<OpenFile>,
    pub(crate) lock: LockRange,
}

impl Locks {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets or releases a lock without waiting.
    ///
    /// # Errors
    /// Returns [`Errno::AGAIN`] if another owner or program holds a conflicting lock.
    pub(crate) fn set(&self, open: &OpenFile, lock: LockRange) -> Result<(), Errno> {
        let file = open.to_read()?;
        if lock.is_whole {
            flock(file, operation(lock.kind))?;
        } else {
            let key = (FileId::new(&metadata(file)?), lock.owner);
            let Some(held) = self.descriptor(key, file, lock)? else { return Ok(()) };
            fcntl(&*held, FcntlArg::F_OFD_SETLK(&range(lock))).map_err(from_nix)?;
        }
        if lock.kind == LockKind::None {
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Returns the first byte, the last byte and the `l_type` of a conflicting lock. The `l_type` is `F_UNLCK` if no
    /// lock conflicts.
    pub(crate) fn conflict(&self, open: &OpenFile, lock: LockRange) -> Result<((u64, u64), u32), Errno> {
        let file = open.to_read()?;
        let key = (FileId::new(&metadata(file)?), lock.owner);
        let mut found = range(lock);
        // Without a descriptor, this is an unlock request, which conflicts with nothing.
        if let Some(held) = self.descriptor(key, file, lock)? {
            fcntl(&*held, FcntlArg::F_OFD_GETLK(&mut found)).map_err(from_nix)?;
        }
        let start = u64::try_from(found.l_start).unwrap_or(0);
        let end = match u64::try_from(found.l_len) {
            Ok(length @ 1..) => start.saturating_add(length - 1),
            Ok(0) | Err(_) => i64::MAX.cast_unsigned(),
        };
        Ok(((start, end), u32::try_from(found.l_type).unwrap_or(0)))
    }

    /// Returns the descriptor for an owner's range locks on a file. Creates it if it does not exist, unless `lock` is
    /// an unlock.
    fn descriptor(
        &self,
        key: (FileId, u64),
        file: &File,
        lock: LockRange,
    ) -> Result<Option<Arc<File>>, Errno> {
        let mut state = self.lock();
        if let Some(held) = state.descriptors.get_mut(&key) {
            held.handle = lock.handle;
            return Ok(Some(held.file.clone()));
        }
        if lock.kind == LockKind::None {
            return Ok(None);
        }
        if state.descriptors.len() >= MAX_DESCRIPTORS {
            return Err(Errno::NOLCK);
        }
        let opened = Arc::new(reopen(file)?);
        state.descriptors.insert(key, OwnerDescriptor { file: opened.clone(), handle: lock.handle });
        Ok(Some(opened))
    }

    /// Releases all of an owner's range locks on a file. POSIX requires this when the owner closes any descriptor of
    /// the file.
    pub(crate) fn release(&self, file: FileId, owner: u64) {
        if self.lock().descriptors.remove(&(file, owner)).is_some() {
            self.changed.notify_all();
        }
    }

    /// Releases the range locks last set through `handle`, which was closed. The lock on the whole file must already be
    /// released.
    pub(crate) fn release_handle(&self, handle: u64) {
        let mut state = self.lock();
        state.descriptors.retain(|_, descriptor| descriptor.handle != handle);
        // Most files are closed while no lock is waiting. The lock thread stays asleep then.
        if !state.waiting.is_empty() {
            self.changed.notify_all();
        }
    }

    /// Adds a lock request to the waiting requests.
    pub(crate) fn wait(&self, request: LockRequest) -> Result<(), Errno> {
        let mut state = self.lock();
        if state.waiting.len() >= MAX_WAITING {
            return Err(Errno::NOLCK);
        }
        state.waiting.push(request);
        self.changed.notify_all();
        Ok(())
    }

    /// Removes a waiting lock request. Returns `false` if it is no longer waiting.
    pub(crate) fn remove_waiting(&self, unique: u64) -> bool {
        let mut state = self.lock();
        let before = state.waiting.len();
        state.waiting.retain(|request| request.unique != unique);
        state.waiting.len() < before
    }

    /// Blocks until lock requests are waiting, and returns all of them. Returns `None` after the view has closed.
    pub(crate) fn next_waiting(&self) -> Option<Vec<LockRequest>> {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.is_closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_closed {
            return None;
        }
        Some(state.waiting.clone())
    }

    /// Waits until the run releases a lock or [`RETRY_INTERVAL`] has passed.
    pub(crate) fn wait_before_retry(&self) {
        let state = self.lock();
        drop(self.changed.wait_timeout(state, RETRY_INTERVAL));
    }

    /// Makes [`next_waiting`](Self::next_waiting) return `None`.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }
}

/// Reopens a file. Opens it for writing as well if the user has write access, because exclusive range locks require
/// that.
fn reopen(file: &File) -> Result<File, Errno> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let open = |writes| OpenOptions::new().read(true).write(writes).custom_flags(flags).open(&path);
    open(true).or_else(|_| open(false)).map_err(|error| errno(&error))
}

fn operation(kind: LockKind) -> FlockOperation {
    match kind {
        LockKind::Shared => FlockOperation::NonBlockingLockShared,
        LockKind::Exclusive => FlockOperation::NonBlockingLockExclusive,
        LockKind::None => FlockOperation::NonBlockingUnlock,
    }
}

fn range(lock: LockRange) -> libc::flock {
    let kind = match lock.kind {
        LockKind::Shared => libc::F_RDLCK,
        LockKind::Exclusive => libc::F_WRLCK,
        LockKind::None => libc::F_UNLCK,
    };
    // A length of zero means up to the end of the file.
    let length = if lock.end >= i64::MAX.cast_unsigned() { 0 } else { lock.end - lock.start + 1 };
    libc::flock {
        l_type: i16::try_from(kind).unwrap_or(0),
        l_whence: 0,
        l_start: i64::try_from(lock.start).unwrap_or(i64::MAX),
        l_len: i64::try_from(length).unwrap_or(0),
        l_pid: 0,
    }
}

fn from_nix(error: nix::Error) -> Errno {
    Errno::from_raw_os_error(error as i32)
}
