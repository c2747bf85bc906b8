//! Replaces files atomically. Preserves the file mode and any symlink at the path.

use crate::{bounded_read, random_name};
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Prefix of the names of temporary files.
const TEMP_PREFIX: &str = ".ironcurtain-";

/// Maximum number of attempts to create a temporary file.
const MAX_ATTEMPTS: usize = 3;

/// Replaces the contents of a file atomically. If the path is a symlink, its target is replaced.
///
/// # Errors
/// Returns an error if the write, the rename or a sync fails. The file is then unchanged, unless only the final sync
/// of the folder failed.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    replace_bytes(path, text.as_bytes())
}

/// Replaces the contents of a file like [`replace`], with arbitrary bytes.
///
/// # Errors
/// Returns the same errors as [`replace`].
pub fn replace_bytes(path: &Path, content: &[u8]) -> io::Result<()> {
    let target = if path.is_symlink() { path.canonicalize()? } else { path.to_path_buf() };
    let folder = target.parent().ok_or(io::ErrorKind::NotFound)?;
    let mode = std::fs::metadata(&target).map_or(0o600, |metadata| metadata.permissions().mode() & 0o777);
    let (temp_path, mut file) = create_in(folder)?;
    let written = write(&mut file, content, mode).and_then(|()| std::fs::rename(&temp_path, &target));
    if written.is_err() {
        // Ignores this error, because the error of the write or the rename is reported instead.
        let _ = std::fs::remove_file(&temp_path);
    }
    written?;
    File::open(folder)?.sync_all()
}

/// Removes the temporary files that killed processes left in a folder. Keeps files that a running process is still
/// writing, because the process holds a lock on them.
///
/// # Errors
/// Returns an error if the folder cannot be read or a file cannot be removed.
pub fn sweep(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let is_temporary = entry.file_name().to_string_lossy().starts_with(TEMP_PREFIX);
        if is_temporary && entry.file_type()?.is_file() {
            let file = bounded_read::open_nofollow(&entry.path())?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                std::fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

/// Creates a locked temporary file in a folder. Closing the file releases the lock.
fn create_in(folder: &Path) -> io::Result<(PathBuf, File)> {
    for _ in 0..MAX_ATTEMPTS {
        let path = folder.join(format!("{TEMP_PREFIX}{}", random_name()?));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        // Another process may have removed the file as a leftover before this process locked it.
        let is_ours =
            flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() && file.metadata()?.nlink() > 0;
        if is_ours {
            return Ok((path, file));
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

fn write(file: &mut File, content: &[u8], mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_killed_processes_are_removed_and_files_being_written_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let leftovers = [".ironcurtain-0123", ".ironcurtain-head-1-0"].map(|name| dir.path().join(name));
        leftovers.iter().for_each(|path| std::fs::write(path, "").unwrap());
        std::os::unix::fs::symlink("nowhere", dir.path().join(".ironcurtain-link")).unwrap();
        std::fs::write(dir.path().join("kept"), "").unwrap();
        let (written, file) = create_in(dir.path()).unwrap();
        sweep(dir.path()).unwrap();
        assert!(!leftovers.iter().any(|path| path.exists()) && written.exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
        drop(file);
        sweep(dir.path()).unwrap();
        assert!(!written.exists());
    }

    #[test]
    fn a_file_is_replaced_through_a_link_and_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
        let problem = replace(&dir.path().join("no/where"), "x").unwrap_err();
        assert_eq!(problem.kind(), io::ErrorKind::NotFound);
    }
}
