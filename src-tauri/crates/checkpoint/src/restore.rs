//! Restores paths from a checkpoint.
//!
//! - Obstacles are removed first, from the deepest path upwards. Then the remaining paths are created, each folder
//!   before its content.
//! - A file is written to a temporary file in the same folder and exchanged with the old file, so a failure leaves the
//!   old file in place.
//! - INVARIANT: a file is deleted only after it was renamed to an unused name and compared again under that name.

use crate::Change;
use crate::compare::PathState;
use crate::record::{Before, CopiedEntry, kind};
use crate::tree::Tree;
use ironcurtain_paths::random_name;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, fchmod, fchown, fstat, mkdirat, openat, renameat_with,
    statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Result of restoring.
#[derive(Debug, Default)]
pub struct Restored {
    /// Number of restored paths.
    pub count: usize,
    /// Paths that were not restored.
    pub failed: Vec<NotRestored>,
}

/// Path that was not restored.
#[derive(Debug)]
pub struct NotRestored {
    /// Path relative to the folder.
    pub path: String,
    /// Error that prevented it.
    pub why: io::Error,
}

/// Restores the paths.
pub(crate) fn restore(tree: &Tree, before: &Before, changes: &[Change], copies: &Path) -> Restored {
    let mut changes = changes.to_vec();
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    for change in &mut changes {
        if matches!(before.entries.get(&change.path), Some(CopiedEntry::Folder { .. })) {
            // Ignores the error: restoring what is in the folder reports it.
            let _ = open_up(tree, change);
        }
    }
    let mut restored = Restored::default();
    let mut cleared = Vec::new();
    for change in changes.iter().rev() {
        match clear(tree, before, change) {
            Ok(existing) => cleared.push((&change.path, existing)),
            Err(why) => restored.failed.push(NotRestored { path: change.path.clone(), why }),
        }
    }
    let mut folders = Vec::new();
    for (path, existing) in cleared.into_iter().rev() {
        match create(tree, before, (path, existing), copies) {
            Ok(()) => {
                restored.count += 1;
                if let Some(CopiedEntry::Folder { mode }) = before.entries.get(path) {
                    folders.push((path, *mode, existing));
                }
            }
            Err(why) => restored.failed.push(NotRestored { path: path.clone(), why }),
        }
    }
    // Set permissions last, because a folder's permissions may deny its owner access.
    for (path, mode, existing) in folders.into_iter().rev() {
        if let Err(why) = set_mode(tree, (path, existing), mode) {
            restored.count -= 1;
            restored.failed.push(NotRestored { path: path.clone(), why });
        }
    }
    restored
}

/// Removes an obstacle. Returns the file, link or folder that remains until it is replaced, or [`PathState::Missing`].
fn clear<'a>(tree: &Tree, before: &Before, change: &'a Change) -> io::Result<&'a PathState> {
    let stat = tree.stat(&change.path)?;
    if PathState::from_stat(stat.as_ref()) != change.now {
        return Err(changed_again());
    }
    let Some(stat) = stat else { return Ok(&PathState::Missing) };
    let is_folder = kind(&stat) == FileType::Directory;
    let is_kept = match before.entries.get(&change.path) {
        None => false,
        Some(CopiedEntry::Folder { .. }) => is_folder,
        Some(CopiedEntry::File { .. } | CopiedEntry::Link { .. }) => !is_folder,
    };
    if is_kept {
        return Ok(&change.now);
    }
    let (parent, name) = tree.parent(&change.path)?;
    if is_folder {
        unlinkat(parent, name, AtFlags::REMOVEDIR)?;
    } else {
        let temp = temp_name()?;
        renameat_with(&parent, name, &parent, &temp, RenameFlags::NOREPLACE).map_err(unsupported)?;
        delete(&parent, &temp, &change.now, || {
            renameat_with(&parent, &temp, &parent, name, RenameFlags::NOREPLACE)
        })?;
    }
    Ok(&PathState::Missing)
}

