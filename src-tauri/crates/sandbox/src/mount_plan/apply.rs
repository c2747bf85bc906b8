//! Applies a mount plan in a private mount namespace.
//!
//! - INVARIANT: each path is opened without following symlinks before it is changed.
//! - Covers are read-only, so no process in the sandbox can make one accessible by changing its mode.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, openat},
    io::Errno,
    mount::{MountFlags, mount},
};

use super::{MountPlan, PathTreatment};
use crate::{
    autostart::name_text::raw,
    place::{FileKind, open_plain, open_plain_end},
    tree::{attach, copy},
};

/// Mount point of the tmpfs in which empty covers are created. Namespaces that apply plans do not otherwise use this
/// path. The tmpfs stays mounted, because unmounting it takes the kernel milliseconds.
const WORKSHOP: &str = "/proc";

impl MountPlan {
    /// Applies the whole plan in the calling process's mount namespace.
    pub(crate) fn apply(&self) -> io::Result<()> {
        self.carry_out(|_| true)
    }

    /// Applies only the hidden and re-opened paths.
    pub(crate) fn hide(&self) -> io::Result<()> {
        self.carry_out(PathTreatment::shows)
    }

    /// Applies only the pinned and read-only paths.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.carry_out(|step| !step.shows())
    }

    fn carry_out(&self, wanted: impl Fn(&PathTreatment) -> bool) -> io::Result<()> {
        let steps = || self.0.iter().filter(|(_, step)| wanted(step));
        // Re-opened paths must be opened before the tree around them is covered.
        let mut reopened = BTreeMap::new();
        for (path, step) in steps() {
            if let PathTreatment::Reopen { writable } = step {
                let tree =
                    copy(&open_plain(CWD, path).map_err(at(path))?, !writable, true).map_err(at(path))?;
                reopened.insert(path, tree);
            }
        }
        let mut covers = Covers::make(steps()).map_err(at("making a cover"))?;
        for (path, step) in steps() {
            let done = match step {
                PathTreatment::Hide { .. } => match covers.made.pop_front() {
                    Some(cover) => open_plain_end(CWD, &*raw(path)).and_then(|place| attach(&cover, &place)),
                    None => Err(Errno::INVAL),
                },
                PathTreatment::Special => unless_gone(covers.cover_special(path)),
                PathTreatment::Reopen { .. } => match reopened.get(path) {
                    Some(tree) => open_plain(CWD, path).and_then(|place| attach(tree, &place)),
                    None => Err(Errno::INVAL),
                },
                PathTreatment::Pin => unless_gone(over_itself(path, false)),
                PathTreatment::ReadOnly => unless_gone(over_itself(path, true)),
            };
            done.map_err(at(path))?;
        }
        Ok(())
    }
}

/// Ignores errors for a path that no longer exists. If the path is created again, it is masked like a path that a
/// program outside the sandbox replaced.
fn unless_gone(done: Result<(), Errno>) -> Result<(), Errno> {
    match done {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        done => done,
    }
}

/// Empty, inaccessible mounts that cover hidden paths.
#[derive(Default)]
struct Covers {
    workshop: Option<OwnedFd>,
    /// Covers of the hidden paths, in path order, with the mount points needed inside them.
    made: VecDeque<OwnedFd>,
}

const EMPTY_FILE: &str = "file";
const EMPTY_FOLDER: &str = "directory";

impl Covers {
    fn make<'a>(steps: impl Iterator<Item = (&'a String, &'a PathTreatment)>) -> Result<Self, Errno> {
        let mut covering =
            steps.filter(|(_, step)| matches!(step, PathTreatment::Hide { .. } | PathTreatment::Special));
        let Some(first) = covering.next() else { return Ok(Self::default()) };
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(c"tmpfs", WORKSHOP, c"tmpfs", flags, Some(c"mode=0755"))?;
        let workshop = open_plain(CWD, WORKSHOP)?;
        make(&workshop, EMPTY_FOLDER, FileKind::Directory, 0o000)?;
        make(&workshop, EMPTY_FILE, FileKind::File, 0o000)?;
        let mut made = VecDeque::new();
        for (number, (path, step)) in std::iter::once(first).chain(covering).enumerate() {
            if let PathTreatment::Hide { kind, points } = step {
                made.push_back(cover_for(&workshop, number, path, *kind, points)?);
            }
        }
        Ok(Self { workshop: Some(workshop), made })
    }

    /// Covers a pipe, socket or folder. Does nothing for other kinds of files.
    fn cover_special(&self, path: &str) -> Result<(), Errno> {
        let place = open_plain_end(CWD, &*raw(path))?;
        let kind = FileType::from_raw_mode(fstat(&place)?.st_mode);
        let empty = if kind.is_dir() {
            EMPTY_FOLDER
        } else if kind.is_fifo() || kind.is_socket() {
            EMPTY_FILE
        } else {
            return Ok(());
        };
        let workshop = self.workshop.as_ref().ok_or(Errno::INVAL)?;
        attach(&copy(&open_plain(workshop, empty)?, true, false)?, &place)
    }
}

fn cover_for(
    workshop: &OwnedFd,
    number: usize,
    path: &str,
    kind: FileKind,
    points: &BTreeMap<String, FileKind>,
) -> Result<OwnedFd, Errno> {
    let cover = match kind {
        FileKind::File => open_plain(workshop, EMPTY_FILE)?,
        FileKind::Directory if points.is_empty() => open_plain(workshop, EMPTY_FOLDER)?,
        FileKind::Directory => {
            let name = number.to_string();
            // The mode allows traversing but not listing.
            make(workshop, &name, FileKind::Directory, 0o111)?;
            let cover = open_plain(workshop, &name)?;
            for (point, kind) in points {
                let relative = point.get(path.len() + 1..).ok_or(Errno::INVAL)?;
                make_point(&cover, relative, *kind)?;
            }
            cover
        }
    };
    copy(&cover, true, false)
}

fn make_point(cover: &OwnedFd, path: &str, kind: FileKind) -> Result<(), Errno> {
    for (end, _) in path.match_indices('/') {
        make_once(cover, path.get(..end).unwrap_or(path), FileKind::Directory)?;
    }
    make_once(cover, path, kind)
}

fn make_once(cover: &OwnedFd, path: &str, kind: FileKind) -> Result<(), Errno> {
    match make(cover, path, kind, 0o111) {
        Err(Errno::EXIST) => Ok(()),
        made => made,
    }
}

fn make(place: impl AsFd, name: &str, kind: FileKind, mode: u32) -> Result<(), Errno> {
    match kind {
        FileKind::Directory => mkdirat(place, name, Mode::from_raw_mode(mode)),
        FileKind::File => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(place, name, flags, Mode::from_raw_mode(mode)).map(drop)
        }
    }
}

/// Bind-mounts a path over itself, read-only if requested.
pub(crate) fn over_itself(path: &str, read_only: bool) -> Result<(), Errno> {
    let place = open_plain_end(CWD, path)?;
    attach(&copy(&place, read_only, true)?, &place)
}

fn at(what: &str) -> impl Fn(Errno) -> io::Error {
    move |error| io::Error::other(format!("`{what}`: {}", io::Error::from(error)))
}
