//! Restores paths from a checkpoint.
//!
//! - First removes obstacles, the deepest path first, then creates the rest, a folder before its content.
//! - A file is written beside its place and renamed, so a failure leaves the old one.

use crate::Change;
use crate::compare::Seen;
use crate::record::{Before, Copied, kind};
use crate::tree::Tree;
use ironcurtain_paths::random_name;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, mkdirat, openat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;

/// Result of restoring.
#[derive(Debug, Default)]
pub struct Restored {
    /// Number of restored paths.
    pub count: usize,
    /// Paths that were not restored.
    pub failed: Vec<NotRestored>,
}

/// A path that was not restored.
#[derive(Debug)]
pub struct NotRestored {
    /// Path relative to the folder.
    pub path: String,
    /// Cause.
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
            Ok(()) => cleared.push(change),
            Err(why) => restored.failed.push(NotRestored { path: change.path.clone(), why }),
        }
    }
    let mut folders = Vec::new();
    for change in cleared.into_iter().rev() {
        match create(tree, before, &change.path, copies) {
            Ok(()) => {
                restored.count += 1;
                if let Some(Copied::Folder { mode }) = before.entries.get(&change.path) {
                    folders.push((&change.path, *mode));
                }
            }
            Err(why) => restored.failed.push(NotRestored { path: change.path.clone(), why }),
        }
    }
    // Only now: a folder may be closed to its own user.
    for (path, mode) in folders.into_iter().rev() {
        let folder = tree.open_below(path, OFlags::RDONLY | OFlags::DIRECTORY);
        if let Err(error) = folder.and_then(|folder| fchmod(folder, Mode::from_raw_mode(mode))) {
            restored.failed.push(NotRestored { path: path.clone(), why: error.into() });
        }
    }
    restored
}

/// Removes an obstacle. A file or link is replaced later instead.
fn clear(tree: &Tree, before: &Before, change: &Change) -> io::Result<()> {
    let stat = tree.look(&change.path)?;
    if Seen::of(stat.as_ref()) != change.now {
        return Err(io::Error::other("it has changed again"));
    }
    let Some(stat) = stat else { return Ok(()) };
    let is_folder = kind(&stat) == FileType::Directory;
    let stays = match before.entries.get(&change.path) {
        None => false,
        Some(Copied::Folder { .. }) => is_folder,
        Some(Copied::File { .. } | Copied::Link { .. }) => !is_folder,
    };
    if stays {
        return Ok(());
    }
    let (above, name) = tree.parent(&change.path)?;
    Ok(unlinkat(above, name, if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() })?)
}

/// Creates the checkpoint's file, link or folder at a path.
fn create(tree: &Tree, before: &Before, path: &str, copies: &Path) -> io::Result<()> {
    let Some(copied) = before.entries.get(path) else { return Ok(()) };
    let (above, name) = tree.parent(path)?;
    match copied {
        Copied::Folder { .. } => match mkdirat(&above, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        },
        Copied::Link { target } => {
            let beside = beside()?;
            symlinkat(target, &above, &beside)?;
            put(&above, (&beside, name))
        }
        Copied::File { mode, copy, .. } => {
            let mut copy = File::open(copies.join(copy.to_string()))?;
            let beside = beside()?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&above, &*beside, flags, Mode::RUSR | Mode::WUSR)?);
            let written =
                io::copy(&mut copy, &mut file).and_then(|_| Ok(fchmod(&file, Mode::from_raw_mode(*mode))?));
            if let Err(error) = written {
                // The first error is more important.
                let _ = unlinkat(&above, &*beside, AtFlags::empty());
                return Err(error);
            }
            put(&above, (&beside, name))
        }
    }
}

/// Renames a new file to its name.
fn put(above: &std::os::fd::OwnedFd, (beside, name): (&str, &str)) -> io::Result<()> {
    renameat(above, beside, above, name).map_err(|error| {
        // The first error is more important.
        let _ = unlinkat(above, beside, AtFlags::empty());
        error.into()
    })
}

/// Returns a name that no other file has.
fn beside() -> io::Result<String> {
    random_name().map(|name| format!(".ironcurtain-undo-{name}"))
}
