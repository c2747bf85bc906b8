//! Table of nodes and their names.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Instant,
};

use rustix::io::Errno;

use super::{
    ContentStamp, FileId, FoundAt, NodeKind, is_folder_mode,
    times::{Time, VirtualTimes, now},
};
use crate::wire::ROOT;

/// Maximum number of nodes. The view asks the kernel to forget unused nodes long before that.
const MAX_NODES: usize = 1 << 20;

/// Number of new nodes after which the view asks the kernel to forget twice as many unused nodes.
const SWEEP_INTERVAL: u64 = 4096;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: u64,
    pub(super) name: OsString,
    pub(super) kind: NodeKind,
    /// `false` once the name has been removed or belongs to a different file.
    pub(super) is_current: bool,
    pub(super) lookups: u64,
    /// Time of the last lookup, or `None` if the kernel has not looked up the node.
    pub(super) last_lookup: Option<Instant>,
    pub(super) children: u64,
    pub(super) handles: u64,
    is_folder: bool,
    /// `true` while the real file of a virtual entry is being created.
    pub(super) is_being_created: bool,
    pub(super) stamp: Option<ContentStamp>,
    /// Stamp of the content when the run last locked the file, or `None` if it never has.
    pub(super) lock_stamp: Option<ContentStamp>,
    /// Times of a virtual entry.
    pub(super) times: VirtualTimes,
    /// Time at which a virtual entry was last created in or removed from this folder.
    pub(super) entries_changed: Option<Time>,
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) nodes: HashMap<u64, Node>,
    pub(super) names: HashMap<u64, BTreeMap<OsString, u64>>,
    next: u64,
    /// Last node that the kernel was asked to forget, and the value of `next` at that time.
    last_sweep: (u64, u64),
    pub(super) virtual_count: usize,
}

impl Node {
    /// Returns `true` if the node is kept only because the kernel has looked it up. Always `false` for folders, because
    /// the kernel would unmount everything below a forgotten folder.
    fn is_unused(&self) -> bool {
        self.is_current
            && !self.is_folder
            && self.children == 0
            && self.handles == 0
            && matches!(self.kind, NodeKind::Real(_))
    }

    /// Returns `true` if the node stays the same with this file.
    fn keeps(&self, found: FoundAt) -> bool {
        match self.kind {
            NodeKind::Virtual(mode) if found.is_folder => is_folder_mode(mode),
            NodeKind::Virtual(_) => self.is_being_created,
            NodeKind::Real(_) => self.is_folder && found.is_folder && found.is_mounted,
        }
    }

    fn new(parent: u64, name: &OsStr, kind: NodeKind) -> Self {
        Self {
            parent,
            name: name.to_owned(),
            kind,
            is_current: true,
            lookups: 0,
            last_lookup: None,
            children: 0,
            handles: 0,
            is_folder: true,
            is_being_created: false,
            stamp: None,
            lock_stamp: None,
            times: VirtualTimes::now(),
            entries_changed: None,
        }
    }
}

impl Table {
    pub(super) fn new(root: FileId) -> Self {
        let root = Node { lookups: 1, ..Node::new(ROOT, OsStr::new(""), NodeKind::Real(root)) };
        let nodes = HashMap::from([(ROOT, root)]);
        Self { nodes, names: HashMap::new(), next: ROOT + 1, last_sweep: (ROOT, 0), virtual_count: 0 }
    }

    /// Returns names that the kernel can forget, if there are at least `most` nodes. Each call continues where the
    /// previous one stopped.
    pub(super) fn names_to_forget(&mut self, min_nodes: usize) -> Vec<(u64, OsString)> {
        let (last, numbers) = self.last_sweep;
        if self.nodes.len() < min_nodes || self.next < numbers.saturating_add(SWEEP_INTERVAL) {
            return Vec::new();
        }
        let unused = self.nodes.iter().filter(|(_, node)| node.is_unused());
        let mut unused: Vec<u64> = unused.map(|(id, _)| *id).collect();
        unused.sort_unstable();
        let start = unused.partition_point(|node| *node <= last);
        let rotated = unused.iter().skip(start).chain(unused.iter().take(start));
        let max_count = usize::try_from(2 * SWEEP_INTERVAL).unwrap_or(0);
        self.last_sweep.1 = self.next;
        let mut names = Vec::new();
        for node in rotated.take(max_count) {
            self.last_sweep.0 = *node;
            names.extend(self.nodes.get(node).map(|node| (node.parent, node.name.clone())));
        }
        names
    }

    pub(super) fn by_name(&self, parent: u64, name: &OsStr) -> Option<u64> {
        self.names.get(&parent)?.get(name).copied()
    }

