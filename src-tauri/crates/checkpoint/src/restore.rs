//! Restores paths from a checkpoint.
//!
//! - Obstacles are removed first, from the deepest path upwards. Then the remaining paths are created, each folder
//!   before its content.
//! - A file is written to a temporary file in the same folder and exchanged with the old file, so a failure leaves the
//!   old file in place.
//! - INVARIANT: a file is deleted only after it was renamed to an unused name and compared again under that name.

use crate::Change;
use crate::compare::Seen;
use crate::record::{Before, Copied, kind};
use crate::tree::Tree;
use ironcurtain_paths::random_name;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, fchmod, fstat, mkdirat, openat, renameat_with, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
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
    let mut changes: Vec<&Change> = changes.iter().collect();
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    let mut restored = Restored::default();
    let mut cleared = Vec::new();
    for change in changes.into_iter().rev() {
        match clear(tree, before, change) {
            Ok(there) => cleared.push((&change.path, there)),
            Err(why) => restored.failed.push(NotRestored { path: change.path.clone(), why }),
        }
    }
    let mut folders = Vec::new();
    for (path, there) in cleared.into_iter().rev() {
        match create(tree, before, (path, there), copies) {
            Ok(()) => {
                restored.count += 1;
                if let Some(Copied::Folder { mode }) = before.entries.get(path) {
                    folders.push((path, *mode, there));
                }
            }
            Err(why) => restored.failed.push(NotRestored { path: path.clone(), why }),
        }
    }
    // Set permissions last, because a folder's permissions may deny its owner access.
    for (path, mode, there) in folders.into_iter().rev() {
        if let Err(why) = set_mode(tree, (path, there), mode) {
            restored.failed.push(NotRestored { path: path.clone(), why });
        }
    }
    restored
}

/// Removes an obstacle. Returns the file, link or folder that remains until it is replaced, or [`Seen::Nothing`].
fn clear<'a>(tree: &Tree, before: &Before, change: &'a Change) -> io::Result<&'a Seen> {
    let stat = tree.look(&change.path)?;
    if Seen::of(stat.as_ref()) != change.now {
        return Err(changed_again());
    }
    let Some(stat) = stat else { return Ok(&Seen::Nothing) };
    let is_folder = kind(&stat) == FileType::Directory;
    let stays = match before.entries.get(&change.path) {
        None => false,
        Some(Copied::Folder { .. }) => is_folder,
        Some(Copied::File { .. } | Copied::Link { .. }) => !is_folder,
    };
    if stays {
        return Ok(&change.now);
    }
    let (above, name) = tree.parent(&change.path)?;
    if is_folder {
        unlinkat(above, name, AtFlags::REMOVEDIR)?;
    } else {
        let beside = beside()?;
        renameat_with(&above, name, &above, &beside, RenameFlags::NOREPLACE).map_err(unsupported)?;
        delete(&above, &beside, &change.now, || {
            renameat_with(&above, &beside, &above, name, RenameFlags::NOREPLACE)
        })?;
    }
    Ok(&Seen::Nothing)
}

/// Creates the checkpoint's file, link or folder at a path, replacing `there`.
fn create(tree: &Tree, before: &Before, (path, there): (&str, &Seen), copies: &Path) -> io::Result<()> {
    let Some(copied) = before.entries.get(path) else { return Ok(()) };
    let (above, name) = tree.parent(path)?;
    match copied {
        Copied::Folder { .. } => match there {
            Seen::Nothing => Ok(mkdirat(&above, name, Mode::RWXU)?),
            Seen::Something { .. } => Ok(()),
        },
        Copied::Link { target } => {
            let beside = beside()?;
            symlinkat(target, &above, &beside)?;
            put(&above, (&beside, name), there)
        }
        Copied::File { mode, copy, .. } => {
            let mut copy = File::open(copies.join(copy.to_string()))?;
            let beside = beside()?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&above, &*beside, flags, Mode::RUSR | Mode::WUSR)?);
            let written =
                io::copy(&mut copy, &mut file).and_then(|_| Ok(fchmod(&file, Mode::from_raw_mode(*mode))?));
            if let Err(error) = written {
                // Ignores this error, because the first one is more important.
                let _ = unlinkat(&above, &*beside, AtFlags::empty());
                return Err(error);
            }
            put(&above, (&beside, name), there)
        }
    }
}

