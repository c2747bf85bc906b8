//! Nodes: the files that the kernel knows, by number.
//!
//! - A node is a name in a folder. A name gets a new node when its file was replaced or removed. Numbers are never used again.
//! - Entries that exist only in the view are nodes without a file. The number of both kinds is bounded.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{OsStr, OsString},
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::io::Errno;

use crate::wire::ROOT;

/// Maximum number of nodes. The kernel forgets unused ones only when it needs memory; until then, further names fail with `ENFILE`.
const MOST_NODES: usize = 1 << 20;

/// Maximum number of entries that exist only in the view.
const MOST_VIRTUAL: usize = 1 << 16;

/// File behind a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
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
}

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// File on the disk.
    Real(FileId),
    /// Entry that exists only in the view, with its mode.
    Virtual(u32),
}

#[derive(Debug)]
struct Node {
    parent: u64,
    name: OsString,
    kind: Kind,
    /// False once the name has been removed or leads to another file.
    is_current: bool,
    lookups: u64,
    children: u64,
    handles: u64,
    stamp: Option<Stamp>,
}

/// All nodes.
#[derive(Debug)]
pub(crate) struct Nodes(Mutex<Table>);

#[derive(Debug)]
struct Table {
    nodes: HashMap<u64, Node>,
    names: HashMap<u64, BTreeMap<OsString, u64>>,
    next: u64,
    virtuals: usize,
}

impl Nodes {
    pub(crate) fn new(root: FileId) -> Self {
        let node = Node {
            parent: ROOT,
            name: OsString::new(),
            kind: Kind::Real(root),
            is_current: true,
            lookups: 1,
            children: 0,
            handles: 0,
            stamp: None,
        };
        Self(Mutex::new(Table {
            nodes: HashMap::from([(ROOT, node)]),
            names: HashMap::new(),
            next: ROOT + 1,
            virtuals: 0,
        }))
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

    /// Changes the permissions of an entry that exists only in the view.
    pub(crate) fn set_virtual_mode(&self, node: u64, permissions: u32) {
        if let Some(Node { kind: Kind::Virtual(mode), .. }) = self.lock().nodes.get_mut(&node) {
            *mode = *mode & !0o7777 | permissions & 0o777;
        }
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

    /// Returns the number of nodes.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().nodes.len()
    }
}

impl Table {
    fn named(&self, parent: u64, name: &OsStr) -> Option<u64> {
        self.names.get(&parent)?.get(name).copied()
    }

    fn path(&self, node: u64) -> Option<PathBuf> {
        let (mut names, mut at) = (Vec::new(), node);
        while at != ROOT {
            let found = self.nodes.get(&at).filter(|node| node.is_current)?;
            names.push(found.name.as_os_str());
            at = found.parent;
        }
        Some(names.iter().rev().map(Path::new).collect())
    }

    fn add(&mut self, parent: u64, name: &OsStr, kind: Kind) -> Result<u64, Errno> {
        if self.nodes.len() >= MOST_NODES {
            return Err(Errno::NFILE);
        }
        if !self.nodes.get(&parent).is_some_and(|parent| parent.is_current) {
            return Err(Errno::NOENT);
        }
        let number = self.next;
        self.next += 1;
        let node = Node {
            parent,
            name: name.to_owned(),
            kind,
            is_current: true,
            lookups: 0,
            children: 0,
            handles: 0,
            stamp: None,
        };
        self.nodes.insert(number, node);
        self.count_child(parent);
        self.names.entry(parent).or_default().insert(name.to_owned(), number);
        Ok(number)
    }

