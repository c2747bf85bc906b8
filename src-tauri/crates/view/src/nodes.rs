//! Nodes: the files that the kernel knows, by number.
//!
//! - A node is a name in a folder. A name gets a new node when its file was replaced or removed. Numbers are never used again.
//! - Entries that exist only in the view are nodes without a file. The number of both kinds is bounded.

mod table;
mod times;

use std::{
    ffi::{OsStr, OsString},
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::io::Errno;

use crate::wire::ROOT;
use table::{Node, Table};
pub(crate) use times::{Time, VirtualTimes, now};

/// Number of nodes above which the view asks the kernel to forget unused ones.
const MANY_NODES: usize = 3 << 18;

/// Maximum number of entries that exist only in the view.
const MOST_VIRTUAL: usize = 1 << 16;

/// File behind a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileId {
    pub(crate) fn of(facts: &Metadata) -> Self {
        Self { device: facts.dev(), inode: facts.ino() }
    }
}

/// State of a file's content, to recognize that it is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    size: u64,
    modified: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(facts: &Metadata) -> Self {
        Self { size: facts.size(), modified: (facts.mtime(), facts.mtime_nsec()) }
    }

    /// Returns whether the file was changed so recently that the next change may have the same time.
    fn is_recent(self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.modified.0 >= now.cast_signed() - 1
    }
}

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// File on the disk.
    Real(FileId),
    /// Entry that exists only in the view, with its mode.
    Virtual(u32),
}

/// All nodes.
#[derive(Debug)]
pub(crate) struct Nodes(Mutex<Table>);

