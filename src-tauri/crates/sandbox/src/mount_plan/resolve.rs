//! Resolves symlinks and finds other paths to the same file.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use crate::{
    mountinfo::{MountEntry, MountInfo},
    nofollow::{FileId, FileKind},
};

/// Failure to resolve the paths of a view.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayoutError {
    #[error("failed to inspect `{path}`: {source}")]
    Inspect { path: String, source: io::Error },
    #[error("`{path}` contains a symlink to `{real}`; use that path instead")]
    Symlink { path: String, real: String },
    #[error("`{0}` resolves to a path that is not UTF-8")]
    NotUtf8(String),
}

/// Canonicalizes `path`. Returns `None` if it does not exist or is inaccessible to the user.
pub(crate) fn canonicalize(path: &str) -> Result<Option<String>, LayoutError> {
    match fs::canonicalize(path) {
        Ok(real) => into_utf8(real, path).map(Some),
        Err(error) if is_absent(&error) => Ok(None),
        Err(source) => Err(LayoutError::Inspect { path: path.to_owned(), source }),
    }
}

/// Returns the canonical form and kind of `path`, or `None` if it does not exist or is inaccessible to the user.
pub(crate) fn canonicalize_with_kind(path: &str) -> Result<Option<(String, FileKind)>, LayoutError> {
    let Some(real) = canonicalize(path)? else { return Ok(None) };
    let kind = if Path::new(&real).is_dir() { FileKind::Directory } else { FileKind::File };
    Ok(Some((real, kind)))
}

/// Returns `path` if it exists and contains no symlinks.
///
/// Used for paths that are opened afterwards: a sandbox may have created a symlink to redirect the open.
pub(super) fn without_symlinks(path: &str) -> Result<Option<&str>, LayoutError> {
    match canonicalize(path)? {
        Some(real) if real == path => Ok(Some(path)),
        Some(real) => Err(LayoutError::Symlink { path: path.to_owned(), real }),
        None => Ok(None),
    }
}

/// Returns the path of the symlink at `path`, with its parent canonicalized, or `None` if `path` is not a symlink.
pub(super) fn symlink_at(path: &str) -> Result<Option<String>, LayoutError> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    let Some((parent, name)) = path.rsplit_once('/').filter(|_| is_link) else { return Ok(None) };
    let parent = if parent.is_empty() { "/" } else { parent };
    Ok(canonicalize(parent)?.map(|parent| format!("{}/{name}", parent.trim_end_matches('/'))))
}

/// Mount point and table entry of a mount that no other mount covers.
pub(super) type VisibleMount<'a> = (PathBuf, &'a MountEntry);

/// Returns the mounts that no other mount covers.
pub(super) fn mounted(table: &MountInfo) -> Vec<VisibleMount<'_>> {
    let points = table.by_point().into_iter();
    points.filter_map(|(point, id)| Some((PathBuf::from(point), table.get(id)?))).collect()
}

/// Returns other paths at which the same file, or a part of the same folder, is mounted.
pub(super) fn aliases(real: &str, mounted: &[VisibleMount<'_>]) -> Result<Vec<String>, LayoutError> {
    let path = Path::new(real);
    let containing = mounted.iter().filter(|(point, _)| path.starts_with(point));
    let Some((point, entry)) = containing.max_by_key(|(point, _)| point.as_os_str().len()) else {
        return Ok(vec![]);
    };
    let Ok(relative) = path.strip_prefix(point) else { return Ok(vec![]) };
    let in_file_system = Path::new(&entry.root).join(relative);
    let own = FileId::at(path);

    let mut found = Vec::new();
    for (other, mount) in mounted.iter().filter(|(_, mount)| mount.device == entry.device) {
        // A path that another mount covers leads to a different file than this entry indicates.
        let (alias, is_same_file) = if let Ok(rest) = in_file_system.strip_prefix(&mount.root) {
            let alias: PathBuf = other.join(rest).components().collect();
            let is_same_file = FileId::at(&alias).is_some_and(|found| Some(found) == own);
            (alias, is_same_file)
        } else if Path::new(&mount.root).starts_with(&in_file_system) {
            let device = |found: Option<FileId>| found.map(|found| found.device);
            (other.clone(), device(FileId::at(other)).is_some_and(|found| Some(found) == device(own)))
        } else {
            continue;
        };
        // An alias below the path is hidden with it.
        if is_same_file && !alias.starts_with(path) {
            found.push(into_utf8(alias, real)?);
        }
    }
    Ok(found)
}

fn into_utf8(path: PathBuf, requested: &str) -> Result<String, LayoutError> {
    path.into_os_string().into_string().map_err(|_| LayoutError::NotUtf8(requested.to_owned()))
}

/// Returns `true` if an error means that a path does not exist or is inaccessible to the user.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
        || error.raw_os_error() == Some(libc::ELOOP)
        || error.raw_os_error() == Some(libc::ENAMETOOLONG)
}
