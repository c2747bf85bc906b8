//! Handles requests. Each submodule implements one group of operations.

mod attributes;
mod create;
mod data;
mod folders;
mod links;
mod lock_requests;
mod look_up;
mod move_folder;
mod new_file;
mod open;
mod remove_and_rename;

use std::{
    fs::Metadata,
    path::{Path, PathBuf},
    sync::{PoisonError, RwLockReadGuard},
};

use rustix::io::Errno;

use crate::{
    gate::{AccessKind, Answer, AskedAccess, AskedFile, WantedAccess},
    nodes::NodeKind,
    pending::{DeferredRequest, ParkOutcome, ParkedRequest},
    server::Server,
    wire::{self, FolderReply, Header, INIT_FLAGS, Negotiated, Operation, Request},
};

/// Request being handled, and the accesses that the user has approved for it.
struct Call<'a> {
    header: Header,
    approved: &'a [AskedAccess],
}

/// Reply to a request.
enum Reply {
    Content(Vec<u8>),
    Empty,
    /// Sends nothing, because the kernel expects no reply or another thread sends the reply.
    Nothing,
}

/// Reason a request did not complete.
enum Incomplete {
    Failed(Errno),
    /// The access requires permission first.
    NeedsPermission(AskedAccess),
}

impl From<Errno> for Incomplete {
    fn from(error: Errno) -> Self {
        Self::Failed(error)
    }
}

/// Duration of a permission.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basis {
    /// Valid until it is revoked.
    Standing,
    /// Valid for one request only.
    Once,
}

impl Server {
    /// Handles a request. If the request requires permission, it waits for the user's answer.
    pub(crate) fn handle(&self, bytes: &[u8], approved: Vec<AskedAccess>) {
        let (header, operation) = match Request::parse(bytes) {
            Ok(Request { header, operation }) => (header, operation),
            Err((Some(header), _)) => return self.reply(header.unique, Err(Errno::INVAL)),
            // Without a header, no reply is possible.
            Err((None, _)) => return,
        };
        let performed = {
            let _operation = self.operation();
            self.perform(&Call { header, approved: &approved }, &operation)
        };
        match performed {
            Ok(Reply::Nothing) => {}
            Ok(Reply::Empty) => self.reply(header.unique, Ok(&[])),
            Ok(Reply::Content(content)) => self.reply(header.unique, Ok(&content)),
            Err(Incomplete::Failed(error)) => self.reply(header.unique, Err(error)),
            Err(Incomplete::NeedsPermission(asked)) => {
                let wanted = asked.clone();
                let locks = self.locked_folders(header.node, &operation);
                let parked =
                    ParkedRequest { bytes: bytes.to_vec(), process: header.process, asked, approved, locks };
                match self.pending.park(header.unique, parked) {
                    ParkOutcome::Parked => {
                        self.gate.ask(&wanted, header.process, self.ticket(header.unique));
                    }
                    ParkOutcome::Full => self.reply(header.unique, Err(Errno::ACCESS)),
                    ParkOutcome::Deferred => {}
                }
            }
        }
    }

    /// Continues a request that was held while a folder was mounted.
    pub(crate) fn resume_deferred(&self, request: DeferredRequest) {
        if request.is_mounted {
            self.handle(&request.bytes, request.approved);
        } else {
            // This error makes the kernel release its locks and look up the path again.
            self.reply(request.unique, Err(Errno::STALE));
        }
    }

    /// Continues a request after the user has answered.
    pub(crate) fn resume(&self, unique: u64, answer: Answer) {
        let Some(ParkedRequest { bytes, asked, mut approved, .. }) = self.pending.take(unique) else {
            return;
        };
        match answer {
            Answer::Once => {
                approved.push(asked);
                self.handle(&bytes, approved);
            }
            Answer::Retry => self.handle(&bytes, approved),
            Answer::Denied => {
                self.discard_virtual(&bytes);
                self.reply(unique, Err(Errno::ACCESS));
            }
        }
    }

    /// Cancels a waiting request whose thread is about to exit.
    pub(crate) fn interrupt(&self, unique: u64) {
        let Some(parked) = self.pending.take(unique) else { return };
        self.discard_virtual(&parked.bytes);
        self.reply(unique, Err(Errno::INTR));
        self.gate.withdraw(unique);
    }

    /// Removes the virtual entry of a file that the run was not permitted to create.
    fn discard_virtual(&self, bytes: &[u8]) {
        if let Ok(Request { header, operation: Operation::Open { .. } }) = Request::parse(bytes)
            && let Ok(NodeKind::Virtual(_)) = self.nodes.kind(header.node)
        {
            self.nodes.retire_node(header.node);
        }
    }

    fn reply(&self, unique: u64, reply: Result<&[u8], Errno>) {
        let content = reply.unwrap_or_default();
        // Ignores the error: the request was aborted.
        let _ = self.device.write(&[&wire::reply_header(unique, reply.err(), content.len()), content]);
    }