/// Renames a new file from `beside` to `name`, replacing `there`.
fn put(above: &OwnedFd, (beside, name): (&str, &str), there: &Seen) -> io::Result<()> {
    let is_unchanged = match statat(above, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Seen::of(Some(&stat)) == *there,
        // The rename's flags check this again.
        Err(_) => true,
    };
    let (flags, replaces) = match there {
        Seen::Nothing => (RenameFlags::NOREPLACE, false),
        Seen::Something { .. } => (RenameFlags::EXCHANGE, true),
    };
    let put = || renameat_with(above, beside, above, name, flags);
    let renamed = if is_unchanged { put().map_err(unsupported) } else { Err(changed_again()) };
    if let Err(error) = renamed {
        // Ignores this error, because the first one is more important.
        let _ = unlinkat(above, beside, AtFlags::empty());
        return Err(error);
    }
    if !replaces {
        return Ok(());
    }
    delete(above, beside, there, || put().and_then(|()| unlinkat(above, beside, AtFlags::empty())))
}

/// Deletes a renamed file if it is the file that was compared. Otherwise, renames it back.
fn delete(
    above: &OwnedFd,
    name: &str,
    compared: &Seen,
    put_back: impl FnOnce() -> Result<(), Errno>,
) -> io::Result<()> {
    let stat = statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if compared.is_renamed_to(&Seen::of(Some(&stat))) {
        return Ok(unlinkat(above, name, AtFlags::empty())?);
    }
    Err(match put_back() {
        Ok(()) => changed_again(),
        Err(error) => io::Error::other(format!("it has changed again, and is now named `{name}`: {error}")),
    })
}

/// Sets a folder's permissions. Fails if the folder is not the one that was compared.
fn set_mode(tree: &Tree, (path, there): (&str, &Seen), mode: u32) -> io::Result<()> {
    let folder = tree.open_below(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    if *there != Seen::Nothing && Seen::of(Some(&fstat(&folder)?)) != *there {
        return Err(changed_again());
    }
    Ok(fchmod(folder, Mode::from_raw_mode(mode))?)
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
fn beside() -> io::Result<String> {
    random_name().map(|name| format!(".ironcurtain-undo-{name}"))
}

#[cfg(test)]
mod tests {
    use super::{AtFlags, RenameFlags, Seen, delete, put, renameat_with, statat};
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
        let above = File::open(dir.path()).unwrap().into();
        let seen = |name: &str| Seen::of(Some(&statat(&above, name, AtFlags::SYMLINK_NOFOLLOW).unwrap()));
        write("own", "compared");
        let compared = seen("own");
        write("own", "by the user");
        for there in [&compared, &Seen::Nothing] {
            write("new", "restored");
            let refused = put(&above, ("new", "own"), there).unwrap_err();
            assert_eq!(refused.to_string(), "it has changed again");
            assert_eq!((read("own").as_str(), names(dir.path())), ("by the user", vec!["own".to_owned()]));
        }
        // A file that was removed after the comparison is not created.
        write("new", "restored");
        put(&above, ("new", "removed"), &compared).unwrap_err();
        assert_eq!(names(dir.path()), ["own"]);
        // A change made after the last check is detected in the replaced file.
        write("replaced", "by the user");
        let put_back = || renameat_with(&above, "replaced", &above, "back", RenameFlags::NOREPLACE);
        let refused = delete(&above, "replaced", &compared, put_back).unwrap_err();
        assert_eq!(refused.to_string(), "it has changed again");
        assert_eq!(read("back"), "by the user");
        fs::remove_file(dir.path().join("back")).unwrap();
        // Unchanged files are replaced.
        write("new", "restored");
        put(&above, ("new", "own"), &seen("own")).unwrap();
        write("new", "restored");
        put(&above, ("new", "other"), &Seen::Nothing).unwrap();
        assert_eq!(
            (read("own").as_str(), names(dir.path())),
            ("restored", vec!["other".into(), "own".into()])
        );
    }
}