/// Creates the checkpoint's file, link or folder at a path, replacing `existing`.
fn create(
    tree: &Tree,
    before: &Before,
    (path, existing): (&str, &PathState),
    copies: &Path,
) -> io::Result<()> {
    let Some(copied) = before.entries.get(path) else { return Ok(()) };
    let (parent, name) = tree.parent(path)?;
    match copied {
        CopiedEntry::Folder { .. } => match existing {
            PathState::Missing => Ok(mkdirat(&parent, name, Mode::RWXU)?),
            PathState::Present { .. } => Ok(()),
        },
        CopiedEntry::Link { target } => {
            let temp = temp_name()?;
            symlinkat(target, &parent, &temp)?;
            replace_with(&parent, (&temp, name), existing)
        }
        CopiedEntry::File { mode, group, copy, stamp } => {
            let mut copy = File::open(copies.join(copy.to_string()))?;
            let temp = temp_name()?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&parent, &*temp, flags, Mode::RUSR | Mode::WUSR)?);
            let damaged = || io::Error::other("its copy in the checkpoint is damaged");
            let written = io::copy(&mut copy, &mut file).and_then(|count| match count == stamp.size() {
                true => set_owner(&file, *group, *mode),
                false => Err(damaged()),
            });
            if let Err(error) = written {
                // Ignores this error: the first one is reported.
                let _ = unlinkat(&parent, &*temp, AtFlags::empty());
                return Err(error);
            }
            replace_with(&parent, (&temp, name), existing)
        }
    }
}

/// Renames a new file from `temp` to `name`, replacing `existing`.
fn replace_with(parent: &OwnedFd, (temp, name): (&str, &str), existing: &PathState) -> io::Result<()> {
    let is_unchanged = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => PathState::from_stat(Some(&stat)) == *existing,
        // The rename's flags check this again.
        Err(_) => true,
    };
    let (flags, replaces) = match existing {
        PathState::Missing => (RenameFlags::NOREPLACE, false),
        PathState::Present { .. } => (RenameFlags::EXCHANGE, true),
    };
    let rename = || renameat_with(parent, temp, parent, name, flags);
    let new = statat(parent, temp, AtFlags::SYMLINK_NOFOLLOW)?;
    let renamed = if is_unchanged { rename().map_err(unsupported) } else { Err(changed_again()) };
    if let Err(error) = renamed {
        // Ignores this error: the first one is reported.
        let _ = unlinkat(parent, temp, AtFlags::empty());
        return Err(error);
    }
    if !replaces {
        return Ok(());
    }
    delete(parent, temp, existing, || {
        rename()?;
        // Another program may have replaced the file in the meantime.
        match statat(parent, temp, AtFlags::SYMLINK_NOFOLLOW)?.st_ino == new.st_ino {
            true => unlinkat(parent, temp, AtFlags::empty()),
            false => Err(Errno::STALE),
        }
    })
}

/// Sets the group and the permissions of a new file. If the group cannot be set, no group gets access.
fn set_owner(file: &File, group: Option<u32>, mode: u32) -> io::Result<()> {
    let is_set = match group {
        Some(group) if fstat(file)?.st_gid != group => fchown(file, None, Some(Gid::from_raw(group))).is_ok(),
        Some(_) | None => true,
    };
    let mode = if is_set { mode } else { mode & !GROUP_BITS };
    Ok(fchmod(file, Mode::from_raw_mode(mode))?)
}

/// Permissions that depend on a file's owner or group: set-user-id, set-group-id, and the group's access.
const GROUP_BITS: u32 = 0o6070;

/// Gives the owner access to a folder whose permissions are restored, so that its content can be restored before.
fn open_up(tree: &Tree, change: &mut Change) -> io::Result<()> {
    let PathState::Present { file_type: FileType::Directory, mode, stamp } = change.now else {
        return Ok(());
    };
    let folder = tree.open_below(&change.path, OFlags::PATH | OFlags::DIRECTORY)?;
    if PathState::from_stat(Some(&fstat(&folder)?)) != change.now {
        return Err(changed_again());
    }
    let mode = mode | Mode::RWXU.as_raw_mode();
    set_folder_mode(&folder, mode)?;
    change.now = PathState::Present { file_type: FileType::Directory, mode, stamp };
    Ok(())
}

