//! The grants and the policy as applied to one server so far.

use crate::server::mounted::{self, Mounted};
use ironcurtain_grants::mounts::Need;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::OpenFolder;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The grants and the policy that something follows from, by their versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Versions {
    /// The version of the table of grants.
    pub grants: u64,
    /// The version of the policy.
    pub policy: u64,
}

impl Versions {
    /// Returns `true` if neither version is older than in `others`.
    #[must_use]
    pub fn have_reached(self, others: Self) -> bool {
        self.grants >= others.grants && self.policy >= others.policy
    }
}

/// The grants and the policy as applied to the server so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// The versions of grants and policy that it follows from.
    pub versions: Versions,
    /// The newest table of grants that it is within: what that table lacks is gone from the sandbox and from the network, with
    /// proof. The server may not have understood yet.
    pub within: u64,
    /// The number of times that the server was restarted because it still held something that was taken away.
    pub restarts: u64,
    /// Paths that could not be mounted, and why.
    pub failed: BTreeMap<CanonicalPath, String>,
    /// Folders that can only be read in this session, and why.
    pub(super) read_only: BTreeMap<CanonicalPath, String>,
    /// Folders that the policy opens to the server for good.
    pub(super) opened: Arc<[OpenFolder]>,
    /// The mounts of its sandbox.
    pub(super) mounted: Vec<Mounted>,
}

impl Applied {
    /// Everything that is mounted in its sandbox, as it was needed.
    pub(in crate::server) fn mounted(&self) -> impl Iterator<Item = &Need> {
        self.mounted.iter().map(|mounted| &mounted.need)
    }

    /// Returns the first path that is to be written and can only be read in this session, with the reason.
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

    /// Returns `true` if a path is shown as it is now, with the access needed.
    #[must_use]
    pub fn shows(&self, need: &Need) -> bool {
        mounted::shows(&self.mounted, need)
    }

    /// Returns `true` if a path is shown as it is now because the policy opens it for good, with the access needed.
    #[must_use]
    pub fn opens(&self, need: &Need) -> bool {
        let opens = |o: &OpenFolder| o.path.contains(&need.path) && (o.writable || !need.writable);
        self.opened.iter().any(opens) && self.shows(need)
    }

    /// Returns `true` if nothing is shown of a path, or what is shown is what stands there now.
    #[must_use]
    pub fn is_current(&self, path: &CanonicalPath) -> bool {
        mounted::is_current(&self.mounted, path)
    }
}