impl Nodes {
    pub(crate) fn new(root: FileId) -> Self {
        Self(Mutex::new(Table::new(root)))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the path of a node below the root.
    pub(crate) fn path(&self, node: u64) -> Result<PathBuf, Errno> {
        self.lock().path(node).ok_or(Errno::NOENT)
    }

    /// Returns the kind of a node whose name still leads to it.
    pub(crate) fn kind(&self, node: u64) -> Result<Kind, Errno> {
        let table = self.lock();
        table.path(node).and_then(|_| table.nodes.get(&node)).map(|node| node.kind).ok_or(Errno::NOENT)
    }

    /// Returns the folder that contains a node.
    pub(crate) fn parent(&self, node: u64) -> Option<u64> {
        self.lock().nodes.get(&node).map(|node| node.parent)
    }

    /// Returns the node of a name, and its kind.
    pub(crate) fn named(&self, parent: u64, name: &OsStr) -> Option<(u64, Kind)> {
        let table = self.lock();
        let node = table.named(parent, name)?;
        Some((node, table.nodes.get(&node)?.kind))
    }

    /// Returns the node of a file that was found under a name, and counts a lookup.
    pub(crate) fn found(&self, parent: u64, name: &OsStr, file: FileId) -> Result<u64, Errno> {
        let mut table = self.lock();
        let kind = Kind::Real(file);
        let known = table.named(parent, name);
        let node = match known.filter(|node| table.nodes.get(node).is_some_and(|node| node.kind == kind)) {
            Some(node) => node,
            None => {
                table.retire(parent, name);
                table.add(parent, name, kind)?
            }
        };
        table.count_lookup(node);
        Ok(node)
    }

    /// Creates an entry that exists only in the view. The lookup that finds it is counted separately.
    pub(crate) fn make_virtual(&self, parent: u64, name: &OsStr, mode: u32) -> Result<(), Errno> {
        let mut table = self.lock();
        if table.virtuals >= MOST_VIRTUAL {
            return Err(Errno::NOSPC);
        }
        table.retire(parent, name);
        table.add(parent, name, Kind::Virtual(mode))?;
        table.virtuals += 1;
        Ok(())
    }

    /// Counts a lookup of an entry that exists only in the view, and returns its node and mode.
    pub(crate) fn found_virtual(&self, parent: u64, name: &OsStr) -> Option<(u64, u32)> {
        let mut table = self.lock();
        let node = table.named(parent, name)?;
        match table.nodes.get(&node)?.kind {
            Kind::Virtual(mode) => {
                table.count_lookup(node);
                Some((node, mode))
            }
            Kind::Real(_) => None,
        }
    }

    /// Changes permissions and times of an entry that exists only in the view.
    pub(crate) fn set_virtual(
        &self,
        node: u64,
        permissions: Option<u32>,
        (accessed, modified): (Option<Time>, Option<Time>),
    ) {
        if let Some(Node { kind: Kind::Virtual(mode), times, .. }) = self.lock().nodes.get_mut(&node) {
            if let Some(permissions) = permissions {
                *mode = *mode & !0o7777 | permissions & 0o1777;
            }
            times.accessed = accessed.unwrap_or(times.accessed);
            times.modified = modified.unwrap_or(times.modified);
            times.changed = now();
        }
    }

    /// Returns the times of an entry that exists only in the view.
    pub(crate) fn virtual_times(&self, node: u64) -> Option<VirtualTimes> {
        self.lock().nodes.get(&node).map(|node| node.times)
    }

    /// Returns when an entry that exists only in the view was last created in this folder or removed from it.
    pub(crate) fn entries_changed(&self, node: u64) -> Option<Time> {
        self.lock().nodes.get(&node).and_then(|node| node.entries_changed)
    }

    /// Notes that an entry that existed only in the view is a file now.
    pub(crate) fn became_real(&self, node: u64, file: FileId) {
        let mut table = self.lock();
        let Some(found) = table.nodes.get_mut(&node) else { return };
        let was_virtual = matches!(found.kind, Kind::Virtual(_));
        found.kind = Kind::Real(file);
        table.virtuals -= usize::from(was_virtual);
    }

    /// Returns the entries of a folder that exist only in the view, with their nodes and modes.
    pub(crate) fn virtual_children(&self, parent: u64) -> Vec<(OsString, u64, u32)> {
        let table = self.lock();
        let children = table.names.get(&parent).into_iter().flatten();
        let children = children.filter_map(|(name, node)| match table.nodes.get(node)?.kind {
            Kind::Virtual(mode) => Some((name.clone(), *node, mode)),
            Kind::Real(_) => None,
        });
        children.collect()
    }

    /// Notes that the times of a real folder were set.
    pub(crate) fn times_were_set(&self, node: u64) {
        if let Some(node) = self.lock().nodes.get_mut(&node) {
            node.entries_changed = None;
        }
    }

    /// Returns the entries that exist only in the view, with their modes.
    pub(crate) fn all_virtual(&self) -> Vec<(u64, u32)> {
        let table = self.lock();
        let nodes = table.nodes.iter().filter_map(|(id, node)| match node.kind {
            Kind::Virtual(mode) => Some((*id, mode)),
            Kind::Real(_) => None,
        });
        nodes.collect()
    }

    /// Notes that a name was removed.
    pub(crate) fn retire(&self, parent: u64, name: &OsStr) {
        self.lock().retire(parent, name);
    }

    /// Notes that a name now leads to another file.
    pub(crate) fn retire_node(&self, node: u64) {
        let mut table = self.lock();
        if let Some((parent, name)) = table.nodes.get(&node).map(|node| (node.parent, node.name.clone()))
            && table.named(parent, &name) == Some(node)
        {
            table.retire(parent, &name);
        }
    }

    /// Notes that a name was moved over another.
    pub(crate) fn moved(&self, from: (u64, &OsStr), to: (u64, &OsStr)) {
        let mut table = self.lock();
        if from == to {
            return;
        }
        table.retire(to.0, to.1);
        if let Some(node) = table.take_name(from.0, from.1) {
            table.give_name(node, to.0, to.1);
            if let Some(Node { kind: Kind::Virtual(_), times, .. }) = table.nodes.get_mut(&node) {
                times.changed = now();
                [from.0, to.0].into_iter().for_each(|folder| table.entries_changed(folder));
            }
        }
    }

    /// Notes that two names were exchanged.
    pub(crate) fn exchanged(&self, one: (u64, &OsStr), other: (u64, &OsStr)) {
        let mut table = self.lock();
        let (first, second) = (table.take_name(one.0, one.1), table.take_name(other.0, other.1));
        if let Some(first) = first {
            table.give_name(first, other.0, other.1);
        }
        if let Some(second) = second {
            table.give_name(second, one.0, one.1);
        }
    }

    /// Removes lookups that the kernel has forgotten.
    pub(crate) fn forget(&self, node: u64, lookups: u64) {
        let mut table = self.lock();
        if let Some(found) = table.nodes.get_mut(&node).filter(|_| node != ROOT) {
            found.lookups = found.lookups.saturating_sub(lookups);
            table.drop_unused(node);
        }
    }

    /// Counts an open handle, which keeps the node.
    pub(crate) fn hold(&self, node: u64) {
        if let Some(node) = self.lock().nodes.get_mut(&node) {
            node.handles += 1;
        }
    }

    /// Removes an open handle.
    pub(crate) fn release(&self, node: u64) {
        let mut table = self.lock();
        if let Some(found) = table.nodes.get_mut(&node) {
            found.handles = found.handles.saturating_sub(1);
            table.drop_unused(node);
        }
    }

    /// Stores the state of a file's content, and returns whether it is the same as before.
    pub(crate) fn is_unchanged(&self, node: u64, stamp: Stamp) -> bool {
        let mut table = self.lock();
        table.nodes.get_mut(&node).is_some_and(|node| node.stamp.replace(stamp) == Some(stamp))
    }

    /// Notes that the run got a lock on a file, and returns whether the kernel's pages may be older than its content.
    pub(crate) fn is_outdated(&self, node: u64, stamp: Stamp) -> bool {
        let mut table = self.lock();
        let before = table.nodes.get_mut(&node).map(|node| node.locked.replace(stamp));
        before.is_some_and(|before| before != Some(stamp)) || stamp.is_recent()
    }

    /// Returns whether the run has had a lock on the file. Its attributes may change at any time.
    pub(crate) fn is_shared(&self, node: u64) -> bool {
        self.lock().nodes.get(&node).is_some_and(|node| node.locked.is_some())
    }

    /// Notes that a node is not a folder, so that the kernel may be told to forget it.
    pub(crate) fn is_a_file(&self, node: u64) {
        self.lock().is_a_file(node);
    }

    /// Returns names that the kernel should forget, because it knows too many.
    pub(crate) fn forgettable(&self) -> Vec<(u64, OsString)> {
        self.lock().forgettable(MANY_NODES)
    }

    /// Returns the number of nodes.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().nodes.len()
    }
}

#[cfg(test)]
mod tests;
