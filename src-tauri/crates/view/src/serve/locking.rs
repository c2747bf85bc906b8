//! Locks on open files.

use rustix::io::Errno;

use super::{Reply, Stop};
use crate::{
    invalidation,
    locks::Waiting,
    nodes::{FileId, Stamp},
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

    /// Sets a lock. If it has to wait, or the kernel has old pages of the file, another thread replies.
    pub(super) fn set_lock(&self, unique: u64, lock: LockRange, waits: bool) -> Result<Reply, Stop> {
        let open = self.files.get(lock.handle)?;
        match self.locks.set(&open, lock) {
            Ok(()) if lock.kind == LockKind::None || !self.is_outdated(&open) => Ok(Reply::Empty),
            // The lock is held: it is set again, which changes nothing.
            Ok(()) => {
                self.wait_for_lock(Waiting { unique, open, lock })?;
                Ok(Reply::Silence)
            }
            Err(Errno::AGAIN) if waits => {
                self.wait_for_lock(Waiting { unique, open, lock })?;
                Ok(Reply::Silence)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn wait_for_lock(&self, waiting: Waiting) -> Result<(), Errno> {
        let unique = waiting.unique;
        self.locks.wait(waiting)?;
        // An interruption that came before has found nothing that waits.
        if self.pending.take_early(unique) && self.locks.take(unique) { Err(Errno::INTR) } else { Ok(()) }
    }

    /// Releases the locks that the owner of a closed descriptor has on its file.
    pub(super) fn flush(&self, handle: u64, owner: u64) -> Result<Reply, Stop> {
        // A revoked file has locks, too.
        let open = self.files.get(handle)?;
        self.locks.release(FileId::of(&metadata(&open.file)?), owner);
        Ok(Reply::Empty)
    }

    /// Tries a lock that waits, and replies unless it still has to. Runs on a thread of its own.
    pub(crate) fn try_lock(&self, waiting: Waiting) {
        // An interrupted request must not get the lock.
        if !self.locks.take(waiting.unique) {
            return;
        }
        let (unique, open) = (waiting.unique, waiting.open.clone());
        let set = match self.locks.set(&open, waiting.lock) {
            Err(Errno::AGAIN) => match self.wait_for_lock(waiting) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            set => set,
        };
        if set.is_ok() {
            // Another program may have changed the file before it released its lock.
            self.is_outdated(&open);
            invalidation::drop_pages(&*self.device, open.node);
        }
        self.reply(unique, set.map(|()| &[][..]));
    }

    /// Notes the content of a file that was locked, and returns whether the kernel may have old pages.
    fn is_outdated(&self, open: &OpenFile) -> bool {
        let facts = open.to_read().and_then(metadata);
        facts.is_ok_and(|facts| self.nodes.is_outdated(open.node, Stamp::of(&facts)))
    }
}