/// Sets the permissions of a folder that was opened without reading it.
fn set_folder_mode(folder: &OwnedFd, mode: u32) -> io::Result<()> {
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Deletes a renamed file if it is the file that was compared. Otherwise, renames it back.
fn delete(
    parent: &OwnedFd,
    name: &str,
    compared: &PathState,
    undo_rename: impl FnOnce() -> Result<(), Errno>,
) -> io::Result<()> {
    let left_as = |error| io::Error::other(format!("its earlier content is now named `{name}`: {error}"));
    let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(left_as)?;
    if compared.is_renamed_to(&PathState::from_stat(Some(&stat))) {
        return Ok(unlinkat(parent, name, AtFlags::empty())?);
    }
    Err(match undo_rename() {
        Ok(()) => changed_again(),
        Err(error) => io::Error::other(format!("it has changed again, and is now named `{name}`: {error}")),
    })
}

/// Sets a folder's permissions. Fails if the folder is not the one that was compared.
fn set_mode(tree: &Tree, (path, existing): (&str, &PathState), mode: u32) -> io::Result<()> {
    let folder = tree.open_below(path, OFlags::PATH | OFlags::DIRECTORY)?;
    if *existing != PathState::Missing && PathState::from_stat(Some(&fstat(&folder)?)) != *existing {
        return Err(changed_again());
    }
    set_folder_mode(&folder, mode)
}

fn changed_again() -> io::Error {
    io::Error::other("it has changed again")
}

/// Explains the error of a file system that does not support `renameat2` flags, such as NFS.
fn unsupported(error: Errno) -> io::Error {
    match error {
        Errno::INVAL => io::Error::other("its file system cannot exchange files"),
        error => error.into(),
    }
}

/// Returns a random name for a temporary file.
fn temp_name() -> io::Result<String> {
    random_name().map(|name| format!(".ironcurtain-undo-{name}"))
}

#[cfg(test)]
mod tests {
    use super::{AtFlags, PathState, RenameFlags, delete, renameat_with, replace_with, statat};
    use std::fs::{self, File};
    use std::path::Path;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_changes_before_it_is_replaced_stays() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let parent = File::open(dir.path()).unwrap().into();
        let seen = |name: &str| {
            PathState::from_stat(Some(&statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).unwrap()))
        };
        write("own", "compared");
        let compared = seen("own");
        write("own", "by the user");
        for existing in [&compared, &PathState::Missing] {
            write("new", "restored");
            let refused = replace_with(&parent, ("new", "own"), existing).unwrap_err();
            assert_eq!(refused.to_string(), "it has changed again");
            assert_eq!((read("own").as_str(), names(dir.path())), ("by the user", vec!["own".to_owned()]));
        }
        // A file that was removed after the comparison is not created.
        write("new", "restored");
        replace_with(&parent, ("new", "removed"), &compared).unwrap_err();
        assert_eq!(names(dir.path()), ["own"]);
        // A change made after the last check is detected in the replaced file.
        write("replaced", "by the user");
        let undo_rename = || renameat_with(&parent, "replaced", &parent, "back", RenameFlags::NOREPLACE);
        let refused = delete(&parent, "replaced", &compared, undo_rename).unwrap_err();
        assert_eq!(refused.to_string(), "it has changed again");
        assert_eq!(read("back"), "by the user");
        fs::remove_file(dir.path().join("back")).unwrap();
        // Unchanged files are replaced.
        write("new", "restored");
        replace_with(&parent, ("new", "own"), &seen("own")).unwrap();
        write("new", "restored");
        replace_with(&parent, ("new", "other"), &PathState::Missing).unwrap();
        assert_eq!(
            (read("own").as_str(), names(dir.path())),
            ("restored", vec!["other".into(), "own".into()])
        );
    }
}
