//! Unpacks the ZIP archive of a bundle.
//!
//! - INVARIANT: writes nothing outside the target folder and creates no symlinks.
//! - Does not run the bundle's code.

use ironcurtain_paths::bounded_read;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zip::ZipArchive;
use zip::result::ZipError;

/// Maximum total size of the unpacked files: 1 GiB.
const MAX_BYTES: u64 = 1 << 30;

/// Maximum size of the archive: 256 MiB. This also limits the size of the file list in memory.
const MAX_ARCHIVE_BYTES: u64 = 256 << 20;

/// Maximum number of files in a bundle.
const MAX_FILES: usize = 50_000;

/// Error from unpacking a bundle.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The file could not be read as a ZIP archive.
    #[error("failed to read bundle `{file}`: {source}")]
    Read {
        /// Path of the bundle.
        file: PathBuf,
        /// Error from the ZIP reader.
        source: ZipError,
    },
    /// An archive entry is a symlink, or its path leads outside the folder.
    #[error("`{0}` in the bundle is a symlink or outside its folder; nothing was added")]
    Outside(String),
    /// The bundle exceeds a size limit or the maximum number of files.
    #[error(
        "the bundle is larger than {} MB packed or {} MB unpacked, or has more than {MAX_FILES} files; nothing was added",
        MAX_ARCHIVE_BYTES >> 20,
        MAX_BYTES >> 20
    )]
    TooLarge,
    /// A file could not be written.
    #[error("failed to write `{path}`: {source}")]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
}

/// Unpacks a bundle into a folder, replacing the folder's previous contents.
///
/// # Errors
/// Returns an [`UnpackError`] on failure, in which case the folder is removed.
pub(super) fn unpack(bundle: &Path, folder: &Path) -> Result<(), UnpackError> {
    let read = |source| UnpackError::Read { file: bundle.to_path_buf(), source };
    let file = bounded_read::open(bundle).map_err(|problem| read(problem.into()))?;
    if file.metadata().map_err(|problem| read(problem.into()))?.len() > MAX_ARCHIVE_BYTES {
        return Err(UnpackError::TooLarge);
    }
    let mut archive = ZipArchive::new(file).map_err(read)?;
    remove(folder)?;
    let result = extract_all(&mut archive, folder, &read);
    if result.is_err() {
        remove(folder)?;
    }
    result
}

fn extract_all(
    archive: &mut ZipArchive<File>,
    folder: &Path,
    read: &impl Fn(ZipError) -> UnpackError,
) -> Result<(), UnpackError> {
    if archive.len() > MAX_FILES {
        return Err(UnpackError::TooLarge);
    }
    create_dir(folder)?;
    let mut remaining = MAX_BYTES;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(read)?;
        let outside = || UnpackError::Outside(entry.name().unwrap_or_default().escape_default().to_string());
        let relative_path = entry.enclosed_name().ok_or_else(outside)?;
        if entry.is_symlink() {
            return Err(outside());
        }
        let path = folder.join(relative_path);
        if entry.is_dir() {
            create_dir(&path)?;
            continue;
        }
        path.parent().map_or(Ok(()), create_dir)?;
        let is_program = entry.unix_mode().is_some_and(|mode| mode & 0o100 != 0);
        let write = |source| UnpackError::Write { path: path.clone(), source };
        let mut file = File::create_new(&path).map_err(write)?;
        let written = io::copy(&mut (&mut entry).take(remaining + 1), &mut file).map_err(write)?;
        remaining = remaining.checked_sub(written).ok_or(UnpackError::TooLarge)?;
        let mode = if is_program { 0o700 } else { 0o600 };
        file.set_permissions(Permissions::from_mode(mode)).map_err(write)?;
    }
    Ok(())
}

fn create_dir(folder: &Path) -> Result<(), UnpackError> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|source| UnpackError::Write { path: folder.to_path_buf(), source })
}

/// Removes a folder if it exists.
fn remove(folder: &Path) -> Result<(), UnpackError> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(UnpackError::Write { path: folder.to_path_buf(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
