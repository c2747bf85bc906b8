//! Looks up names and returns attributes. Neither requires permission.

use std::{ffi::OsStr, fs::Metadata, os::unix::fs::MetadataExt};

use rustix::{
    fs::{fstatvfs, readlinkat},
    io::Errno,
};

use crate::{
    nodes::{FileId, NodeKind, VirtualTimes},
    real_tree::{is_special, metadata},
    server::Server,
    wire::{self, Entry, MAX_NAME_LEN, Ttl},
};

/// Group id that the kernel reports for groups without a mapping in the user namespace.
const OVERFLOW: u32 = 65534;

/// Bit that distinguishes inode numbers of virtual entries from those of real files.
const VIRTUAL_INODE: u64 = 1 << 62;

/// File type bits of a mode.
const TYPE: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;

impl Server {
    pub(super) fn look_up(&self, parent: u64, name: &OsStr) -> Result<Vec<u8>, Errno> {
        if name.len() > MAX_NAME_LEN {
            return Err(Errno::NAMETOOLONG);
        }
        let path = self.nodes.path(parent)?.join(name);
        match self.tree.find(&path) {
            Ok(place) => {
                let node = self.nodes.found(parent, name, FileId::of(&place.facts))?;
                if !place.facts.is_dir() {
                    self.nodes.is_a_file(node);
                }
                self.invalidations.drop_names(self.nodes.forgettable());
                Ok(wire::entry(node, &self.shown(node, &place.facts), self.lifetime(node, &place.facts)))
            }
            Err(Errno::NOENT) if !self.tree.hides(&path) => {
                let (node, mode) = self.nodes.found_virtual(parent, name).ok_or(Errno::NOENT)?;
                Ok(wire::entry(node, &self.shown_virtual(node, mode), Ttl::None))
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn attributes(&self, node: u64, handle: Option<u64>) -> Result<Vec<u8>, Errno> {
        let open = handle.map(|handle| self.files.get(handle)).transpose()?;
        let facts = match open {
            Some(open) => metadata(open.to_read()?)?,
            None => match self.named_facts(node) {
                Ok(Named::Real(facts)) => facts,
                Ok(Named::Virtual(mode)) => {
                    return Ok(wire::attributes(&self.shown_virtual(node, mode), Ttl::None));
                }
                // A removed file still exists while it is open.
                Err(error) => metadata(self.files.on(node).ok_or(error)?.to_read()?)?,
            },
        };
        Ok(wire::attributes(&self.shown(node, &facts), self.lifetime(node, &facts)))
    }

    pub(super) fn read_link(&self, node: u64) -> Result<Vec<u8>, Errno> {
        let place = self.tree.find(&self.nodes.path(node)?)?;
        Ok(readlinkat(&place.file, "", Vec::new())?.into_bytes())
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
    fn named_facts(&self, node: u64) -> Result<Named, Errno> {
        let (path, kind) = (self.nodes.path(node)?, self.nodes.kind(node)?);
        match (kind, self.tree.find(&path)) {
            (NodeKind::Real(file), Ok(place)) if file == FileId::of(&place.facts) => {
                Ok(Named::Real(place.facts))
            }
            (NodeKind::Virtual(mode), Err(Errno::NOENT)) => Ok(Named::Virtual(mode)),
            (NodeKind::Real(_) | NodeKind::Virtual(_), Ok(_)) => {
                self.nodes.retire_node(node);
                Err(Errno::STALE)
            }
            (NodeKind::Real(_) | NodeKind::Virtual(_), Err(error)) => Err(error),
        }
    }

    /// Returns how long the kernel may cache a file's attributes. Files with several names are not cached, because they
    /// can change through another name. Locked files are not cached either, because other programs can change them.
    fn lifetime(&self, node: u64, facts: &Metadata) -> Ttl {
        let has_names = facts.nlink() > 1 && !facts.is_dir();
        if has_names || self.nodes.is_shared(node) { Ttl::None } else { Ttl::Second }
    }

    /// Returns a file's attributes as seen in the sandbox.
    fn shown(&self, node: u64, facts: &Metadata) -> Entry {
        let [_, group] = self.ids;
        let mut entry = Entry::of(facts);
        if let Some(time) = self.nodes.entries_changed(node) {
            entry.modified = entry.modified.max(time);
            entry.changed = entry.changed.max(time);
            // On some file systems, folders always have one link.
            entry.links += if entry.links > 1 { self.virtual_folders_in(node) } else { 0 };
        }
        if is_special(facts) {
            // Removes the permissions, because the kernel would open the file without asking the view.
            entry.mode &= TYPE;
        }
        if entry.group == OVERFLOW {
            entry.group = group;
        }
        entry
    }

    /// Returns the number of virtual folders in a folder. Each of them counts as a link to the folder.
    fn virtual_folders_in(&self, node: u64) -> u32 {
        self.nodes.virtual_modes_in(node).into_iter().map(|mode| u32::from(mode & TYPE == FOLDER)).sum()
    }

    pub(super) fn shown_virtual(&self, node: u64, mode: u32) -> Entry {
        let [owner, group] = self.ids;
        let times = self.nodes.virtual_times(node).unwrap_or_else(VirtualTimes::now);
        let links = if mode & TYPE == FOLDER { 2 + self.virtual_folders_in(node) } else { 1 };
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
enum Named {
    Real(Metadata),
    Virtual(u32),
}

/// Returns the inode number of a virtual entry.
pub(super) fn virtual_inode(node: u64) -> u64 {
    VIRTUAL_INODE | node
}
