//! Unpacking a bundle.
//!
//! - INVARIANT: nothing is written outside of the folder, and no link is made.
//! - Nothing of it runs.

use ironcurtain_paths::bounded_read;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zip::ZipArchive;
use zip::result::ZipError;

/// The most that a bundle may become, in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// The most that it may have packed, in bytes: the list of its files is held in memory.
const MOST_PACKED: u64 = 256 << 20;

/// The most files.
const MOST_FILES: usize = 50_000;

/// Why a bundle is not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// It cannot be read.
    #[error("`{file}` is no bundle that can be read: {source}")]
    Read {
        /// The bundle.
        file: PathBuf,
        /// The unpacker's answer.
        source: ZipError,
    },
    /// It is not for us to unpack.
    #[error("`{0}` in the bundle would lie outside of it, or is a link; nothing was added")]
    Outside(String),
    /// It is too large.
    #[error(
        "the bundle is larger than {} MB packed or {} MB unpacked, or has more than {MOST_FILES} files; nothing was added",
        MOST_PACKED >> 20,
        MOST_BYTES >> 20
    )]
    TooLarge,
    /// The folder cannot be written.
    #[error("`{path}` cannot be written: {source}")]
    Write {
        /// The path.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

/// Unpacks a bundle into a folder, in place of what is there.
///
/// # Errors
/// [`UnpackError`]; then the folder is gone.
pub(super) fn unpack(bundle: &Path, folder: &Path) -> Result<(), UnpackError> {
    let read = |source| UnpackError::Read { file: bundle.to_path_buf(), source };
    let file = bounded_read::open(bundle).map_err(|problem| read(problem.into()))?;
    if file.metadata().map_err(|problem| read(problem.into()))?.len() > MOST_PACKED {
        return Err(UnpackError::TooLarge);
    }
    let mut archive = ZipArchive::new(file).map_err(read)?;
    remove(folder)?;
    let done = all(&mut archive, folder, &read);
    if done.is_err() {
        remove(folder)?;
    }
    done
}

fn all(
    archive: &mut ZipArchive<File>,
    folder: &Path,
    read: &impl Fn(ZipError) -> UnpackError,
) -> Result<(), UnpackError> {
    if archive.len() > MOST_FILES {
        return Err(UnpackError::TooLarge);
    }
    make(folder)?;
    let mut left = MOST_BYTES;
    for at in 0..archive.len() {
        let mut entry = archive.by_index(at).map_err(read)?;
        let outside = || UnpackError::Outside(entry.name().unwrap_or_default().escape_default().to_string());
        let below = entry.enclosed_name().ok_or_else(outside)?;
        if entry.is_symlink() {
            return Err(outside());
        }
        let path = folder.join(below);
        if entry.is_dir() {
            make(&path)?;
            continue;
        }
        path.parent().map_or(Ok(()), make)?;
        let is_program = entry.unix_mode().is_some_and(|mode| mode & 0o100 != 0);
        let write = |source| UnpackError::Write { path: path.clone(), source };
        let mut file = File::create_new(&path).map_err(write)?;
        let written = io::copy(&mut (&mut entry).take(left + 1), &mut file).map_err(write)?;
        left = left.checked_sub(written).ok_or(UnpackError::TooLarge)?;
        let mode = if is_program { 0o700 } else { 0o600 };
        file.set_permissions(Permissions::from_mode(mode)).map_err(write)?;
    }
    Ok(())
}

fn make(folder: &Path) -> Result<(), UnpackError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| UnpackError::Write { path: folder.to_path_buf(), source })
}

/// Removes a folder, if it is there.
fn remove(folder: &Path) -> Result<(), UnpackError> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(UnpackError::Write { path: folder.to_path_buf(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
