//! Opens files. Opening a file can involve waiting for permission.

use std::{fs::Metadata, os::unix::ffi::OsStrExt, path::Path};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use super::{Basis, Call, Incomplete, new_file::NewFile};
use crate::{
    gate::AccessKind,
    nodes::{ContentStamp, FileId, NodeKind},
    open_files::OpenFile,
    real_tree::metadata,
    server::Server,
    wire::{self, OpenedFlags, TRUNCATE},
};

/// Flags of the program's `open` call that also apply to the real file.
const REAL_FLAGS: OFlags =
    OFlags::RDWR.union(OFlags::WRONLY).union(OFlags::SYNC).union(OFlags::DSYNC).union(OFlags::NOATIME);

impl Server {
    pub(super) fn open(&self, call: &Call<'_>, node: u64, flags: u32) -> Result<Vec<u8>, Incomplete> {
        // `ESTALE` makes the kernel look up the path again.
        let path = self.nodes.path(node).map_err(|_| Errno::STALE)?;
        match self.nodes.kind(node).map_err(|_| Errno::STALE)? {
            NodeKind::Virtual(mode) => self.create(call, node, &path, (mode, flags)),
            NodeKind::Real(file) => self.open_real(call, node, &path, (file, flags)),
        }
    }

    fn open_real(
        &self,
        call: &Call<'_>,
        node: u64,
        path: &Path,
        (file, flags): (FileId, u32),
    ) -> Result<Vec<u8>, Incomplete> {
        let kind = access_kind(flags);
        if kind != AccessKind::Read {
            refuse_shared_memory(path)?;
        }
        let found = self.tree.find(path).map_err(|error| self.stale_if_replaced(node, error))?;
        self.check_same_file(node, file, &found.stat)?;
        let (access, basis) = self.permit(call, path, kind, Some(&found.stat))?;
        // The file may have been replaced since it was found, possibly by a file with the same inode number.
        let opened = self.tree.open(path, real_flags(flags), Mode::empty());
        let opened = opened.map_err(|error| self.stale_if_replaced(node, error))?;
        let stat = metadata(&opened)?;
        if stat.created().ok() != found.stat.created().ok() {
            return Err(self.retire_replaced(node).into());
        }
        self.check_same_file(node, file, &stat)?;
        let is_writable = kind != AccessKind::Read;
        let flags = OpenedFlags {
            keeps_pages: self.nodes.update_stamp(node, ContentStamp::new(&stat)),
            // A flush of a descriptor that cannot write only releases range locks. Without it, they are released with the
            // last copy of the descriptor.
            skips_flush: !is_writable && !self.nodes.was_locked(node),
        };
        let handle =
            self.register(OpenFile::new(opened, node, (access, basis == Basis::Once), is_writable))?;
        Ok(wire::opened(handle, flags))
    }

    /// Creates the real file of a virtual entry.
    fn create(
        &self,
        call: &Call<'_>,
        node: u64,
        path: &Path,
        (mode, flags): (u32, u32),
    ) -> Result<Vec<u8>, Incomplete> {
        const REGULAR: u32 = 0o100_000;
        if mode & 0o170_000 != REGULAR {
            return Err(Errno::ACCESS.into());
        }
        refuse_shared_memory(path)?;
        let NewFile { access, basis, origin } = self.permit_new(call, path)?;
        if let Some(parent) = self.nodes.parent(node) {
            self.make_real(parent)?;
        }
        // Fails if the parent folder is hidden.
        self.tree.parent(path)?;
        self.nodes.begin_creation(node);
        let create = real_flags(flags) | OFlags::CREATE | OFlags::EXCL;
        let opened = match self.tree.open(path, create, Mode::from_raw_mode(mode & 0o777)) {
            Ok(opened) => opened,
            Err(error) => {
                self.nodes.retire_node(node);
                // Another program has just created the file, so the kernel must look it up again.
                return Err(if error == Errno::EXIST { Errno::STALE } else { hide_file_type(error) }.into());
            }
        };
        let stat = metadata(&opened)?;
        let file = FileId::new(&stat);
        self.created_files.add(&stat, origin);
        self.nodes.set_real(node, file);
        // Write permission includes reading a file that the run itself has created.
        let is_writable = access_kind(flags) != AccessKind::Read;
        let handle =
            self.register(OpenFile::new(opened, node, (access, basis == Basis::Once), is_writable))?;
        Ok(wire::opened(handle, OpenedFlags::default()))
    }

    /// Checks that the opened file is a regular file and still the node's file.
    fn check_same_file(&self, node: u64, file: FileId, stat: &Metadata) -> Result<(), Errno> {
        if FileId::new(stat) != file {
            return Err(self.retire_replaced(node));
        }
        match stat.file_type() {
            kind if kind.is_file() => Ok(()),
            // A symlink that reuses the inode number replaced the file.
            kind if kind.is_symlink() => Err(self.retire_replaced(node)),
            _ => Err(Errno::ACCESS),
        }
    }

    /// Returns the error for a failed open. If the file was removed, or replaced by a symlink or pipe, the error makes
    /// the kernel look up the path again. Programs such as SQLite rely on this when they create files.
    fn stale_if_replaced(&self, node: u64, error: Errno) -> Errno {
        if matches!(error, Errno::NOENT | Errno::LOOP | Errno::NXIO) {
            self.retire_replaced(node)
        } else {
            error
        }
    }

    /// Records that a node's file was replaced. Returns the error that makes the kernel look up the path again.
    fn retire_replaced(&self, node: u64) -> Errno {
        self.nodes.retire_node(node);
        Errno::STALE
    }

    fn register(&self, open: OpenFile) -> Result<u64, Errno> {
        let node = open.node;
        let (handle, open) = self.files.add(open)?;
        self.nodes.add_handle(node);
        // A revocation between the permission check and the registration would miss the file, so this checks again.
        if open.is_permitted(|access| self.gate.keeps(access)) {
            return Ok(handle);
        }
        self.nodes.remove_handle(self.files.remove(handle)?);
        Err(Errno::ACCESS)
    }
}

/// Refuses write access to the shared memory file of an SQLite database in WAL mode. Programs outside the sandbox
/// would not share its mapping, so changes would be lost.
pub(super) fn refuse_shared_memory(path: &Path) -> Result<(), Errno> {
    if path.as_os_str().as_bytes().ends_with(b"-shm") { Err(Errno::ACCESS) } else { Ok(()) }
}

fn access_kind(flags: u32) -> AccessKind {
    let flags_set = OFlags::from_bits_retain(flags);
    let changes = flags_set.contains(OFlags::WRONLY) || flags & TRUNCATE != 0;
    match (flags_set.contains(OFlags::RDWR), changes) {
        (true, _) => AccessKind::ReadWrite,
        (false, true) => AccessKind::Write,
        (false, false) => AccessKind::Read,
    }
}

fn real_flags(flags: u32) -> OFlags {
    OFlags::from_bits_retain(flags) & REAL_FLAGS
}

/// Replaces errors that would reveal that a file is a symlink or a pipe without a reader.
fn hide_file_type(error: Errno) -> Errno {
    if matches!(error, Errno::LOOP | Errno::NXIO) { Errno::ACCESS } else { error }
}
