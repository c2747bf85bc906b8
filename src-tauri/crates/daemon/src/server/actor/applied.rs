//! Grants and policy applied to one server so far.

use crate::server::mounted::{self, Mounted};
use ironcurtain_grants::mounts::Need;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::OpenFolder;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Versions of the grants and the policy that something was derived from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Versions {
    /// Version of the grant table.
    pub grants: u64,
    /// Version of the policy.
    pub policy: u64,
}

impl Versions {
    /// Returns `true` if neither version is older than in `others`.
    #[must_use]
    pub fn have_reached(self, others: Self) -> bool {
        self.grants >= others.grants && self.policy >= others.policy
    }
}

/// Grants and policy applied to the server so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Versions that this state reflects.
    pub versions: Versions,
    /// Newest grant table whose revocations are proven to be complete in the sandbox and on the network. The server may not
    /// have noticed yet.
    pub within: u64,
    /// Number of restarts because the server still held something that was revoked.
    pub restarts: u64,
    /// Paths that could not be mounted, and why.
    pub failed: BTreeMap<CanonicalPath, String>,
    /// Folders that are read-only in this session, and why.
    pub(super) read_only: BTreeMap<CanonicalPath, String>,
    /// Folders that the policy always opens to the server.
    pub(super) opened: Arc<[OpenFolder]>,
    /// Current mounts of the sandbox.
    pub(super) mounted: Vec<Mounted>,
}

impl Applied {
    /// Returns the needs of all mounts in the sandbox.
    pub(in crate::server) fn mounted(&self) -> impl Iterator<Item = &Need> {
        self.mounted.iter().map(|mounted| &mounted.need)
    }

    /// Returns the first path to be written that is read-only in this session, with the reason.
    #[must_use]
    pub fn withheld<'a>(
        &'a self,
        mut written: impl Iterator<Item = &'a CanonicalPath>,
    ) -> Option<(&'a CanonicalPath, &'a str)> {
        if self.read_only.is_empty() {
            return None;
        }
        written.find_map(|path| {
            let around = self.read_only.iter().find(|(folder, _)| folder.contains(path));
            around.map(|(_, reason)| (path, reason.as_str()))
        })
    }

    /// Returns `true` if the path is mounted in its current version with the access needed.
    #[must_use]
    pub fn shows(&self, need: &Need) -> bool {
        mounted::shows(&self.mounted, need)
    }

    /// Returns `true` if the path is mounted in its current version with the access needed because the policy always opens it.
    #[must_use]
    pub fn opens(&self, need: &Need) -> bool {
        let opens = |o: &OpenFolder| o.path.contains(&need.path) && (o.writable || !need.writable);
        self.opened.iter().any(opens) && self.shows(need)
    }

    /// Returns `true` if the path is not mounted, or mounted in its current version.
    #[must_use]
    pub fn is_current(&self, path: &CanonicalPath) -> bool {
        mounted::is_current(&self.mounted, path)
    }
}
