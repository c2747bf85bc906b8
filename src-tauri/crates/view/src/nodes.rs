//! Nodes. They identify files to the kernel by number.
//!
//! - A node represents a name in a folder. If its file is replaced or removed, the name gets a new node. Node numbers
//!   are never reused.
//! - Virtual nodes exist only in the view and have no file. The number of nodes of each kind is limited.

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

use crate::wire::{CACHE_TIME, ROOT};
use table::{Node, Table};
pub(crate) use times::{Time, VirtualTimes, now};

/// Number of nodes at which the view starts asking the kernel to forget unused ones.
const FORGET_THRESHOLD: usize = 3 << 18;

/// Maximum number of virtual nodes.
const MAX_VIRTUAL: usize = 1 << 16;

/// File type bits of a mode.
pub(crate) const TYPE_MASK: u32 = 0o170_000;
pub(crate) const FOLDER_TYPE: u32 = 0o040_000;

/// Returns `true` for the mode of a folder.
pub(crate) fn is_folder_mode(mode: u32) -> bool {
    mode & TYPE_MASK == FOLDER_TYPE
}

/// Identity of a file: its device and inode numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileId {
    pub(crate) fn new(stat: &Metadata) -> Self {
        Self { device: stat.dev(), inode: stat.ino() }
    }
}

/// File found at the path of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundAt {
    pub(crate) file: FileId,
    pub(crate) is_folder: bool,
    /// `true` if a folder is mounted at or below the path.
    pub(crate) is_mounted: bool,
}

/// Size and modification time of a file, which reveal content changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentStamp {
    size: u64,
    modified: (i64, i64),
}

impl ContentStamp {
    pub(crate) fn new(stat: &Metadata) -> Self {
        Self { size: stat.size(), modified: (stat.mtime(), stat.mtime_nsec()) }
    }

    /// Returns `true` if the file changed so recently that another change might not alter the modification time.
    fn is_recent(self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.modified.0 >= now.cast_signed() - 1
    }
}

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// File on a real file system.
    Real(FileId),
    /// Entry that exists only in the view, with its type and permissions (`st_mode`).
    Virtual(u32),
}

/// All nodes of a view.
#[derive(Debug)]
pub(crate) struct Nodes(Mutex<Table>);

