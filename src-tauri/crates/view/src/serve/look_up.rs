//! Looks up names and returns attributes. Needs no permission.

use std::{ffi::OsStr, fs::Metadata, os::unix::fs::MetadataExt};

use rustix::{
    fs::{fstatvfs, readlinkat},
    io::Errno,
};

use crate::{
    nodes::{FileId, Kind},
    real_tree::{is_special, metadata},
    server::Server,
    wire::{self, Entry, LONGEST_NAME, Ttl},
};

/// Group id that the kernel reports for groups that are not mapped in the user namespace.
const OVERFLOW: u32 = 65534;

/// Bit that distinguishes the inode numbers of virtual entries from those of real files.
const VIRTUAL_INODE: u64 = 1 << 62;

/// Mask of the file type bits in a mode.
const TYPE: u32 = 0o170_000;

impl Server {
    pub(super) fn look_up(&self, parent: u64, name: &OsStr) -> Result<Vec<u8>, Errno> {
        if name.len() > LONGEST_NAME {
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
                Ok(wire::entry(node, &self.shown(&place.facts), self.lifetime(node, &place.facts)))
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
        Ok(wire::attributes(&self.shown(&facts), self.lifetime(node, &facts)))
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

    /// Returns the attributes of a node's file, if the node's path still leads to that file.
    fn named_facts(&self, node: u64) -> Result<Named, Errno> {
        let (path, kind) = (self.nodes.path(node)?, self.nodes.kind(node)?);
        match (kind, self.tree.find(&path)) {
            (Kind::Real(file), Ok(place)) if file == FileId::of(&place.facts) => Ok(Named::Real(place.facts)),
            (Kind::Virtual(mode), Err(Errno::NOENT)) => Ok(Named::Virtual(mode)),
            (Kind::Real(_) | Kind::Virtual(_), Ok(_)) => {
                self.nodes.retire_node(node);
                Err(Errno::STALE)
            }
            (Kind::Real(_) | Kind::Virtual(_), Err(error)) => Err(error),
        }
    }

    /// Returns how long the kernel may cache a file's attributes. They are not cached for files with several names,
    /// which can change through another name, and for locked files, which another program can change.
    fn lifetime(&self, node: u64, facts: &Metadata) -> Ttl {
        let has_names = facts.nlink() > 1 && !facts.is_dir();
        if has_names || self.nodes.is_shared(node) { Ttl::None } else { Ttl::Second }
    }

    /// Returns a file's attributes as the sandbox sees them.
    fn shown(&self, facts: &Metadata) -> Entry {
        let [_, group] = self.ids;
        let mut entry = Entry::of(facts);
        if is_special(facts) {
            // Remove the permissions, because the kernel would open the file without asking the view.
            entry.mode &= TYPE;
        }
        if entry.group == OVERFLOW {
            entry.group = group;
        }
        entry
    }

    pub(super) fn shown_virtual(&self, node: u64, mode: u32) -> Entry {
        let [owner, group] = self.ids;
        let time = (self.started, 0);
        let links = if mode & TYPE == 0o040_000 { 2 } else { 1 };
        Entry {
            inode: virtual_inode(node),
            size: 0,
            blocks: 0,
            accessed: time,
            modified: time,
            changed: time,
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
