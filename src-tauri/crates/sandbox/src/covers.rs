//! What lies over hidden and closed paths in a running sandbox, and whether it still does.
//!
//! - When a file is removed, or another is renamed over it, the kernel takes the mounts on it away in every namespace; when
//!   it is renamed, they go along. Nothing in a sandbox can do that to what covers a path, but programs outside can.
//! - INVARIANT: a cover is in place when its path leads to the very mount that was found there at first, which was a mount
//!   of its own. Below a folder that the sandbox may rename it is the folder it is in, and its name in it, that count.
//! - What the sandbox mounts later over a covered path, or around it, is no loss: the innermost mount decides, and its
//!   covers are looked at.

mod traces;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    event::{PollFd, PollFlags},
    fs::{AtFlags, CWD, Mode, OFlags, StatxAttributes, StatxFlags, openat, statx},
    io::Errno,
};

use self::watch::{Name, Watch};
use crate::{
    mountinfo::MountInfo,
    persistence::{Mark, ask},
    place::{is_at_or_below, is_below, mount_id, open_plain, open_plain_end},
    shape::{Covered, Shape},
};

/// The covers of one sandbox.
#[derive(Debug)]
pub(crate) struct Covers {
    /// The sandbox's root directory.
    root: OwnedFd,
    /// Its table of mounts, which has news when mounts come or go.
    table: OwnedFd,
    watch: Watch,
    /// What is mounted in it, by path.
    trees: BTreeMap<String, Tree>,
}

/// A tree of the host's, as it is mounted in the sandbox.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// The mount at its top, once that is known.
    id: Option<u64>,
    covers: Vec<Cover>,
    watched: Vec<Name>,
}

#[derive(Debug)]
struct Cover {
    path: String,
    /// Whether it is there for what is written, and not for what is read.
    closes: bool,
    /// Whether nothing in the sandbox can rename a folder on the way to it.
    fixed: bool,
    /// Whether another tree is mounted at it or around it.
    shadowed: bool,
    /// As it is watched, if it is.
    name: Option<Name>,
    seen: Option<Seen>,
}

/// What was found of a cover at first.
#[derive(Clone, Copy, Debug)]
struct Seen {
    mount_id: u64,
    /// The folder it is in.
    folder: Mark,
}

impl Covers {
    /// Of a sandbox without any yet, whose first process is `process`, a directory of `/proc`.
    pub(crate) fn of(process: &OwnedFd) -> io::Result<Self> {
        let root = openat(process, "root", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let table = openat(process, "mountinfo", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, table, watch: Watch::new()?, trees: BTreeMap::new() })
    }

    /// Watches the names that count in a tree that is about to be mounted at `path`, with `shape` applied to it.
    pub(crate) fn watch(&mut self, path: &str, shape: &Shape) -> io::Result<Tree> {
        let mut tree = Tree::default();
        for (covered, what) in shape.covers().filter(|(covered, _)| is_below(covered, path)) {
            let closes = what == Covered::Closed;
            let fixed = !closes || shape.holds(covered, path);
            for part in parts(covered, path).iter().rev().skip(1).filter(|_| fixed) {
                tree.watched.extend(self.watch.add(part, false)?);
            }
            let name = self.watch.add(covered, closes)?;
            tree.watched.extend(name.clone());
            tree.covers.push(Cover {
                path: covered.clone(),
                closes,
                fixed,
                shadowed: false,
                name,
                seen: None,
            });
        }
        Ok(tree)
    }

    /// A tree was mounted at `path`, in place of what was there; or it was not.
    pub(crate) fn put(&mut self, path: &str, tree: Option<Tree>) {
        if let Some(tree) = tree {
            self.trees.insert(path.to_owned(), tree);
        }
        self.settle();
    }

    /// What was mounted at `path` is not any more.
    pub(crate) fn take_away(&mut self, path: &str) {
        self.trees.remove(path);
        self.settle();
    }

    /// What has news when a cover may be lost: the first of mounts, the second of names.
    pub(crate) fn news(&self) -> [PollFd<'_>; 2] {
        [PollFd::new(&self.table, PollFlags::PRI), PollFd::new(&self.watch, PollFlags::IN)]
    }

    /// Takes in what has happened to names, and says whether it can concern a cover.
    pub(crate) fn names_changed(&mut self) -> bool {
        self.watch.read()
    }

