//! Creates files and folders. Until the run is permitted to create a file, the new entry exists only in the view.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, mkdirat},
    io::Errno,
};

use crate::{
    created_files::Origin,
    nodes::{FOLDER_TYPE, FileId, NodeKind, TYPE_MASK, is_folder_mode},
    server::Server,
    wire::MAX_NAME_LEN,
};

/// Permission bits that the run can set. They exclude setuid and setgid.
const PERMISSIONS: u32 = 0o1777;

impl Server {
    /// Creates a virtual file, pipe or socket.
    pub(super) fn make_node(&self, parent: u64, name: &OsStr, mode: u32) -> Result<Vec<u8>, Errno> {
        const REGULAR: u32 = 0o100_000;
        const PIPE: u32 = 0o010_000;
        const SOCKET: u32 = 0o140_000;
        let kind = if mode & TYPE_MASK == 0 { REGULAR } else { mode & TYPE_MASK };
        if ![REGULAR, PIPE, SOCKET].contains(&kind) {
            return Err(Errno::PERM);
        }
        self.new_path(parent, name)?;
        self.nodes.create_virtual(parent, name, kind | mode & PERMISSIONS)?;
        self.look_up(parent, name)
    }

    pub(super) fn make_folder(&self, parent: u64, name: &OsStr, mode: u32) -> Result<Vec<u8>, Errno> {
        let path = self.new_path(parent, name)?;
        if self.may_create(&path) {
            self.make_real(parent)?;
            self.create_folder(&path, mode)?;
        } else {
            self.nodes.create_virtual(parent, name, FOLDER_TYPE | mode & PERMISSIONS)?;
        }
        self.look_up(parent, name)
    }

    /// Creates the real folder for a virtual one. Does the same for its virtual parents first.
    pub(super) fn make_real(&self, folder: u64) -> Result<(), Errno> {
        let NodeKind::Virtual(mode) = self.nodes.kind(folder)? else { return Ok(()) };
        if let Some(parent) = self.nodes.parent(folder) {
            self.make_real(parent)?;
        }
        let path = self.nodes.path(folder)?;
        let file = match self.create_folder(&path, mode) {
            // Another thread of the view, or another program, has just created the folder.
            Err(Errno::EXIST) => {
                let found = self.tree.find(&path)?;
                if !found.stat.is_dir() {
                    return Err(Errno::EXIST);
                }
                FileId::new(&found.stat)
            }
            created => created?,
        };
        self.nodes.set_real(folder, file);
        Ok(())
    }

    /// Creates the real folders for the virtual ones below a path, because a mount would cover the virtual folders. The
    /// path is relative to the root.
    pub(crate) fn make_real_below(&self, path: &Path) {
        let _names = self.lock_names();
        for (node, mode) in self.nodes.all_virtual() {
            if is_folder_mode(mode) && self.nodes.path(node).is_ok_and(|found| found.starts_with(path)) {
                // Ignores the error: another program may have created the folder.
                let _ = self.make_real(node);
            }
        }
    }

    fn create_folder(&self, path: &Path, mode: u32) -> Result<FileId, Errno> {
        let (folder, name) = self.tree.parent(path)?;
        mkdirat(&folder, name, Mode::from_raw_mode(mode & PERMISSIONS))?;
        self.record_created(path)
    }

    /// Records that the run created the file at `path`.
    pub(super) fn record_created(&self, path: &Path) -> Result<FileId, Errno> {
        let stat = self.tree.find(path)?.stat;
        self.created_files.add(&stat, Origin::Created);
        Ok(FileId::new(&stat))
    }

    /// Returns the path for a new entry. Fails if the name is hidden, too long or already taken.
    pub(super) fn new_path(&self, parent: u64, name: &OsStr) -> Result<PathBuf, Errno> {
        if name.len() > MAX_NAME_LEN {
            return Err(Errno::NAMETOOLONG);
        }
        let path = self.nodes.path(parent)?.join(name);
        if self.tree.hides(&path) {
            return Err(Errno::ACCESS);
        }
        match self.tree.find(&path) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT)
                if matches!(self.nodes.by_name(parent, name), Some((_, NodeKind::Virtual(_)))) =>
            {
                Err(Errno::EXIST)
            }
            Err(Errno::NOENT) => Ok(path),
            Err(error) => Err(error),
        }
    }
}
