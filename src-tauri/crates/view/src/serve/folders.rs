//! Lists folders: real entries that are not hidden, and virtual entries.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
};

use rustix::{
    fs::{Dir, FileType, Mode, OFlags},
    io::Errno,
};

use super::look_up::virtual_inode;
use crate::{
    directories::{FolderEntry, MAX_ENTRIES},
    nodes::{FileId, NodeKind},
    real_tree::metadata,
    server::Server,
    wire::{self, FolderReply, OpenedFlags},
};

/// Number of entries of a folder that are looked up while the folder is listed. A program that lists a larger folder
/// rarely uses all its entries.
const MAX_LOOKED_UP: u64 = 4096;

impl Server {
    pub(super) fn open_folder(&self, node: u64) -> Result<Vec<u8>, Errno> {
        let path = self.nodes.path(node)?;
        if let NodeKind::Real(_) = self.nodes.kind(node)? {
            self.tree.find(&path)?;
            self.tree.open(&path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        }
        Ok(wire::opened(self.directories.add()?, OpenedFlags::default()))
    }

    pub(super) fn read_folder(
        &self,
        node: u64,
        handle: u64,
        offset: u64,
        mut reply: FolderReply,
    ) -> Result<Vec<u8>, Errno> {
        if offset == 0 {
            self.directories.set_snapshot(handle, self.entries(node)?)?;
        }
        let entries = self.directories.snapshot(handle)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        for (entry, next) in entries.iter().zip(1..).skip(start) {
            // Without a node, the kernel looks up the entry when a program uses it, unless it has done so recently.
            let looked_up = || {
                let is_looked_up = next <= MAX_LOOKED_UP
                    && !matches!(entry.name.as_bytes(), b"." | b"..")
                    && !self.nodes.is_cached(node, &entry.name);
                is_looked_up.then(|| self.look_up(node, &entry.name).ok()).flatten()
            };
            if !reply.add(&entry.name, entry.inode, entry.kind, next, looked_up) {
                break;
            }
        }
        Ok(reply.finish())
    }

    fn entries(&self, node: u64) -> Result<Vec<FolderEntry>, Errno> {
        let path = self.nodes.path(node)?;
        let mut entries = match self.nodes.kind(node)? {
            NodeKind::Real(_) => self.real_entries(&path)?,
            NodeKind::Virtual(_) => {
                [".", ".."].map(|name| entry(name.into(), virtual_inode(node), FileType::Directory)).into()
            }
        };
        // Another program may have created a file with the same name.
        let real: HashSet<OsString> = entries.iter().map(|entry| entry.name.clone()).collect();
        let added = self.nodes.virtual_children(node).into_iter().filter(|(name, ..)| !real.contains(name));
        let added =
            added.map(|(name, child, mode)| entry(name, virtual_inode(child), FileType::from_raw_mode(mode)));
        entries.extend(added);
        Ok(entries)
    }

    /// Returns the names in a real folder, including hidden ones.
    pub(super) fn names_in(&self, path: &Path) -> Result<Vec<OsString>, Errno> {
        let folder = self.tree.open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut names = Vec::new();
        for found in Dir::read_from(&folder)? {
            let found = found?;
            let name = OsStr::from_bytes(found.file_name().to_bytes()).to_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
            if names.len() > MAX_ENTRIES {
                return Err(Errno::OVERFLOW);
            }
        }
        Ok(names)
    }

    fn real_entries(&self, path: &Path) -> Result<Vec<FolderEntry>, Errno> {
        self.tree.find(path)?;
        let folder = self.tree.open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let device = metadata(&folder)?.dev();
        let mut entries = Vec::new();
        for found in Dir::read_from(&folder)? {
            let found = found?;
            let name = OsStr::from_bytes(found.file_name().to_bytes());
            let file = FileId { device, inode: found.ino() };
            if self.tree.hides_entry(&path.join(name), file) {
                continue;
            }
            if entries.len() >= MAX_ENTRIES {
                return Err(Errno::OVERFLOW);
            }
            entries.push(entry(name.to_owned(), found.ino(), found.file_type()));
        }
        Ok(entries)
    }
}

fn entry(name: OsString, inode: u64, kind: FileType) -> FolderEntry {
    // `d_type` is the file type bits of the mode, shifted right.
    let kind = u8::try_from(kind.as_raw_mode() >> 12).unwrap_or(0);
    FolderEntry { name, inode, kind }
}
