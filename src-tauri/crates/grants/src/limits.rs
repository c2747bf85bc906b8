//! Folders that cannot be granted.

use ironcurtain_paths::CanonicalPath;

/// Paths that a folder grant must not include.
#[derive(Debug, Clone, Copy)]
pub struct GrantLimits<'a> {
    /// The user's home directory.
    pub home: &'a CanonicalPath,
    /// Paths that no call may access.
    pub protected: &'a [CanonicalPath],
}

impl GrantLimits<'_> {
    /// Returns `true` if the folder, with everything below it, can be granted.
    #[must_use]
    pub fn may_be_granted(&self, folder: &CanonicalPath) -> bool {
        !folder.contains(self.home) && !self.protected.iter().any(|protected| protected.overlaps(folder))
    }
}
