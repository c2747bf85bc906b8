//! Looks up names and returns attributes. Neither requires permission.

use std::{ffi::OsStr, fs::Metadata, os::unix::fs::MetadataExt, path::Path};

use rustix::{
    fs::{fstatvfs, readlinkat},
    io::Errno,
};

use crate::{
    nodes::{FileId, FoundAt, NodeKind, TYPE_MASK, VirtualTimes, is_folder_mode},
    real_tree::{is_special, metadata},
    server::Server,
    wire::{self, Entry, MAX_NAME_LEN, Ttl},
};

/// Group id that the kernel reports for groups without a mapping in the user namespace.
const OVERFLOW_GID: u32 = 65534;

/// Bit that distinguishes inode numbers of virtual entries from those of real files.
const VIRTUAL_INODE: u64 = 1 << 62;

impl Server {
    pub(super) fn look_up(&self, parent: u64, name: &OsStr) -> Result<Vec<u8>, Errno> {
        if name.len() > MAX_NAME_LEN {
            return Err(Errno::NAMETOOLONG);
        }
        let path = self.nodes.path(parent)?.join(name);
        match self.tree.find(&path) {
            Ok(found) => {
                let node = self.nodes.look_up_file(parent, name, self.found_at(&path, &found.stat))?;
                if !found.stat.is_dir() {
                    self.nodes.mark_as_file(node);
                }
                self.invalidations.drop_names(self.nodes.names_to_forget());
                Ok(wire::entry(
                    node,
                    &self.visible_attributes(node, &found.stat),
                    self.attribute_ttl(node, &found.stat),
                ))
            }
            Err(Errno::NOENT) if !self.tree.hides(&path) => {
                let (node, mode) = self.nodes.look_up_virtual(parent, name).ok_or(Errno::NOENT)?;
                Ok(wire::entry(node, &self.virtual_attributes(node, mode), Ttl::None))
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn attributes(&self, node: u64, handle: Option<u64>) -> Result<Vec<u8>, Errno> {
        let open = handle.map(|handle| self.files.get(handle)).transpose()?;
        let stat = match open {
            Some(open) => metadata(open.to_read()?)?,
            None => match self.node_attributes(node) {
                Ok(NodeAttributes::Real(stat)) => stat,
                Ok(NodeAttributes::Virtual(mode)) => {
                    return Ok(wire::attributes(&self.virtual_attributes(node, mode), Ttl::None));
                }
                // A removed file still exists while it is open.
                Err(error) => metadata(self.files.by_node(node).ok_or(error)?.to_read()?)?,
            },
        };
        Ok(wire::attributes(&self.visible_attributes(node, &stat), self.attribute_ttl(node, &stat)))
    }

    pub(super) fn read_link(&self, node: u64) -> Result<Vec<u8>, Errno> {
        let found = self.tree.find(&self.nodes.path(node)?)?;
        Ok(readlinkat(&found.file, "", Vec::new())?.into_bytes())
    }

    pub(super) fn statistics(&self, node: u64) -> Result<Vec<u8>, Errno> {
        let mut path = self.nodes.path(node)?;
        // A virtual entry is on the file system of its nearest real parent.
        while let Err(Errno::NOENT) = self.tree.find(&path) {
            if !path.pop() {
                break;
            }
        }
        Ok(wire::statistics(&fstatvfs(&self.tree.find(&path)?.file)?))
    }

    /// Returns the attributes of a node's file, if the node's path still leads to it.
    fn node_attributes(&self, node: u64) -> Result<NodeAttributes, Errno> {
        let (path, kind) = (self.nodes.path(node)?, self.nodes.kind(node)?);
        match (kind, self.tree.find(&path)) {
            (NodeKind::Real(file), Ok(found)) if file == FileId::new(&found.stat) => {
                Ok(NodeAttributes::Real(found.stat))
            }
            (_, Ok(found)) if self.nodes.take_over(node, self.found_at(&path, &found.stat)) => {
                Ok(NodeAttributes::Real(found.stat))
            }
            (NodeKind::Virtual(mode), Err(Errno::NOENT)) => Ok(NodeAttributes::Virtual(mode)),
            (NodeKind::Real(_) | NodeKind::Virtual(_), Ok(_)) => {
                self.nodes.retire_node(node);
                Err(Errno::STALE)
            }
            (NodeKind::Real(_) | NodeKind::Virtual(_), Err(error)) => Err(error),
        }
    }

    fn found_at(&self, path: &Path, stat: &Metadata) -> FoundAt {
        let is_folder = stat.is_dir();
        let is_mounted = is_folder && self.is_mounted_below(path);
        FoundAt { file: FileId::new(stat), is_folder, is_mounted }
    }

    /// Returns how long the kernel may cache a file's attributes. Files with several names are not cached, because they
    /// can change through another name. Locked files are not cached either, because other programs can change them.
    fn attribute_ttl(&self, node: u64, stat: &Metadata) -> Ttl {
        let has_names = stat.nlink() > 1 && !stat.is_dir();
        if has_names || self.nodes.was_locked(node) { Ttl::None } else { Ttl::Cached }
    }

    /// Returns a file's attributes as seen in the sandbox.
    fn visible_attributes(&self, node: u64, stat: &Metadata) -> Entry {
        let [_, group] = self.ids;
        let mut entry = Entry::new(stat);
        if let Some(time) = self.nodes.entries_changed(node) {
            entry.modified = entry.modified.max(time);
            entry.changed = entry.changed.max(time);
            // On some file systems, folders always have one link.
            entry.links += if entry.links > 1 { self.virtual_folders_in(node) } else { 0 };
        }
        if is_special(stat) {
            // Removes the permissions, because the kernel would open the file without asking the view.
            entry.mode &= TYPE_MASK;
        }
        if entry.group == OVERFLOW_GID {
            entry.group = group;
        }
        entry
    }

    /// Returns the number of virtual folders in a folder. Each of them counts as a link to the folder.
    fn virtual_folders_in(&self, node: u64) -> u32 {
        self.nodes.virtual_modes_in(node).into_iter().map(|mode| u32::from(is_folder_mode(mode))).sum()
    }

    pub(super) fn virtual_attributes(&self, node: u64, mode: u32) -> Entry {
        let [owner, group] = self.ids;
        let times = self.nodes.virtual_times(node).unwrap_or_else(VirtualTimes::now);
        let links = if is_folder_mode(mode) { 2 + self.virtual_folders_in(node) } else { 1 };
        Entry {
            inode: virtual_inode(node),
            size: 0,
            blocks: 0,
            accessed: times.accessed,
            modified: times.modified,
            changed: times.changed,
            mode,
            links,
            owner,
            group,
        }
    }
}

/// Attributes of a node's file.
enum NodeAttributes {
    Real(Metadata),
    Virtual(u32),
}

/// Returns the inode number of a virtual entry.
pub(super) fn virtual_inode(node: u64) -> u64 {
    VIRTUAL_INODE | node
}
