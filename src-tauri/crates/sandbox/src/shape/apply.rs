//! Carrying out a shape in a mount namespace of one's own.
//!
//! - INVARIANT: each step is carried out on a place opened without following any symlink.
//! - What covers a hidden path is read-only, so nobody inside can open it up by changing its mode.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat},
    io::Errno,
    mount::{MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, move_mount, open_tree, unmount},
};

use super::{Shape, Step};
use crate::{
    place::{Kind, open_plain, open_plain_end},
    sys::mount::{Attributes, set_attributes},
};

/// Where empty covers are made, before anything of the shape is in place; uncovered again before that.
const WORKSHOP: &str = "/tmp";

impl Shape {
    /// Makes it so, in the calling process's mount namespace.
    pub(crate) fn apply(&self) -> io::Result<()> {
        // What is shown again is picked up before what is around it is covered.
        let mut reopened = BTreeMap::new();
        for (path, step) in &self.0 {
            if let Step::Reopen { writable } = step {
                let tree =
                    copy(&open_plain(CWD, path).map_err(at(path))?, !writable, true).map_err(at(path))?;
                reopened.insert(path, tree);
            }
        }
        let mut covers = self.covers().map_err(at("making a cover"))?;
        for (path, step) in &self.0 {
            let done = match step {
                Step::Hide { .. } => match covers.pop_front() {
                    Some(cover) => open_plain_end(CWD, path).and_then(|place| attach(&cover, &place)),
                    None => Err(Errno::INVAL),
                },
                Step::Reopen { .. } => match reopened.get(path) {
                    Some(tree) => open_plain(CWD, path).and_then(|place| attach(tree, &place)),
                    None => Err(Errno::INVAL),
                },
                Step::Pin => over_itself(path, false),
                Step::Freeze => over_itself(path, true),
            };
            done.map_err(at(path))?;
        }
        Ok(())
    }

    /// A cover for each hidden path, in path order, with the places on it that are needed.
    fn covers(&self) -> Result<VecDeque<OwnedFd>, Errno> {
        let hides = || {
            self.0.iter().filter_map(|(path, step)| match step {
                Step::Hide { kind, points } => Some((path, *kind, points)),
                Step::Reopen { .. } | Step::Pin | Step::Freeze => None,
            })
        };
        if hides().next().is_none() {
            return Ok(VecDeque::new());
        }
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(c"tmpfs", WORKSHOP, c"tmpfs", flags, Some(c"mode=0755"))?;
        let made = make_covers(hides());
        unmount(WORKSHOP, UnmountFlags::DETACH)?;
        made
    }
}

fn make_covers<'a>(
    hides: impl Iterator<Item = (&'a String, Kind, &'a BTreeMap<String, Kind>)>,
) -> Result<VecDeque<OwnedFd>, Errno> {
    let workshop = open_plain(CWD, WORKSHOP)?;
    let (empty_dir, empty_file) = ("directory", "file");
    make(&workshop, empty_dir, Kind::Directory, 0o000)?;
    make(&workshop, empty_file, Kind::File, 0o000)?;
    let mut covers = VecDeque::new();
    for (number, (path, kind, points)) in hides.enumerate() {
        let cover = match kind {
            Kind::File => open_plain(&workshop, empty_file)?,
            Kind::Directory if points.is_empty() => open_plain(&workshop, empty_dir)?,
            Kind::Directory => {
                let name = number.to_string();
                // Passed through, but not listed.
                make(&workshop, &name, Kind::Directory, 0o111)?;
                let cover = open_plain(&workshop, &name)?;
                for (point, kind) in points {
                    let relative = point.get(path.len() + 1..).ok_or(Errno::INVAL)?;
                    make_point(&cover, relative, *kind)?;
                }
                cover
            }
        };
        covers.push_back(copy(&cover, true, false)?);
    }
    Ok(covers)
}

fn make_point(cover: &OwnedFd, path: &str, kind: Kind) -> Result<(), Errno> {
    for (end, _) in path.match_indices('/') {
        make_once(cover, path.get(..end).unwrap_or(path), Kind::Directory)?;
    }
    make_once(cover, path, kind)
}

fn make_once(cover: &OwnedFd, path: &str, kind: Kind) -> Result<(), Errno> {
    match make(cover, path, kind, 0o111) {
        Err(Errno::EXIST) => Ok(()),
        made => made,
    }
}

fn make(place: impl AsFd, name: &str, kind: Kind, mode: u32) -> Result<(), Errno> {
    match kind {
        Kind::Directory => mkdirat(place, name, Mode::from_raw_mode(mode)),
        Kind::File => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(place, name, flags, Mode::from_raw_mode(mode)).map(drop)
        }
    }
}

/// Makes a path a mount of its own.
fn over_itself(path: &str, read_only: bool) -> Result<(), Errno> {
    let place = open_plain_end(CWD, path)?;
    attach(&copy(&place, read_only, true)?, &place)
}

/// A private copy of the mount at `place`.
fn copy(place: &OwnedFd, read_only: bool, recursive: bool) -> Result<OwnedFd, Errno> {
    let recurse = if recursive { OpenTreeFlags::AT_RECURSIVE } else { OpenTreeFlags::empty() };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | recurse;
    let tree = open_tree(place, "", flags)?;
    let read_only = if read_only { libc::MOUNT_ATTR_RDONLY } else { 0 };
    let attributes = Attributes {
        set: libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | read_only,
        propagation: libc::MS_PRIVATE,
        recursive,
        ..Attributes::default()
    };
    set_attributes(&tree, attributes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::PERM))?;
    Ok(tree)
}

fn attach(tree: &OwnedFd, place: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", place, "", flags)
}

fn at(what: &str) -> impl Fn(Errno) -> io::Error {
    move |error| io::Error::other(format!("`{what}`: {}", io::Error::from(error)))
}
