//! Limits of grants.

use ironcurtain_paths::CanonicalPath;

/// Paths that no grant may reach.
#[derive(Debug, Clone, Copy)]
pub struct GrantLimits<'a> {
    /// The user's home directory.
    pub home: &'a CanonicalPath,
    /// Protected paths.
    pub protected: &'a [CanonicalPath],
}

impl GrantLimits<'_> {
    /// Returns whether a folder may be granted with everything below it.
    #[must_use]
    pub fn may_be_granted(&self, folder: &CanonicalPath) -> bool {
        let touches = |p: &CanonicalPath| p.contains(folder) || folder.contains(p);
        !folder.contains(self.home) && !self.protected.iter().any(touches)
    }
}