    fn count_lookup(&mut self, node: u64) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.lookups += 1;
        }
    }

    fn count_child(&mut self, parent: u64) {
        if let Some(parent) = self.nodes.get_mut(&parent) {
            parent.children += 1;
        }
    }

    fn retire(&mut self, parent: u64, name: &OsStr) {
        let Some(node) = self.take_name(parent, name) else { return };
        if let Some(found) = self.nodes.get_mut(&node) {
            found.is_current = false;
            if matches!(found.kind, Kind::Virtual(_)) {
                self.virtuals -= 1;
                // Not counted again when the node is dropped.
                found.kind = Kind::Real(FileId { device: 0, inode: 0 });
            }
        }
        self.drop_unused(node);
    }

    fn take_name(&mut self, parent: u64, name: &OsStr) -> Option<u64> {
        let names = self.names.get_mut(&parent)?;
        let node = names.remove(name);
        if names.is_empty() {
            self.names.remove(&parent);
        }
        node
    }

    /// Gives a node that has lost its name another one.
    fn give_name(&mut self, node: u64, parent: u64, name: &OsStr) {
        let Some(found) = self.nodes.get_mut(&node) else { return };
        let before = std::mem::replace(&mut found.parent, parent);
        found.name = name.to_owned();
        self.names.entry(parent).or_default().insert(name.to_owned(), node);
        self.count_child(parent);
        self.lose_child(before);
    }

    fn lose_child(&mut self, parent: u64) {
        if let Some(found) = self.nodes.get_mut(&parent) {
            found.children = found.children.saturating_sub(1);
            self.drop_unused(parent);
        }
    }

    /// Drops a node that neither the kernel nor a handle nor a child needs.
    fn drop_unused(&mut self, node: u64) {
        let mut at = node;
        while at != ROOT {
            let Some(found) = self.nodes.get(&at) else { return };
            let is_virtual = found.is_current && matches!(found.kind, Kind::Virtual(_));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64) -> FileId {
        FileId { device: 1, inode }
    }

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    #[test]
    fn a_replaced_file_is_another_node_and_numbers_are_not_used_again() {
        let nodes = Nodes::new(file(1));
        let first = nodes.found(ROOT, name("a"), file(2)).unwrap();
        assert_eq!(nodes.found(ROOT, name("a"), file(2)).unwrap(), first);
        let second = nodes.found(ROOT, name("a"), file(3)).unwrap();
        assert_ne!(first, second);
        assert_eq!(nodes.path(first), Err(Errno::NOENT));
        assert_eq!(nodes.path(second).unwrap(), Path::new("a"));
        nodes.forget(second, 1);
        nodes.forget(first, 2);
        assert_eq!(nodes.len(), 1);
        assert!(nodes.found(ROOT, name("a"), file(3)).unwrap() > second);
    }

    #[test]
    fn a_folder_that_is_moved_takes_its_entries_along() {
        let nodes = Nodes::new(file(1));
        let folder = nodes.found(ROOT, name("d"), file(2)).unwrap();
        let inner = nodes.found(folder, name("x"), file(3)).unwrap();
        nodes.moved((ROOT, name("d")), (ROOT, name("e")));
        assert_eq!(nodes.path(inner).unwrap(), Path::new("e/x"));
        // The parent stays while a child is known.
        nodes.forget(folder, 1);
        assert_eq!(nodes.path(inner).unwrap(), Path::new("e/x"));
        nodes.forget(inner, 1);
        assert_eq!(nodes.len(), 1);
    }

    #[test]
    fn names_can_be_exchanged() {
        let nodes = Nodes::new(file(1));
        let [one, two] = [("a", 2), ("b", 3)].map(|(n, i)| nodes.found(ROOT, name(n), file(i)).unwrap());
        nodes.exchanged((ROOT, name("a")), (ROOT, name("b")));
        assert_eq!(nodes.path(one).unwrap(), Path::new("b"));
        assert_eq!(nodes.path(two).unwrap(), Path::new("a"));
    }

    #[test]
    fn virtual_entries_stay_without_lookups_until_they_are_removed() {
        let nodes = Nodes::new(file(1));
        nodes.make_virtual(ROOT, name("v"), 0o100_600).unwrap();
        let (node, mode) = nodes.found_virtual(ROOT, name("v")).unwrap();
        assert_eq!(mode, 0o100_600);
        nodes.forget(node, 1);
        assert_eq!(nodes.virtual_children(ROOT), [(name("v").to_owned(), node, 0o100_600)]);
        nodes.retire(ROOT, name("v"));
        assert_eq!((nodes.len(), nodes.virtual_children(ROOT)), (1, vec![]));
    }

    #[test]
    fn virtual_entries_are_bounded() {
        let nodes = Nodes::new(file(1));
        for number in 0..MOST_VIRTUAL {
            nodes.make_virtual(ROOT, name(&number.to_string()), 0o100_600).unwrap();
        }
        assert_eq!(nodes.make_virtual(ROOT, name("one more"), 0o100_600), Err(Errno::NOSPC));
        nodes.retire(ROOT, name("0"));
        nodes.make_virtual(ROOT, name("one more"), 0o100_600).unwrap();
    }

    #[test]
    fn a_file_that_is_open_keeps_its_node() {
        let nodes = Nodes::new(file(1));
        let node = nodes.found(ROOT, name("a"), file(2)).unwrap();
        nodes.hold(node);
        nodes.forget(node, 1);
        nodes.retire(ROOT, name("a"));
        assert_eq!((nodes.path(node), nodes.len()), (Err(Errno::NOENT), 2));
        nodes.release(node);
        assert_eq!(nodes.len(), 1);
    }
}
