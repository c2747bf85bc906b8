//! Reads a repository's files without git.
//!
//! - Only regular files of at most [`MAX_BYTES`] that the caller permits are read. They are opened without blocking
//!   and without following symlinks.

use super::UnknownAddress;
use ironcurtain_paths::bounded_read;
use ironcurtain_paths::{CanonicalPath, Resolver};
use rustix::fs::Access;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Maximum size of a file in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Function that returns `true` if a path may be accessed.
pub(super) type MayAccess<'a> = dyn Fn(&CanonicalPath) -> bool + 'a;

/// Reads a file as text, or returns `None` if it does not exist. Symlinks in `path` are resolved first.
pub(super) fn read(path: &Path, may_access: &MayAccess<'_>) -> Result<Option<String>, UnknownAddress> {
    let path = path.to_str().ok_or(UnknownAddress::IrregularFile)?;
    let path = resolve(&CanonicalPath::root(), path)?;
    if !may_access(&path) {
        return Err(UnknownAddress::NotAllowed);
    }
    let Some(content) = read_regular(&path)? else { return Ok(None) };
    String::from_utf8(content).map(Some).map_err(|_| UnknownAddress::Unparsable)
}

/// Like [`read`], for a file in a folder, but fails if the file is a symlink.
pub(super) fn read_unlinked(
    folder: &CanonicalPath,
    name: &str,
    may_access: &MayAccess<'_>,
) -> Result<Option<String>, UnknownAddress> {
    let path = folder.as_path().join(name);
    if path.is_symlink() { Err(UnknownAddress::IrregularFile) } else { read(&path, may_access) }
}

fn read_regular(path: &CanonicalPath) -> Result<Option<Vec<u8>>, UnknownAddress> {
    let file = match bounded_read::open_nofollow(path.as_path()) {
        Ok(file) => file,
        Err(e) if is_missing(&e) => return Ok(None),
        Err(_) => return Err(UnknownAddress::IrregularFile),
    };
    let mut content = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut content).map_err(|_| UnknownAddress::IrregularFile)?;
    if content.len() as u64 > MAX_BYTES { Err(UnknownAddress::TooLarge) } else { Ok(Some(content)) }
}

/// Resolves a name relative to a folder, without expanding `~`. Fails if the kernel would reject the path.
pub(super) fn resolve(folder: &CanonicalPath, name: &str) -> Result<CanonicalPath, UnknownAddress> {
    let written = folder.as_path().join(name);
    let name = if name.starts_with('~') { format!("./{name}") } else { name.to_owned() };
    let resolver = Resolver::new(folder.clone(), folder.clone());
    let path = resolver.resolve(&name).map_err(|_| UnknownAddress::IrregularFile)?.path;
    if written.exists() == path.as_path().exists() { Ok(path) } else { Err(UnknownAddress::IrregularFile) }
}

/// Returns `false` only if a folder certainly has no entry with this name.
pub(super) fn exists(folder: &CanonicalPath, name: &str) -> bool {
    !folder.as_path().join(name).symlink_metadata().is_err_and(|e| is_missing(&e))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Returns `true` if a folder has a subfolder with this name that can be entered.
pub(super) fn has_folder(folder: &CanonicalPath, name: &str) -> bool {
    let path = folder.as_path().join(name);
    path.is_dir() && rustix::fs::access(&path, Access::EXEC_OK).is_ok()
}

/// Returns `true` if a folder has no entry with this name, or the entry is an empty folder.
pub(super) fn is_missing_or_empty(
    folder: &CanonicalPath,
    name: &str,
    may_access: &MayAccess<'_>,
) -> Result<bool, UnknownAddress> {
    let path = resolve(folder, name)?;
    if !may_access(&path) {
        return Err(UnknownAddress::NotAllowed);
    }
    match path.as_path().read_dir() {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(true),
        Err(_) => Err(UnknownAddress::IrregularFile),
    }
}