impl Nodes {
    pub(crate) fn new(root: FileId) -> Self {
        Self(Mutex::new(Table::new(root)))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a node's path, relative to the root.
    pub(crate) fn path(&self, node: u64) -> Result<PathBuf, Errno> {
        self.lock().path(node).ok_or(Errno::NOENT)
    }

    /// Returns a node's kind. Fails if its name was removed or replaced.
    pub(crate) fn kind(&self, node: u64) -> Result<NodeKind, Errno> {
        let table = self.lock();
        table.path(node).and_then(|_| table.nodes.get(&node)).map(|node| node.kind).ok_or(Errno::NOENT)
    }

    /// Returns the node of the folder that contains a node.
    pub(crate) fn parent(&self, node: u64) -> Option<u64> {
        self.lock().nodes.get(&node).map(|node| node.parent)
    }

    /// Returns the node and kind of a name in a folder, or `None` if the name has no node.
    pub(crate) fn by_name(&self, parent: u64, name: &OsStr) -> Option<(u64, NodeKind)> {
        let table = self.lock();
        let node = table.by_name(parent, name)?;
        Some((node, table.nodes.get(&node)?.kind))
    }

    /// Returns the node of a file found under a name, and counts the lookup. The name keeps its node in the cases that
    /// [`take_over`](Self::take_over) names.
    pub(crate) fn look_up_file(&self, parent: u64, name: &OsStr, file: FoundAt) -> Result<u64, Errno> {
        let mut table = self.lock();
        let kind = NodeKind::Real(file.file);
        let node = match table.by_name(parent, name) {
            Some(node) if table.nodes.get(&node).is_some_and(|known| known.kind == kind) => node,
            Some(node) if table.take_over(node, file) => node,
            Some(_) | None => {
                table.retire(parent, name);
                table.add(parent, name, kind)?
            }
        };
        table.count_lookup(node);
        Ok(node)
    }

    /// Returns `true` if the kernel looked up a name less than [`CACHE_TIME`] ago.
    pub(crate) fn is_cached(&self, parent: u64, name: &OsStr) -> bool {
        let table = self.lock();
        let node = table.by_name(parent, name).and_then(|node| table.nodes.get(&node));
        node.and_then(|node| node.last_lookup).is_some_and(|at| at.elapsed() < CACHE_TIME)
    }

    /// Creates a virtual entry without counting a lookup.
    pub(crate) fn create_virtual(&self, parent: u64, name: &OsStr, mode: u32) -> Result<(), Errno> {
        let mut table = self.lock();
        if table.virtual_count >= MAX_VIRTUAL {
            return Err(Errno::NOSPC);
        }
        table.retire(parent, name);
        table.add(parent, name, NodeKind::Virtual(mode))?;
        table.virtual_count += 1;
        Ok(())
    }

    /// Counts a lookup of a virtual entry and returns its node and mode, or `None` for a real file.
    pub(crate) fn look_up_virtual(&self, parent: u64, name: &OsStr) -> Option<(u64, u32)> {
        let mut table = self.lock();
        let node = table.by_name(parent, name)?;
        match table.nodes.get(&node)?.kind {
            NodeKind::Virtual(mode) => {
                table.count_lookup(node);
                Some((node, mode))
            }
            NodeKind::Real(_) => None,
        }
    }

    /// Changes a virtual entry's permissions and times.
    pub(crate) fn set_virtual_attributes(
        &self,
        node: u64,
        permissions: Option<u32>,
        (accessed, modified): (Option<Time>, Option<Time>),
    ) {
        if let Some(Node { kind: NodeKind::Virtual(mode), times, .. }) = self.lock().nodes.get_mut(&node) {
            if let Some(permissions) = permissions {
                *mode = *mode & !0o7777 | permissions & 0o1777;
            }
            times.accessed = accessed.unwrap_or(times.accessed);
            times.modified = modified.unwrap_or(times.modified);
            times.changed = now();
        }
    }

    /// Returns the times of a virtual entry, or `None` for a real file.
    pub(crate) fn virtual_times(&self, node: u64) -> Option<VirtualTimes> {
        self.lock().nodes.get(&node).map(|node| node.times)
    }

    /// Returns the modes of a folder's virtual entries. In very large folders, returns only some of them to limit the
    /// time.
    pub(crate) fn virtual_modes_in(&self, parent: u64) -> Vec<u32> {
        const MAX_COUNT: usize = 1000;
        let table = self.lock();
        let children = table.names.get(&parent).into_iter().flatten().take(MAX_COUNT);
        let kinds = children.filter_map(|(_, node)| table.nodes.get(node).map(|node| node.kind));
        kinds
            .filter_map(|kind| match kind {
                NodeKind::Virtual(mode) => Some(mode),
                NodeKind::Real(_) => None,
            })
            .collect()
    }

    /// Returns the time at which a virtual entry was last created in or removed from this folder.
    pub(crate) fn entries_changed(&self, node: u64) -> Option<Time> {
        self.lock().nodes.get(&node).and_then(|node| node.entries_changed)
    }

    /// Assigns a different file to a node if the node stays the same. Returns `false` if the file needs another node.
    ///
    /// A virtual folder keeps its node when its real folder appears, because the run may already be working in it. The
    /// same applies to a file that the view is creating. A folder with a mount at or below it keeps its node when another
    /// folder replaces it, because the kernel would remove the mount.
    pub(crate) fn take_over(&self, node: u64, file: FoundAt) -> bool {
        self.lock().take_over(node, file)
    }

    /// Records that a virtual entry now has a real file.
    pub(crate) fn set_real(&self, node: u64, file: FileId) {
        self.lock().set_real(node, file);
    }

    /// Records that the real file of a virtual entry is being created, so that a lookup that finds the file first
    /// returns the same node.
    pub(crate) fn begin_creation(&self, node: u64) {
        if let Some(node) = self.lock().nodes.get_mut(&node) {
            node.is_being_created = true;
        }
    }

    /// Returns the name, node and mode of each virtual entry in a folder.
    pub(crate) fn virtual_children(&self, parent: u64) -> Vec<(OsString, u64, u32)> {
        let table = self.lock();
        let children = table.names.get(&parent).into_iter().flatten();
        let children = children.filter_map(|(name, node)| match table.nodes.get(node)?.kind {
            NodeKind::Virtual(mode) => Some((name.clone(), *node, mode)),
            NodeKind::Real(_) => None,
        });
        children.collect()
    }

    /// Records that the times of a real folder were set.
    pub(crate) fn clear_entries_changed(&self, node: u64) {
        if let Some(node) = self.lock().nodes.get_mut(&node) {
            node.entries_changed = None;
        }
    }

    /// Returns all virtual entries with their modes.
    pub(crate) fn all_virtual(&self) -> Vec<(u64, u32)> {
        let table = self.lock();
        let nodes = table.nodes.iter().filter_map(|(id, node)| match node.kind {
            NodeKind::Virtual(mode) => Some((*id, mode)),
            NodeKind::Real(_) => None,
        });
        nodes.collect()
    }

    /// Records that a name was removed.
    pub(crate) fn retire(&self, parent: u64, name: &OsStr) {
        self.lock().retire(parent, name);
    }

    /// Records that a node's name now refers to a different file.
    pub(crate) fn retire_node(&self, node: u64) {
        let mut table = self.lock();
        if let Some((parent, name)) = table.nodes.get(&node).map(|node| (node.parent, node.name.clone()))
            && table.by_name(parent, &name) == Some(node)
        {
            table.retire(parent, &name);
        }
    }

    /// Records that a name was moved, replacing the entry with the new name, if any.
    pub(crate) fn move_name(&self, from: (u64, &OsStr), to: (u64, &OsStr)) {
        let mut table = self.lock();
        if from == to {
            return;
        }
        table.retire(to.0, to.1);
        if let Some(node) = table.remove_name(from.0, from.1) {
            table.assign_name(node, to.0, to.1);
            if let Some(Node { kind: NodeKind::Virtual(_), times, .. }) = table.nodes.get_mut(&node) {
                times.changed = now();
                [from.0, to.0].into_iter().for_each(|folder| table.touch_entries(folder));
            }
        }
    }

    /// Records that two names were exchanged.
    pub(crate) fn exchange_names(&self, one: (u64, &OsStr), other: (u64, &OsStr)) {
        let mut table = self.lock();
        let (first, second) = (table.remove_name(one.0, one.1), table.remove_name(other.0, other.1));
        if let Some(first) = first {
            table.assign_name(first, other.0, other.1);
        }
        if let Some(second) = second {
            table.assign_name(second, one.0, one.1);
        }
    }

    /// Subtracts the lookups that the kernel has forgotten, and removes the node if it is unused.
    pub(crate) fn forget(&self, node: u64, lookups: u64) {
        let mut table = self.lock();
        if let Some(found) = table.nodes.get_mut(&node).filter(|_| node != ROOT) {
            found.lookups = found.lookups.saturating_sub(lookups);
            table.drop_unused(node);
        }
    }

    /// Counts an open handle. A node with open handles is not removed.
    pub(crate) fn add_handle(&self, node: u64) {
        if let Some(node) = self.lock().nodes.get_mut(&node) {
            node.handles += 1;
        }
    }

    /// Decrements the number of open handles, and removes the node if it is unused.
    pub(crate) fn remove_handle(&self, node: u64) {
        let mut table = self.lock();
        if let Some(found) = table.nodes.get_mut(&node) {
            found.handles = found.handles.saturating_sub(1);
            table.drop_unused(node);
        }
    }

    /// Stores the current stamp of a file's content. Returns `true` if the stamp has not changed.
    pub(crate) fn update_stamp(&self, node: u64, stamp: ContentStamp) -> bool {
        let mut table = self.lock();
        table.nodes.get_mut(&node).is_some_and(|node| node.stamp.replace(stamp) == Some(stamp))
    }

    /// Records that the run has locked a file. Returns `true` if the kernel's cached pages may be outdated.
    pub(crate) fn update_lock_stamp(&self, node: u64, stamp: ContentStamp) -> bool {
        let mut table = self.lock();
        let before = table.nodes.get_mut(&node).map(|node| node.lock_stamp.replace(stamp));
        before.is_some_and(|before| before != Some(stamp)) || stamp.is_recent()
    }

    /// Returns `true` if the run has ever locked the file. Other programs may change such a file at any time.
    pub(crate) fn was_locked(&self, node: u64) -> bool {
        self.lock().nodes.get(&node).is_some_and(|node| node.lock_stamp.is_some())
    }

    /// Records that a node is not a folder so that the kernel can be asked to forget it.
    pub(crate) fn mark_as_file(&self, node: u64) {
        self.lock().mark_as_file(node);
    }

    /// Returns names that the kernel should forget. Returns none while there are few nodes.
    pub(crate) fn names_to_forget(&self) -> Vec<(u64, OsString)> {
        self.lock().names_to_forget(FORGET_THRESHOLD)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().nodes.len()
    }
}

#[cfg(test)]
mod tests;
