//! Locks of the run on real files, which programs outside see.
//!
//! - A lock on a range is held by a descriptor of its own for each file and owner, because the kernel's owners are processes of
//!   the run, and all of them are one process here.
//! - Locks that wait hold no thread: one thread tries all of them, as soon as the run releases a lock and at short intervals.

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

/// Interval at which waiting locks are tried.
const RETRY: Duration = Duration::from_millis(10);

/// Maximum number of descriptors that hold locks.
const MOST_HELD: usize = 1 << 12;

/// Maximum number of locks that wait.
const MOST_WAITING: usize = 1 << 12;

/// All locks.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    held: HashMap<(FileId, u64), Held>,
    waiting: Vec<Waiting>,
    has_ended: bool,
}

#[derive(Debug)]
struct Held {
    file: Arc<File>,
    /// Handle of the open file that was locked last.
    handle: u64,
}

/// A lock that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// The request.
    pub(crate) unique: u64,
    pub(crate) open: Arc<OpenFile>,
    pub(crate) lock: LockRange,
}

impl Locks {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks or unlocks at once.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] if another program has a lock.
    pub(crate) fn set(&self, open: &OpenFile, lock: LockRange) -> Result<(), Errno> {
        let file = open.to_read()?;
        if lock.is_whole {
            flock(file, operation(lock.kind))?;
        } else {
            let key = (FileId::of(&metadata(file)?), lock.owner);
            let Some(held) = self.descriptor(key, file, lock)? else { return Ok(()) };
            fcntl(&*held, FcntlArg::F_OFD_SETLK(&range(lock))).map_err(from_nix)?;
        }
        if lock.kind == LockKind::None {
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Returns a lock that conflicts: its range, and the kernel's number for its kind.
    pub(crate) fn conflict(&self, open: &OpenFile, lock: LockRange) -> Result<((u64, u64), u32), Errno> {
        let file = open.to_read()?;
        let key = (FileId::of(&metadata(file)?), lock.owner);
        let mut found = range(lock);
        // Without a descriptor there is nothing to ask about, and no lock is wanted.
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

    /// Returns the descriptor that holds an owner's locks on a file, if it has any or wants one.
    fn descriptor(
        &self,
        key: (FileId, u64),
        file: &File,
        lock: LockRange,
    ) -> Result<Option<Arc<File>>, Errno> {
        let mut state = self.lock();
        if let Some(held) = state.held.get_mut(&key) {
            held.handle = lock.handle;
            return Ok(Some(held.file.clone()));
        }
        if lock.kind == LockKind::None {
            return Ok(None);
        }
        if state.held.len() >= MOST_HELD {
            return Err(Errno::NOLCK);
        }
        let opened = Arc::new(again(file)?);
        state.held.insert(key, Held { file: opened.clone(), handle: lock.handle });
        Ok(Some(opened))
    }

    /// Releases an owner's locks on a file, as closing any of its descriptors does.
    pub(crate) fn release(&self, file: FileId, owner: u64) {
        if self.lock().held.remove(&(file, owner)).is_some() {
            self.changed.notify_all();
        }
    }

    /// Releases locks of an open file that was closed.
    pub(crate) fn closed(&self, handle: u64) {
        self.lock().held.retain(|_, held| held.handle != handle);
        self.changed.notify_all();
    }

    /// Adds a lock that waits.
    pub(crate) fn wait(&self, waiting: Waiting) -> Result<(), Errno> {
        let mut state = self.lock();
        if state.waiting.len() >= MOST_WAITING {
            return Err(Errno::NOLCK);
        }
        state.waiting.push(waiting);
        self.changed.notify_all();
        Ok(())
    }

    /// Removes a request that waits, and returns whether it did.
    pub(crate) fn take(&self, unique: u64) -> bool {
        let mut state = self.lock();
        let before = state.waiting.len();
        state.waiting.retain(|waiting| waiting.unique != unique);
        state.waiting.len() < before
    }

    /// Waits until locks may be free, and returns those that wait. Returns `None` once the view has ended.
    pub(crate) fn next(&self) -> Option<Vec<Waiting>> {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.has_ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.has_ended {
            return None;
        }
        Some(state.waiting.clone())
    }

    /// Waits for the next time at which waiting locks should be tried.
    pub(crate) fn pause(&self) {
        let state = self.lock();
        drop(self.changed.wait_timeout(state, RETRY));
    }

    /// Ends [`next`](Self::next).
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }
}

/// Opens a file again, for writing too if the user may, because some locks need that.
fn again(file: &File) -> Result<File, Errno> {
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
    // A length of zero reaches to the end, however far that is.
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
