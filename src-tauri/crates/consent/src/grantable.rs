//! Permissions that a question can grant beyond its own call.
//!
//! - Offers and grants are created from the same [`Grantable`], so no grant exceeds its offer.

use super::Reach;
use ironcurtain_egress::HostPort;
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_grants::{Files, Granted};
use ironcurtain_paths::{CanonicalPath, PathKind};
use ironcurtain_policy::{Access, AccessSet, GrantKind, JudgedRequest, ToolScope, ToolUse};

const EVERYTHING: AccessSet = AccessSet { read: true, write: true, delete: true };

/// Access to a path that the user must approve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedAccess {
    /// Kind of access.
    pub access: Access,
    /// Path to access.
    pub path: CanonicalPath,
    /// Kind of file system object at the path.
    pub target: PathKind,
    /// Path that must be mounted into the sandbox for this access. `None` if nothing must be mounted.
    pub need: Option<MountRequest>,
}

/// Parts of a call that need approval and can be granted for later calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grantable {
    /// Paths that need approval, with the kind of access.
    pub requested: Vec<RequestedAccess>,
    /// Project that contains all paths, if there is one.
    pub project: Option<CanonicalPath>,
    /// Folder that contains all paths and that a grant already opens for reading, or `None`.
    pub readable_folder: Option<CanonicalPath>,
    /// Folder of a program's cache that contains all paths, if they are only read.
    pub cache: Option<CanonicalPath>,
    /// Hosts that need approval. Empty if anything other than hosts needs approval.
    pub hosts: Vec<HostPort>,
    /// Tool with its fixed values, or `None` if the paths or hosts can be granted instead.
    pub tool: Option<ToolUse>,
    /// `true` if the tool's annotation declares it read-only.
    pub only_reads: bool,
    /// `true` if a grant to change a folder mounts the folder, so that everything in it can also be read and deleted.
    pub mounts_folders: bool,
}

impl Grantable {
    /// Returns the permissions that an offer grants.
    #[must_use]
    pub fn permissions_for(&self, reach: Reach) -> Vec<Granted> {
        let files = |kind: GrantKind, paths: Vec<(CanonicalPath, AccessSet)>| {
            let files = |(path, access)| Granted::Files(Files { path, kind, access });
            paths.into_iter().map(files).collect()
        };
        let requested = &self.requested;
        let tree = |root: &Option<CanonicalPath>, access: AccessSet| {
            files(GrantKind::Tree, root.clone().map(|root| (root, access)).into_iter().collect())
        };
        match reach {
            Reach::Paths => {
                files(GrantKind::File, merged(requested.iter().map(|r| (r.path.clone(), r.access))))
            }
            Reach::Folders => files(GrantKind::Tree, self.folders()),
            Reach::ProjectToRead => tree(&self.project, AccessSet::only(Access::Read)),
            Reach::ProjectToChange => tree(&self.project, self.access_to_change()),
            Reach::OpenFolderToChange => tree(&self.readable_folder, self.access_to_change()),
            Reach::Host => self.hosts.iter().cloned().map(Granted::Host).collect(),
            Reach::Tool => self.tool.iter().cloned().map(ToolScope::Use).map(Granted::Tool).collect(),
            Reach::AnyUse => {
                let any = |tool: &ToolUse| Granted::Tool(ToolScope::Tool(tool.tool().to_owned()));
                self.tools().map(any).into_iter().collect()
            }
            Reach::ReadingTools => {
                let reads = self.tools().filter(|_| self.only_reads);
                reads.map(|_| Granted::Tool(ToolScope::ReadOnly)).into_iter().collect()
            }
            Reach::AllTools => self.tools().map(|_| Granted::Tool(ToolScope::All)).into_iter().collect(),
            Reach::Request | Reach::NewDefinition | Reach::OldDefinition | Reach::NoDefinition => Vec::new(),
        }
    }

    /// Returns the tool use if the server's other tools can be granted together with it. Returns `None` for a request
    /// that is not a tool call.
    pub(super) fn tools(&self) -> Option<&ToolUse> {
        self.tool.as_ref().filter(|tool| JudgedRequest::parse(tool.tool()).is_none())
    }

    /// Returns the folders that can be granted, each with the access that a grant gives.
    pub(super) fn folders(&self) -> Vec<(CanonicalPath, AccessSet)> {
        if let Some(cache) = &self.cache {
            return vec![(cache.clone(), AccessSet::only(Access::Read))];
        }
        let mut folders = folders(&self.requested);
        let changed = folders.iter_mut().filter(|(_, access)| self.mounts_folders && access.write);
        changed.for_each(|(_, access)| *access = EVERYTHING);
        folders
    }

    /// Returns the access that a grant to change a folder gives: reading, writing and the requested kinds, or full
    /// access if the folder is mounted.
    pub(super) fn access_to_change(&self) -> AccessSet {
        let both = AccessSet::only(Access::Read).with(Access::Write);
        let change = if self.mounts_folders { EVERYTHING } else { both };
        self.requested.iter().fold(change, |access, requested| access.with(requested.access))
    }

    /// Returns `true` if the call itself deletes something.
    pub(super) fn deletes(&self) -> bool {
        self.requested.iter().any(|requested| requested.access == Access::Delete)
    }
}

/// Returns the folder that contains each requested path, with all access requested in it. For a folder that the call
/// does not delete, returns the folder itself.
pub(super) fn folders(requested: &[RequestedAccess]) -> Vec<(CanonicalPath, AccessSet)> {
    merged(requested.iter().filter_map(|w| {
        let inside = w.target == PathKind::Folder && w.access != Access::Delete;
        let folder = if inside { Some(w.path.clone()) } else { w.path.parent() };
        folder.map(|f| (f, w.access))
    }))
}

pub(super) fn merged(all: impl Iterator<Item = (CanonicalPath, Access)>) -> Vec<(CanonicalPath, AccessSet)> {
    let mut merged: Vec<(CanonicalPath, AccessSet)> = Vec::new();
    for (path, access) in all {
        match merged.iter_mut().find(|(p, _)| *p == path) {
            Some((_, set)) => *set = set.with(access),
            None => merged.push((path, AccessSet::only(access))),
        }
    }
    merged
}
