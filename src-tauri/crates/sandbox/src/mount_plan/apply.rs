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
    autostart::name_text::to_os_str,
    nofollow::{FileKind, open_no_symlinks, open_nofollow},
    tree::{attach, copy_mount},
};

/// Mount point of the tmpfs in which empty covers are created. Namespaces that apply plans do not otherwise use this
/// path. The tmpfs stays mounted, because unmounting it takes the kernel milliseconds.
const SCRATCH_MOUNT: &str = "/proc";

impl MountPlan {
    /// Applies the whole plan in the calling process's mount namespace.
    pub(crate) fn apply(&self) -> io::Result<()> {
        self.apply_where(|_| true)
    }

    /// Applies only the hidden and re-opened paths.
    pub(crate) fn hide(&self) -> io::Result<()> {
        self.apply_where(PathTreatment::affects_visibility)
    }

    /// Applies only the pinned and read-only paths.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.apply_where(|treatment| !treatment.affects_visibility())
    }

    fn apply_where(&self, wanted: impl Fn(&PathTreatment) -> bool) -> io::Result<()> {
        let steps = || self.0.iter().filter(|(_, treatment)| wanted(treatment));
        // Re-opened paths must be opened before the tree around them is covered.
        let mut reopened = BTreeMap::new();
        for (path, treatment) in steps() {
            if let PathTreatment::Reopen { writable } = treatment {
                let tree =
                    copy_mount(&open_no_symlinks(CWD, path).map_err(with_path(path))?, !writable, true)
                        .map_err(with_path(path))?;
                reopened.insert(path, tree);
            }
        }
        let mut covers = CoverMounts::prepare(steps()).map_err(with_path("making a cover"))?;
        for (path, treatment) in steps() {
            let result = match treatment {
                PathTreatment::Hide { .. } => match covers.prepared.pop_front() {
                    Some(cover) => {
                        open_nofollow(CWD, &*to_os_str(path)).and_then(|target| attach(&cover, &target))
                    }
                    None => Err(Errno::INVAL),
                },
                PathTreatment::Special => ignore_missing(covers.cover_special(path)),
                PathTreatment::Reopen { .. } => match reopened.get(path) {
                    Some(tree) => open_no_symlinks(CWD, path).and_then(|target| attach(tree, &target)),
                    None => Err(Errno::INVAL),
                },
                PathTreatment::Pin => ignore_missing(bind_over_itself(path, false)),
                PathTreatment::ReadOnly => ignore_missing(bind_over_itself(path, true)),
            };
            result.map_err(with_path(path))?;
        }
        Ok(())
    }
}

/// Ignores errors for a path that no longer exists. If the path is created again, it is masked like a path that a
/// program outside the sandbox replaced.
fn ignore_missing(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        result => result,
    }
}

/// Empty, inaccessible mounts that cover hidden paths.
#[derive(Default)]
struct CoverMounts {
    scratch: Option<OwnedFd>,
    /// Covers of the hidden paths, in path order, with the mount points needed inside them.
    prepared: VecDeque<OwnedFd>,
}

const EMPTY_FILE: &str = "file";
const EMPTY_FOLDER: &str = "directory";

impl CoverMounts {
    fn prepare<'a>(steps: impl Iterator<Item = (&'a String, &'a PathTreatment)>) -> Result<Self, Errno> {
        let mut covering = steps.filter(|(_, treatment)| {
            matches!(treatment, PathTreatment::Hide { .. } | PathTreatment::Special)
        });
        let Some(first) = covering.next() else { return Ok(Self::default()) };
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(c"tmpfs", SCRATCH_MOUNT, c"tmpfs", flags, Some(c"mode=0755"))?;
        let scratch = open_no_symlinks(CWD, SCRATCH_MOUNT)?;
        create(&scratch, EMPTY_FOLDER, FileKind::Directory, 0o000)?;
        create(&scratch, EMPTY_FILE, FileKind::File, 0o000)?;
        let mut prepared = VecDeque::new();
        for (number, (path, treatment)) in std::iter::once(first).chain(covering).enumerate() {
            if let PathTreatment::Hide { kind, mount_points } = treatment {
                prepared.push_back(cover_for(&scratch, number, path, *kind, mount_points)?);
            }
        }
        Ok(Self { scratch: Some(scratch), prepared })
    }

    /// Covers a pipe, socket or folder. Does nothing for other kinds of files.
    fn cover_special(&self, path: &str) -> Result<(), Errno> {
        let target = open_nofollow(CWD, &*to_os_str(path))?;
        let kind = FileType::from_raw_mode(fstat(&target)?.st_mode);
        let empty = if kind.is_dir() {
            EMPTY_FOLDER
        } else if kind.is_fifo() || kind.is_socket() {
            EMPTY_FILE
        } else {
            return Ok(());
        };
        let scratch = self.scratch.as_ref().ok_or(Errno::INVAL)?;
        attach(&copy_mount(&open_no_symlinks(scratch, empty)?, true, false)?, &target)
    }
}

fn cover_for(
    scratch: &OwnedFd,
    number: usize,
    path: &str,
    kind: FileKind,
    mount_points: &BTreeMap<String, FileKind>,
) -> Result<OwnedFd, Errno> {
    let cover = match kind {
        FileKind::File => open_no_symlinks(scratch, EMPTY_FILE)?,
        FileKind::Directory if mount_points.is_empty() => open_no_symlinks(scratch, EMPTY_FOLDER)?,
        FileKind::Directory => {
            let name = number.to_string();
            // The mode allows traversing but not listing.
            create(scratch, &name, FileKind::Directory, 0o111)?;
            let cover = open_no_symlinks(scratch, &name)?;
            for (mount_point, kind) in mount_points {
                let relative = mount_point.get(path.len() + 1..).ok_or(Errno::INVAL)?;
                create_mount_point(&cover, relative, *kind)?;
            }
            cover
        }
    };
    copy_mount(&cover, true, false)
}

fn create_mount_point(cover: &OwnedFd, path: &str, kind: FileKind) -> Result<(), Errno> {
    for (end, _) in path.match_indices('/') {
        create_if_missing(cover, path.get(..end).unwrap_or(path), FileKind::Directory)?;
    }
    create_if_missing(cover, path, kind)
}

fn create_if_missing(cover: &OwnedFd, path: &str, kind: FileKind) -> Result<(), Errno> {
    match create(cover, path, kind, 0o111) {
        Err(Errno::EXIST) => Ok(()),
        prepared => prepared,
    }
}

fn create(target: impl AsFd, name: &str, kind: FileKind, mode: u32) -> Result<(), Errno> {
    match kind {
        FileKind::Directory => mkdirat(target, name, Mode::from_raw_mode(mode)),
        FileKind::File => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(target, name, flags, Mode::from_raw_mode(mode)).map(drop)
        }
    }
}

/// Bind-mounts a path over itself, read-only if requested.
pub(crate) fn bind_over_itself(path: &str, read_only: bool) -> Result<(), Errno> {
    let target = open_nofollow(CWD, path)?;
    attach(&copy_mount(&target, read_only, true)?, &target)
}

fn with_path(what: &str) -> impl Fn(Errno) -> io::Error {
    move |error| io::Error::other(format!("`{what}`: {}", io::Error::from(error)))
}