    pub(super) fn path(&self, node: u64) -> Option<PathBuf> {
        let (mut names, mut current) = (Vec::new(), node);
        while current != ROOT {
            let found = self.nodes.get(&current).filter(|node| node.is_current)?;
            names.push(found.name.as_os_str());
            current = found.parent;
        }
        Some(names.iter().rev().map(Path::new).collect())
    }

    pub(super) fn add(&mut self, parent: u64, name: &OsStr, kind: NodeKind) -> Result<u64, Errno> {
        if self.nodes.len() >= MAX_NODES {
            return Err(Errno::NFILE);
        }
        if !self.nodes.get(&parent).is_some_and(|parent| parent.is_current) {
            return Err(Errno::NOENT);
        }
        let number = self.next;
        self.next += 1;
        self.nodes.insert(number, Node::new(parent, name, kind));
        self.add_child(parent);
        if let NodeKind::Virtual(_) = kind {
            self.touch_entries(parent);
        }
        self.names.entry(parent).or_default().insert(name.to_owned(), number);
        Ok(number)
    }

    pub(super) fn count_lookup(&mut self, node: u64) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.lookups += 1;
            node.last_lookup = Some(Instant::now());
        }
    }

    /// Records that a node is not a folder.
    pub(super) fn mark_as_file(&mut self, node: u64) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.is_folder = false;
        }
    }

    pub(super) fn add_child(&mut self, parent: u64) {
        if let Some(parent) = self.nodes.get_mut(&parent) {
            parent.children += 1;
        }
    }

    pub(super) fn take_over(&mut self, node: u64, found: FoundAt) -> bool {
        let is_kept = self.nodes.get(&node).is_some_and(|node| node.keeps(found));
        if is_kept {
            self.set_real(node, found.file);
        }
        is_kept
    }

    pub(super) fn set_real(&mut self, node: u64, file: FileId) {
        let Some(found) = self.nodes.get_mut(&node) else { return };
        let was_virtual = matches!(found.kind, NodeKind::Virtual(_));
        found.kind = NodeKind::Real(file);
        found.is_being_created = false;
        self.virtual_count -= usize::from(was_virtual);
    }

    pub(super) fn retire(&mut self, parent: u64, name: &OsStr) {
        let Some(node) = self.remove_name(parent, name) else { return };
        if let Some(found) = self.nodes.get_mut(&node) {
            found.is_current = false;
            if matches!(found.kind, NodeKind::Virtual(_)) {
                self.virtual_count -= 1;
                // Prevents the node from being subtracted a second time when it is dropped.
                found.kind = NodeKind::Real(FileId { device: 0, inode: 0 });
                self.touch_entries(parent);
            }
        }
        self.drop_unused(node);
    }

    /// Records that a folder's virtual entries have changed.
    pub(super) fn touch_entries(&mut self, folder: u64) {
        if let Some(folder) = self.nodes.get_mut(&folder) {
            let now = now();
            folder.entries_changed = Some(now);
            (folder.times.modified, folder.times.changed) = (now, now);
        }
    }

    pub(super) fn remove_name(&mut self, parent: u64, name: &OsStr) -> Option<u64> {
        let names = self.names.get_mut(&parent)?;
        let node = names.remove(name);
        if names.is_empty() {
            self.names.remove(&parent);
        }
        node
    }

    /// Assigns a name to a node that has none.
    pub(super) fn assign_name(&mut self, node: u64, parent: u64, name: &OsStr) {
        let Some(found) = self.nodes.get_mut(&node) else { return };
        let before = std::mem::replace(&mut found.parent, parent);
        found.name = name.to_owned();
        self.names.entry(parent).or_default().insert(name.to_owned(), node);
        self.add_child(parent);
        self.remove_child(before);
    }

    pub(super) fn remove_child(&mut self, parent: u64) {
        if let Some(found) = self.nodes.get_mut(&parent) {
            found.children = found.children.saturating_sub(1);
            self.drop_unused(parent);
        }
    }

    /// Removes a node if it has no lookups, handles or children. Then does the same for its parents.
    pub(super) fn drop_unused(&mut self, node: u64) {
        let mut current = node;
        while current != ROOT {
            let Some(found) = self.nodes.get(&current) else { return };
            let is_virtual = found.is_current && matches!(found.kind, NodeKind::Virtual(_));
            if found.lookups > 0 || found.children > 0 || found.handles > 0 || is_virtual {
                return;
            }
            let Some(dropped) = self.nodes.remove(&current) else { return };
            if self.by_name(dropped.parent, &dropped.name) == Some(current) {
                self.remove_name(dropped.parent, &dropped.name);
            }
            current = dropped.parent;
            if let Some(parent) = self.nodes.get_mut(&current) {
                parent.children = parent.children.saturating_sub(1);
            }
        }
    }
}
