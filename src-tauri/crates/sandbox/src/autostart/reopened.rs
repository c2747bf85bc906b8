//! Opening folders of one's own that their mode has shut, as who put something in them may have done.
//!
//! - A mode keeps out its owner, who can change it at any time. It protects nothing from a sandbox that runs as the same user,
//!   and must not keep this process from what the sandbox has put there.
//! - INVARIANT: only a directory that is the process's user's own has its mode changed, by descriptor; it gets back the mode
//!   that it had.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, chmod, openat2, statx},
    io::Errno,
    process::getuid,
};

use super::name_text::raw;

/// The number of folders that are shut again. A sandbox that shuts more finds them open.
const MOST_SHUT: usize = 256;
/// Listed, entered, and with names that can be moved.
const WHOLE: u32 = 0o700;
const ENTERED: u32 = 0o100;

/// The folders that were opened, which are shut again when it is dropped.
#[derive(Debug, Default)]
pub(super) struct ReopenedFolders(Vec<(OwnedFd, Mode)>);

impl ReopenedFolders {
    /// Opens a folder below another, by a path in which no symlink is.
    pub(super) fn open(
        &mut self,
        root: impl AsFd,
        path: &str,
        resolve: ResolveFlags,
    ) -> Result<OwnedFd, Errno> {
        let first = open_listed(&root, path, resolve);
        let is_shut = match &first {
            // One that can be listed but not entered.
            Ok(dir) => statx(dir, ".", AtFlags::empty(), StatxFlags::TYPE).is_err(),
            Err(error) => is_refused(*error),
        };
        if !is_shut {
            return first;
        }
        let ways = path.match_indices('/').map(|(at, _)| (at.max(1), ENTERED));
        for (end, needed) in ways.chain([(path.len(), WHOLE)]) {
            let way = path.get(..end).unwrap_or_default();
            if let Ok(way) = open_as(&root, way, OFlags::PATH, resolve) {
                self.unshut(way, needed);
            }
        }
        open_listed(&root, path, resolve).or(first)
    }

    /// Makes a folder one from which `name` can be moved, which may itself be a folder.
    pub(super) fn unshut_for_moving(&mut self, dir: &OwnedFd, name: &str) {
        if let Ok(dir) = dir.try_clone() {
            self.unshut(dir, WHOLE);
        }
        if let Ok(folder) = open_as(dir, name, OFlags::PATH, ResolveFlags::BENEATH) {
            self.unshut(folder, WHOLE);
        }
    }

    /// Gives a folder what its mode lacks, if it is one's own.
    fn unshut(&mut self, folder: OwnedFd, needed: u32) {
        let Ok(about) = look(&folder, "") else { return };
        let mode = u32::from(about.stx_mode) & 0o7777;
        if !is_own(&about) || mode & needed == needed {
            return;
        }
        // Where it does not work, what is to be done in it fails, and is told of.
        if change(&folder, Mode::from_raw_mode(mode | WHOLE)).is_ok() && self.0.len() < MOST_SHUT {
            self.0.push((folder, Mode::from_raw_mode(mode)));
        }
    }
}

impl Drop for ReopenedFolders {
    fn drop(&mut self) {
        while let Some((folder, mode)) = self.0.pop() {
            // Left open, it is what it could be made by its owner anyway.
            let _ = change(&folder, mode);
        }
    }
}

/// Opens a folder, for as long as the second part of the answer lives.
pub(super) fn open_reopening(path: &str) -> Result<(OwnedFd, ReopenedFolders), Errno> {
    let mut shut = ReopenedFolders::default();
    let dir = shut.open(CWD, path, ResolveFlags::empty())?;
    Ok((dir, shut))
}

/// Opens a folder at a path in which no symlink is.
pub(super) fn open_folder(path: &str) -> Result<OwnedFd, Errno> {
    open_listed(CWD, path, ResolveFlags::empty())
}

/// Opens a folder below another, to be listed, by a path in which no symlink is.
pub(super) fn open_listed(root: impl AsFd, path: &str, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    open_as(root, path, OFlags::RDONLY | OFlags::NONBLOCK, resolve)
}

fn open_as(root: impl AsFd, path: &str, how: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    let flags = how | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = resolve | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(root, &*raw(path), flags, Mode::empty(), resolve)
}

/// True for a folder of one's own, which whoever put something in it may have closed by its mode.
pub(super) fn is_own_folder(root: impl AsFd, path: &str) -> bool {
    look(root, path).is_ok_and(|about| is_own(&about))
}

fn look(root: impl AsFd, path: &str) -> Result<Statx, Errno> {
    let wanted = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::UID;
    statx(root, &*raw(path), AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW, wanted)
}

fn is_own(about: &Statx) -> bool {
    FileType::from_raw_mode(about.stx_mode.into()).is_dir() && about.stx_uid == getuid().as_raw()
}

fn is_refused(error: Errno) -> bool {
    matches!(error, Errno::ACCESS | Errno::PERM)
}

fn change(folder: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    chmod(format!("/proc/self/fd/{}", folder.as_raw_fd()), mode)
}
