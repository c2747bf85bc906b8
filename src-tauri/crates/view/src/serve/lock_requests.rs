//! Handles lock requests.

use rustix::io::Errno;

use super::{Incomplete, Reply};
use crate::{
    invalidation,
    locks::LockRequest,
    nodes::{ContentStamp, FileId},
    open_files::OpenFile,
    real_tree::metadata,
    server::Server,
    wire::{self, LockKind, LockRange},
};

impl Server {
    pub(super) fn get_lock(&self, lock: LockRange) -> Result<Vec<u8>, Errno> {
        let (range, kind) = self.locks.conflict(&*self.files.get(lock.handle)?, lock)?;
        Ok(wire::lock_found(range, kind))
    }

    /// Sets a lock. If the lock must wait or cached pages may be outdated, another thread sends the reply.
    pub(super) fn set_lock(&self, unique: u64, lock: LockRange, waits: bool) -> Result<Reply, Incomplete> {
        let open = self.files.get(lock.handle)?;
        match self.locks.set(&open, lock) {
            Ok(()) if lock.kind == LockKind::None || !self.update_lock_stamp(&open) => Ok(Reply::Empty),
            // The lock is already held. The lock thread sets it a second time, without effect, and then invalidates the
            // pages.
            Ok(()) => {
                self.wait_for_lock(LockRequest { unique, open, lock })?;
                Ok(Reply::Nothing)
            }
            Err(Errno::AGAIN) if waits => {
                self.wait_for_lock(LockRequest { unique, open, lock })?;
                Ok(Reply::Nothing)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn wait_for_lock(&self, request: LockRequest) -> Result<(), Errno> {
        let unique = request.unique;
        self.locks.wait(request)?;
        // An earlier interruption found no waiting request to cancel.
        if self.pending.take_early_interrupt(unique) && self.locks.remove_waiting(unique) {
            Err(Errno::INTR)
        } else {
            Ok(())
        }
    }

    /// Releases the range locks of an owner that closed a descriptor of the file.
    pub(super) fn flush(&self, handle: u64, owner: u64) -> Result<Reply, Incomplete> {
        // Also works for a revoked file, which can still hold locks.
        let open = self.files.get(handle)?;
        self.locks.release(FileId::new(&metadata(&open.file)?), owner);
        Ok(Reply::Empty)
    }

    /// Retries a waiting lock, and replies unless it must wait longer. Runs on the lock thread.
    pub(crate) fn try_lock(&self, request: LockRequest) {
        // The request was interrupted, so it must not get the lock.
        if !self.locks.remove_waiting(request.unique) {
            return;
        }
        let (unique, open) = (request.unique, request.open.clone());
        let set = match self.locks.set(&open, request.lock) {
            Err(Errno::AGAIN) => match self.wait_for_lock(request) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            set => set,
        };
        if set.is_ok() {
            // Another program may have changed the file before releasing its lock, so the pages are invalidated.
            self.update_lock_stamp(&open);
            invalidation::drop_pages(&*self.device, open.node);
        }
        self.reply(unique, set.map(|()| &[][..]));
    }

    /// Records a locked file's state. Returns `true` if the kernel's cached pages may be outdated.
    fn update_lock_stamp(&self, open: &OpenFile) -> bool {
        let stat = open.to_read().and_then(metadata);
        stat.is_ok_and(|stat| self.nodes.update_lock_stamp(open.node, ContentStamp::new(&stat)))
    }
}
