//! Table of nodes and their names.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::{
    FileId, NodeKind, Stamp,
    times::{Time, VirtualTimes, now},
};
use crate::wire::ROOT;

/// Maximum number of nodes. The view asks the kernel to forget unused nodes long before that.
const MAX_NODES: usize = 1 << 20;

/// Number of new nodes after which the view asks the kernel to forget twice as many unused nodes.
const FORGOTTEN_AT_ONCE: u64 = 4096;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: u64,
    pub(super) name: OsString,
    pub(super) kind: NodeKind,
    /// `false` once the name has been removed or belongs to a different file.
    pub(super) is_current: bool,
    pub(super) lookups: u64,
    pub(super) children: u64,
    pub(super) handles: u64,
    is_folder: bool,
    pub(super) stamp: Option<Stamp>,
    /// Stamp of the content when the run last locked the file, or `None` if it never has.
    pub(super) locked: Option<Stamp>,
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
    swept: (u64, u64),
    pub(super) virtuals: usize,
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

    fn new(parent: u64, name: &OsStr, kind: NodeKind) -> Self {
        Self {
            parent,
            name: name.to_owned(),
            kind,
            is_current: true,
            lookups: 0,
            children: 0,
            handles: 0,
            is_folder: true,
            stamp: None,
            locked: None,
            times: VirtualTimes::now(),
            entries_changed: None,
        }
    }
}

impl Table {
    pub(super) fn new(root: FileId) -> Self {
        let root = Node { lookups: 1, ..Node::new(ROOT, OsStr::new(""), NodeKind::Real(root)) };
        let nodes = HashMap::from([(ROOT, root)]);
        Self { nodes, names: HashMap::new(), next: ROOT + 1, swept: (ROOT, 0), virtuals: 0 }
    }

    /// Returns names that the kernel can forget, if there are at least `most` nodes. Each call continues where the
    /// previous one stopped.
    pub(super) fn forgettable(&mut self, most: usize) -> Vec<(u64, OsString)> {
        let (last, numbers) = self.swept;
        if self.nodes.len() < most || self.next < numbers.saturating_add(FORGOTTEN_AT_ONCE) {
            return Vec::new();
        }
        let unused = self.nodes.iter().filter(|(_, node)| node.is_unused());
        let mut unused: Vec<u64> = unused.map(|(id, _)| *id).collect();
        unused.sort_unstable();
        let start = unused.partition_point(|node| *node <= last);
        let in_turn = unused.iter().skip(start).chain(unused.iter().take(start));
        let most = usize::try_from(2 * FORGOTTEN_AT_ONCE).unwrap_or(0);
        self.swept.1 = self.next;
        let mut names = Vec::new();
        for node in in_turn.take(most) {
            self.swept.0 = *node;
            names.extend(self.nodes.get(node).map(|node| (node.parent, node.name.clone())));
        }
        names
    }

    pub(super) fn named(&self, parent: u64, name: &OsStr) -> Option<u64> {
        self.names.get(&parent)?.get(name).copied()
    }

    pub(super) fn path(&self, node: u64) -> Option<PathBuf> {
        let (mut names, mut at) = (Vec::new(), node);
        while at != ROOT {
            let found = self.nodes.get(&at).filter(|node| node.is_current)?;
            names.push(found.name.as_os_str());
            at = found.parent;
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
        self.count_child(parent);
        if let NodeKind::Virtual(_) = kind {
            self.entries_changed(parent);
        }
        self.names.entry(parent).or_default().insert(name.to_owned(), number);
        Ok(number)
    }

    pub(super) fn count_lookup(&mut self, node: u64) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.lookups += 1;
        }
    }

    /// Records that a node is not a folder.
    pub(super) fn is_a_file(&mut self, node: u64) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.is_folder = false;
        }
    }

    pub(super) fn count_child(&mut self, parent: u64) {
        if let Some(parent) = self.nodes.get_mut(&parent) {
            parent.children += 1;
        }
    }

    pub(super) fn retire(&mut self, parent: u64, name: &OsStr) {
        let Some(node) = self.take_name(parent, name) else { return };
        if let Some(found) = self.nodes.get_mut(&node) {
            found.is_current = false;
            if matches!(found.kind, NodeKind::Virtual(_)) {
                self.virtuals -= 1;
                // Prevents the node from being subtracted a second time when it is dropped.
                found.kind = NodeKind::Real(FileId { device: 0, inode: 0 });
                self.entries_changed(parent);
            }
        }
        self.drop_unused(node);
    }

    /// Records that a folder's virtual entries have changed.
    pub(super) fn entries_changed(&mut self, folder: u64) {
        if let Some(folder) = self.nodes.get_mut(&folder) {
            let now = now();
            folder.entries_changed = Some(now);
            (folder.times.modified, folder.times.changed) = (now, now);
        }
    }

    pub(super) fn take_name(&mut self, parent: u64, name: &OsStr) -> Option<u64> {
        let names = self.names.get_mut(&parent)?;
        let node = names.remove(name);
        if names.is_empty() {
            self.names.remove(&parent);
        }
        node
    }

    /// Assigns a name to a node that has none.
    pub(super) fn give_name(&mut self, node: u64, parent: u64, name: &OsStr) {
        let Some(found) = self.nodes.get_mut(&node) else { return };
        let before = std::mem::replace(&mut found.parent, parent);
        found.name = name.to_owned();
        self.names.entry(parent).or_default().insert(name.to_owned(), node);
        self.count_child(parent);
        self.lose_child(before);
    }

    pub(super) fn lose_child(&mut self, parent: u64) {
        if let Some(found) = self.nodes.get_mut(&parent) {
            found.children = found.children.saturating_sub(1);
            self.drop_unused(parent);
        }
    }

    /// Removes a node if it has no lookups, handles or children. Then does the same for its parents.
    pub(super) fn drop_unused(&mut self, node: u64) {
        let mut at = node;
        while at != ROOT {
            let Some(found) = self.nodes.get(&at) else { return };
            let is_virtual = found.is_current && matches!(found.kind, NodeKind::Virtual(_));
            if found.lookups > 0 || found.children > 0 || found.handles > 0 || is_virtual {
                return;
            }
            let Some(dropped) = self.nodes.remove(&at) else { return };
            if self.named(dropped.parent, &dropped.name) == Some(at) {
                self.take_name(dropped.parent, &dropped.name);
            }
            at = dropped.parent;
            if let Some(parent) = self.nodes.get_mut(&at) {
                parent.children = parent.children.saturating_sub(1);
            }
        }
    }
}