    fn perform(&self, call: &Call<'_>, operation: &Operation<'_>) -> Result<Reply, Incomplete> {
        let node = call.header.node;
        let content = match *operation {
            Operation::Init { major, max_readahead, flags } => negotiate(major, max_readahead, flags)?,
            Operation::Lookup(name) => self.look_up(node, name)?,
            Operation::GetAttributes { handle } => self.attributes(node, handle)?,
            Operation::SetAttributes(change) => self.set_attributes(call, node, change)?,
            Operation::ReadLink => self.read_link(node)?,
            Operation::MakeLink { name, target } => {
                let _names = self.lock_names();
                self.make_link(call, (node, name), target)?
            }
            Operation::MakeNode { name, mode } => self.make_node(node, name, mode)?,
            Operation::MakeFolder { name, mode } => {
                let _names = self.lock_names();
                self.make_folder(node, name, mode)?
            }
            Operation::HardLink { node: old, name } => {
                let _names = self.lock_names();
                self.hard_link(call, old, node, name)?
            }
            Operation::Open { flags } => {
                let _names = self.lock_names();
                self.open(call, node, flags)?
            }
            Operation::Read { handle, offset, size } => self.read(handle, offset, size)?,
            Operation::Write { handle, offset, from_cache, append, data } => {
                self.write(handle, offset, (from_cache, append), data)?
            }
            Operation::Statistics => self.statistics(node)?,
            Operation::OpenFolder => self.open_folder(node)?,
            Operation::ReadFolder { handle, offset, size, with_nodes } => {
                self.read_folder(node, handle, offset, FolderReply::new(size, with_nodes))?
            }
            Operation::GetLock(lock) => self.get_lock(lock)?,
            Operation::SetLock { lock, waits } => return self.set_lock(call.header.unique, lock, waits),
            Operation::Flush { handle, owner } => return self.flush(handle, owner),
            Operation::Seek { handle, offset, whence } => self.seek(handle, offset, whence)?,
            Operation::Unlink(name) => return self.remove(call, (node, name), false),
            Operation::RemoveFolder(name) => return self.remove(call, (node, name), true),
            Operation::Rename { name, parent, new_name, flags } => {
                return self.rename(call, (node, name), (parent, new_name), flags);
            }
            Operation::Release { handle } => return self.release(handle),
            Operation::Sync { handle, data_only } => return self.sync(handle, data_only),
            Operation::Allocate { handle, offset, length, mode } => {
                return self.allocate(handle, offset, length, mode);
            }
            Operation::ReleaseFolder { handle } => {
                self.directories.remove(handle);
                return Ok(Reply::Empty);
            }
            Operation::SyncFolder | Operation::Destroy => return Ok(Reply::Empty),
            Operation::Forget(ref nodes) => {
                nodes.iter().for_each(|(node, lookups)| self.nodes.forget(*node, *lookups));
                return Ok(Reply::Nothing);
            }
            Operation::Interrupt { unique } => {
                if self.locks.remove_waiting(unique) {
                    self.reply(unique, Err(Errno::INTR));
                } else {
                    self.pending.interrupt(unique);
                }
                return Ok(Reply::Nothing);
            }
            Operation::Unsupported => return Err(Errno::NOSYS.into()),
        };
        Ok(Reply::Content(content))
    }

    /// Requires permission to access a path below the root. `file` is the file at the path, if it exists.
    fn permit(
        &self,
        call: &Call<'_>,
        path: &Path,
        kind: AccessKind,
        file: Option<&Metadata>,
    ) -> Result<(WantedAccess, Basis), Incomplete> {
        self.recent_files.record(path);
        let access = WantedAccess { path: absolute(path), kind };
        if self.gate.permits(&access) {
            return Ok((access, Basis::Standing));
        }
        let asked = AskedAccess { access, file: file.map(AskedFile::new) };
        if call.approved.contains(&asked) {
            return Ok((asked.access, Basis::Once));
        }
        Err(Incomplete::NeedsPermission(asked))
    }
}

impl Server {
    /// Returns the folders that the kernel keeps locked until a request is answered. Opening a file locks no folder.
    fn locked_folders(&self, node: u64, operation: &Operation<'_>) -> Vec<PathBuf> {
        let own = (!matches!(operation, Operation::Open { .. })).then_some(node);
        let other = if let Operation::Rename { parent, .. } = operation { Some(*parent) } else { None };
        let nodes = own.into_iter().chain(other);
        nodes.filter_map(|node| self.nodes.path(node).ok()).map(|path| absolute(&path)).collect()
    }

    /// Prevents folders from being moved until the guard is dropped.
    fn lock_names(&self) -> RwLockReadGuard<'_, ()> {
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a path that is relative to the root absolute.
fn absolute(path: &Path) -> PathBuf {
    Path::new("/").join(path)
}

fn negotiate(major: u32, max_readahead: u32, flags: u32) -> Result<Vec<u8>, Errno> {
    const MAJOR: u32 = 7;
    if major < MAJOR {
        return Err(Errno::PROTO);
    }
    Ok(wire::init(&Negotiated { max_readahead, flags: flags & INIT_FLAGS }))
}

#[cfg(test)]
mod tests;
