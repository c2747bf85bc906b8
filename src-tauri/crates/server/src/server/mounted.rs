//! A sandbox's mounts. A mount keeps showing the file or folder that was at its path when the mount was created, even
//! if that file or folder is replaced.

use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_paths::CanonicalPath;
use std::os::unix::fs::MetadataExt;

/// Device and inode numbers.
type Identity = (u64, u64);

/// Mount in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountRecord {
    /// Path and access that the mount provides.
    pub need: MountRequest,
    /// Paths inside the mount that are read-only although the mount is writable.
    read_only: Vec<String>,
    identity: Option<Identity>,
}

impl MountRecord {
    /// Creates the record of a mount. Call this before mounting, so that any later replacement of the file is detected.
    pub(super) fn before_mounting(need: MountRequest) -> Self {
        let identity = identity(&need.path);
        Self { need, read_only: Vec::new(), identity }
    }

    /// Sets the read-only paths inside the mount and returns the record.
    pub(super) fn with_read_only(self, read_only: Vec<String>) -> Self {
        Self { read_only, ..self }
    }

    /// Returns `true` if the path is writable through the mount.
    fn is_writable(&self, path: &CanonicalPath) -> bool {
        let is_approved = self.need.is_approved_by_name && self.need.path == *path;
        let is_read_only = |read_only: &String| path.as_path().starts_with(read_only);
        self.need.writable && (is_approved || !self.read_only.iter().any(is_read_only))
    }

    /// Returns `true` if the mount shows the current file or folder at its path.
    pub(super) fn is_current(&self) -> bool {
        self.identity.is_some() && identity(&self.need.path) == self.identity
    }
}

/// Returns `true` if all mounts at or above the path show current files and folders.
pub(super) fn is_current(mounted: &[MountRecord], path: &CanonicalPath) -> bool {
    mounted.iter().filter(|m| m.need.path.contains(path)).all(MountRecord::is_current)
}

/// Returns `true` if the current file is mounted with the needed access.
pub(super) fn is_mounted(mounted: &[MountRecord], need: &MountRequest) -> bool {
    let above = mounted.iter().filter(|m| m.need.path.contains(&need.path));
    let nearest = above.max_by_key(|m| m.need.path.components().count());
    nearest.is_some_and(|m| (m.is_writable(&need.path) || !need.writable) && m.is_current())
}

fn identity(path: &CanonicalPath) -> Option<Identity> {
    std::fs::symlink_metadata(path.as_path()).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_does_not_show_a_replaced_file() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let at = |name: &str| CanonicalPath::assume_canonical(base.join(name).to_str().unwrap()).unwrap();
        std::fs::write(at("file").as_path(), "old").unwrap();
        let need = |writable| MountRequest::new(at("file"), writable);
        let mounted = [MountRecord::before_mounting(need(false))];
        assert!(is_mounted(&mounted, &need(false)));
        assert!(!is_mounted(&mounted, &need(true)));
        assert!(!is_mounted(&mounted, &MountRequest::new(at("other"), false)));
        std::fs::write(at("new").as_path(), "new").unwrap();
        std::fs::rename(at("new").as_path(), at("file").as_path()).unwrap();
        assert!(!is_mounted(&mounted, &need(false)));
        assert!(!is_current(&mounted, &at("file")));
        assert!(is_current(&mounted, &at("other")));
        let missing = [MountRecord::before_mounting(MountRequest::new(at("gone"), false))];
        assert!(!is_mounted(&missing, &missing[0].need));
    }
}