    /// The first path that is not covered any more; `table` are the mounts of the sandbox.
    pub(crate) fn lost(&mut self, table: impl Fn() -> io::Result<MountInfo>) -> Option<String> {
        for (path, tree) in &mut self.trees {
            if tree.id.is_none() {
                tree.id = mount_at(&self.root, relative(path)).ok();
            }
            // Shorter ways are looked up sooner, and this has to be soon.
            let top = open_plain(&self.root, relative(path));
            for cover in tree.covers.iter_mut().filter(|cover| !cover.shadowed) {
                let held = match cover.seen {
                    None => {
                        cover.seen = Seen::at(&self.root, &cover.path);
                        cover.seen.is_some()
                    }
                    Some(seen) => {
                        let below = cover.path.get(path.len() + 1..).unwrap_or_default();
                        top.as_ref().is_ok_and(|top| mount_at(top, below) == Ok(seen.mount_id))
                            || cover.moved_along(seen, &self.root, (path, tree.id), &table)
                    }
                };
                if !held {
                    return Some(cover.path.clone());
                }
            }
        }
        None
    }

    /// Closed paths whose files are as programs outside have left them, as far as is known. For when the last process of the
    /// sandbox has ended: what comes later is from outside, too.
    pub(crate) fn untouched(&mut self) -> BTreeSet<String> {
        self.watch.read();
        let covers = self.trees.values().flat_map(|tree| &tree.covers).filter(|cover| cover.closes);
        let untouched = covers.filter(|cover| {
            let watched = cover.name.as_ref().is_some_and(|name| self.watch.is_untouched(name));
            watched && cover.is_in_its_folder()
        });
        untouched.map(|cover| cover.path.clone()).collect()
    }

    /// After a change of what is mounted where.
    fn settle(&mut self) {
        let trees: Vec<String> = self.trees.keys().cloned().collect();
        for (path, tree) in &mut self.trees {
            let inner = |cover: &Cover| {
                trees.iter().any(|other| is_below(other, path) && is_at_or_below(&cover.path, other))
            };
            tree.covers.iter_mut().for_each(|cover| cover.shadowed = inner(cover));
        }
        self.watch.keep(self.trees.values().flat_map(|tree| &tree.watched));
    }
}

impl Seen {
    /// What covers `path`, if it is covered. No symlink may be on the way.
    fn at(root: &OwnedFd, path: &str) -> Option<Self> {
        let place = open_plain_end(root, relative(path)).ok()?;
        let about = ask(&place, "").ok()?;
        if !about.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
            return None;
        }
        Some(Self { mount_id: mount_id(&place).ok()?, folder: folder(root, path).ok()? })
    }
}

impl Cover {
    /// Whether the folder at its path is the one that it was found in.
    fn is_in_its_folder(&self) -> bool {
        let folder = self.path.rsplit_once('/').map(|(folder, _)| folder);
        let now = folder.and_then(|folder| ask(CWD, folder).ok());
        now.zip(self.seen).is_some_and(|(now, seen)| Mark::of(&now) == seen.folder)
    }

    /// Whether it is where it is meant to be although its path does not lead to it.
    fn moved_along(
        &mut self,
        seen: Seen,
        root: &OwnedFd,
        (tree, tree_id): (&str, Option<u64>),
        table: impl Fn() -> io::Result<MountInfo>,
    ) -> bool {
        if self.fixed && mount_at(root, relative(tree)).ok() == tree_id {
            return false;
        }
        let Ok(table) = table() else { return false };
        let Some(entry) = table.get(seen.mount_id) else { return false };
        // All of the tree has another name now.
        if self.fixed {
            return true;
        }
        let Some(now) = entry.point.to_str() else { return false };
        let same_name = Path::new(now).file_name() == Path::new(&self.path).file_name();
        let same_folder = match folder(root, now) {
            Ok(folder) => folder == seen.folder,
            // Who cannot get there from here cannot from inside either.
            Err(error) => error == Errno::ACCESS,
        };
        if same_name && same_folder {
            now.clone_into(&mut self.path);
        }
        same_name && same_folder
    }
}

/// The folder that `path` is in.
fn folder(root: &OwnedFd, path: &str) -> Result<Mark, Errno> {
    let (above, _) = path.rsplit_once('/').ok_or(Errno::INVAL)?;
    Ok(Mark::of(&ask(root, relative(above))?))
}

/// The mount that `path` leads to from `place`. Nothing more is asked, since that is sooner known.
fn mount_at(place: &OwnedFd, path: &str) -> Result<u64, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH;
    Ok(statx(place, path, flags, StatxFlags::MNT_ID)?.stx_mnt_id)
}

fn relative(path: &str) -> &str {
    path.trim_start_matches('/')
}

/// The paths on the way from `above` to `path`, which is the last.
fn parts<'a>(path: &'a str, above: &str) -> Vec<&'a str> {
    let ends = path.match_indices('/').map(|(end, _)| end).filter(|end| *end > above.len());
    ends.chain([path.len()]).filter_map(|end| path.get(..end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_a_path_is_its_parts() {
        assert_eq!(parts("/w/a/b/c", "/w"), ["/w/a", "/w/a/b", "/w/a/b/c"]);
        assert_eq!(parts("/w/a", "/w"), ["/w/a"]);
    }
}
