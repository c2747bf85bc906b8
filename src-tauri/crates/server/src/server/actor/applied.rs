//! Grants and policy as currently applied to one server.

use crate::server::mounted::{self, MountRecord};
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::OpenFolder;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Versions of the grant table and the policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Versions {
    /// Version of the grant table, which increases with each change.
    pub grants: u64,
    /// Version of the policy, which increases with each change.
    pub policy: u64,
}

impl Versions {
    /// Returns `true` if each version is at least as new as its counterpart in `others`.
    #[must_use]
    pub fn have_reached(self, others: Self) -> bool {
        self.grants >= others.grants && self.policy >= others.policy
    }
}

/// Grants, policy and mounts as applied to one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Versions of the grants and the policy that this state reflects.
    pub versions: Versions,
    /// Version of the newest grant table whose revocations are enforced in the sandbox and on the network. The server
    /// itself may still report old roots.
    pub enforced_grants: u64,
    /// Number of restarts because the server kept using revoked access.
    pub restarts: u64,
    /// Paths that could not be mounted, with the reasons.
    pub failed: BTreeMap<CanonicalPath, String>,
    /// Folders that are read-only for the rest of the session, with the reasons.
    pub(super) read_only: BTreeMap<CanonicalPath, String>,
    /// Folders that a policy rule permits the server to access.
    pub(super) opened: Arc<[OpenFolder]>,
    /// Mounts that the server's sandbox currently has.
    pub(super) mounted: Vec<MountRecord>,
}

impl Applied {
    /// Returns the paths that are mounted, with their access.
    pub(in crate::server) fn mounted(&self) -> impl Iterator<Item = &MountRequest> {
        self.mounted.iter().map(|mounted| &mounted.need)
    }

    /// Returns the first of the `written` paths that is read-only for the rest of the session, and the reason.
    #[must_use]
    pub fn find_read_only<'a>(
        &'a self,
        mut written: impl Iterator<Item = &'a CanonicalPath>,
    ) -> Option<(&'a CanonicalPath, &'a str)> {
        if self.read_only.is_empty() {
            return None;
        }
        written.find_map(|path| {
            let folder = self.read_only.iter().find(|(folder, _)| folder.contains(path));
            folder.map(|(_, reason)| (path, reason.as_str()))
        })
    }

    /// Returns `true` if the current file or folder at the path is mounted with the needed access.
    #[must_use]
    pub fn is_mounted(&self, need: &MountRequest) -> bool {
        mounted::is_mounted(&self.mounted, need)
    }

    /// Returns `true` if a policy rule permits access to the path with the needed access and the path is mounted with that access.
    #[must_use]
    pub fn is_opened_by_rule(&self, need: &MountRequest) -> bool {
        let opens = |o: &OpenFolder| o.path.contains(&need.path) && (o.writable || !need.writable);
        self.opened.iter().any(opens) && self.is_mounted(need)
    }

    /// Returns `true` if all mounts at or above the path show current files and folders.
    #[must_use]
    pub fn is_current(&self, path: &CanonicalPath) -> bool {
        mounted::is_current(&self.mounted, path)
    }
}
