//! Temporarily makes the user's own folders accessible if their mode denies access.
//!
//! - A sandbox runs as the same user, so it can change the mode of any folder at any time. It could use the mode to
//!   hide its files from this process.
//! - INVARIANT: only folders owned by this user are changed, by descriptor, and their mode is restored afterwards.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, chmod, openat2, statx},
    io::Errno,
    process::getuid,
};

use super::name_text::to_os_str;
use crate::folder_listing::open_for_listing;

/// Maximum number of folders whose mode is restored. Folders beyond this limit stay accessible.
const MAX_RESTORED: usize = 256;
/// Mode that permits listing and entering a folder and renaming its entries (`FULL_ACCESS`), and mode that permits only
/// entering it (`ENTER_ONLY`).
const FULL_ACCESS: u32 = 0o700;
const ENTER_ONLY: u32 = 0o100;

/// Folders that were made accessible, with their previous modes. Dropping this value restores the modes.
#[derive(Debug, Default)]
pub(super) struct ReopenedFolders(Vec<(OwnedFd, Mode)>);

impl ReopenedFolders {
    /// Opens a folder below `root`. The path must not contain symlinks.
    pub(super) fn open(
        &mut self,
        root: impl AsFd,
        path: &str,
        resolve: ResolveFlags,
    ) -> Result<OwnedFd, Errno> {
        let first = open_listed(&root, path, resolve);
        let is_inaccessible = match &first {
            // A folder that can be listed but not entered is not accessible.
            Ok(dir) => statx(dir, ".", AtFlags::empty(), StatxFlags::TYPE).is_err(),
            Err(error) => is_permission_error(*error),
        };
        if !is_inaccessible {
            return first;
        }
        let ancestors = path.match_indices('/').map(|(at, _)| (at.max(1), ENTER_ONLY));
        for (end, needed) in ancestors.chain([(path.len(), FULL_ACCESS)]) {
            let folder = path.get(..end).unwrap_or_default();
            if let Ok(folder) = open_path(&root, folder, resolve) {
                self.add_permissions(folder, needed);
            }
        }
        open_listed(&root, path, resolve).or(first)
    }

    /// Adds the permissions needed to move the entry `name` out of `dir`, on both `dir` and the entry.
    pub(super) fn open_for_moving(&mut self, dir: &OwnedFd, name: &str) {
        if let Ok(dir) = dir.try_clone() {
            self.add_permissions(dir, FULL_ACCESS);
        }
        if let Ok(folder) = open_path(dir, name, ResolveFlags::BENEATH) {
            self.add_permissions(folder, FULL_ACCESS);
        }
    }

    /// Adds missing permissions to a folder that the user owns.
    fn add_permissions(&mut self, folder: OwnedFd, needed: u32) {
        let Ok(stat) = stat_folder(&folder, "") else { return };
        let mode = u32::from(stat.stx_mode) & 0o7777;
        if !is_own(&stat) || mode & needed == needed {
            return;
        }
        // If this fails, opening the folder fails too, and that error is reported.
        if set_mode(&folder, Mode::from_raw_mode(mode | FULL_ACCESS)).is_ok() && self.0.len() < MAX_RESTORED {
            self.0.push((folder, Mode::from_raw_mode(mode)));
        }
    }
}

impl Drop for ReopenedFolders {
    fn drop(&mut self) {
        while let Some((folder, mode)) = self.0.pop() {
            // Ignores the error: the owner can change the mode at any time.
            let _ = set_mode(&folder, mode);
        }
    }
}

/// Opens a folder. If necessary, makes the folder accessible until the returned guard is dropped.
pub(super) fn open_reopening(path: &str) -> Result<(OwnedFd, ReopenedFolders), Errno> {
    let mut reopened = ReopenedFolders::default();
    let dir = reopened.open(CWD, path, ResolveFlags::empty())?;
    Ok((dir, reopened))
}

/// Opens a folder. The path must not contain symlinks.
pub(super) fn open_folder(path: &str) -> Result<OwnedFd, Errno> {
    open_listed(CWD, path, ResolveFlags::empty())
}

/// Opens a folder below `root` for listing. The path must not contain symlinks.
pub(super) fn open_listed(root: impl AsFd, path: &str, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    let resolve = resolve | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    open_for_listing(root, &to_os_str(path), OFlags::NOFOLLOW | OFlags::NONBLOCK, resolve)
}

fn open_path(root: impl AsFd, path: &str, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = resolve | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(root, &*to_os_str(path), flags, Mode::empty(), resolve)
}

/// Returns `true` if the user owns the folder, which means that a sandbox may have changed its mode.
pub(super) fn is_own_folder(root: impl AsFd, path: &str) -> bool {
    stat_folder(root, path).is_ok_and(|stat| is_own(&stat))
}

fn stat_folder(root: impl AsFd, path: &str) -> Result<Statx, Errno> {
    let wanted = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::UID;
    statx(root, &*to_os_str(path), AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW, wanted)
}

fn is_own(stat: &Statx) -> bool {
    FileType::from_raw_mode(stat.stx_mode.into()).is_dir() && stat.stx_uid == getuid().as_raw()
}

fn is_permission_error(error: Errno) -> bool {
    matches!(error, Errno::ACCESS | Errno::PERM)
}

fn set_mode(folder: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    chmod(format!("/proc/self/fd/{}", folder.as_raw_fd()), mode)
}
