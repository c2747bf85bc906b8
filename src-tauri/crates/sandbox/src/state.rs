//! State directory with the journals of writable paths and the quarantined files. It outlives sandboxes.
//!
//! - INVARIANT: the path is a directory that belongs to the user and that only the user can access. Otherwise, opening
//!   it fails.
//! - The directory is hidden in every sandbox.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// Path of an open state directory.
#[derive(Clone, Debug)]
pub(crate) struct StateDir(PathBuf);

impl StateDir {
    /// Opens the directory at `path`, creating it if it does not exist.
    pub(crate) fn open(path: &str, uid: u32) -> io::Result<Self> {
        let path = PathBuf::from(path);
        match DirBuilder::new().recursive(true).mode(0o700).create(&path) {
            // A file or dangling symlink is at the path. The check below reports it.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(with_path(&path, &error));
            }
            Ok(()) | Err(_) => {}
        }
        let found = fs::symlink_metadata(&path).map_err(|error| with_path(&path, &error))?;
        if !found.is_dir() || found.uid() != uid || found.mode() & 0o077 != 0 {
            let what = "is not a private directory of yours; run `chmod 700` on it, or remove it";
            return Err(io::Error::other(format!("`{}` {what}", path.display())));
        }
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a subdirectory, creating it if it does not exist.
    pub(crate) fn subdir(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(with_path(&path, &error)),
            Ok(()) | Err(_) => Ok(path),
        }
    }
}

/// Creates an entry under the first unused number. `next` never decreases, so the cost does not grow with the number
/// of entries. Numbers that earlier processes used are skipped.
pub(crate) fn create_numbered<T>(next: &AtomicU64, make: impl Fn(u64) -> io::Result<T>) -> io::Result<T> {
    loop {
        match make(next.fetch_add(1, Ordering::Relaxed)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
    }
}

fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn refuses_directory_that_is_not_private() {
        let base = tempfile::tempdir().unwrap();
        let uid = rustix::process::getuid().as_raw();
        let own = base.path().join("own");
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        assert!(StateDir::open(&text(&own), uid).is_ok());
        assert!(StateDir::open(&text(&own), uid).is_ok());
        assert!(StateDir::open(&text(&own), uid + 1).is_err());
        symlink(&own, base.path().join("link")).unwrap();
        assert!(StateDir::open(&text(&base.path().join("link")), uid).is_err());
        fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
        let error = StateDir::open(&text(&own), uid).unwrap_err().to_string();
        assert!(error.contains("is not a private directory of yours"), "{error}");
    }
}
