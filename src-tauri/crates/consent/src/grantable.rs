//! Access that a question can grant beyond its call.
//!
//! - Offers and grants are created from the same value, so that no grant exceeds its offer.

use super::Reach;
use ironcurtain_egress::HostPort;
use ironcurtain_grants::mounts::Need;
use ironcurtain_grants::{Files, Granted};
use ironcurtain_paths::{CanonicalPath, PathKind};
use ironcurtain_policy::{Access, AccessSet, GrantKind, JudgedRequest, ToolScope, ToolUse};

/// One access of a call that needs approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedAccess {
    /// Kind of access.
    pub access: Access,
    /// Path to access.
    pub path: CanonicalPath,
    /// Kind of the path's target.
    pub target: PathKind,
    /// Path that the sandbox must expose for it.
    pub need: Option<Need>,
}

/// Parts of a call that need approval and can be granted beyond it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grantable {
    /// Paths that need approval.
    pub requested: Vec<RequestedAccess>,
    /// Project around all paths.
    pub project: Option<CanonicalPath>,
    /// Folder around all paths that the user has opened for reading.
    pub open: Option<CanonicalPath>,
    /// Hosts; empty unless they are all that needs approval.
    pub hosts: Vec<HostPort>,
    /// Use of the tool, or `None` if the call names resources that can be granted themselves.
    pub tool: Option<ToolUse>,
    /// True if the tool's annotation says that it only reads.
    pub only_reads: bool,
}

impl Grantable {
    /// Returns the grants that an offer opens.
    #[must_use]
    pub fn opened_by(&self, reach: Reach) -> Vec<Granted> {
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
            Reach::Folders => files(GrantKind::Tree, folders(requested)),
            Reach::ProjectToRead => tree(&self.project, AccessSet::only(Access::Read)),
            Reach::ProjectToChange => tree(&self.project, self.access_to_change()),
            Reach::OpenFolderToChange => tree(&self.open, self.access_to_change()),
            Reach::Host => self.hosts.iter().cloned().map(Granted::Host).collect(),
            Reach::Tool => self.tool.iter().cloned().map(ToolScope::Use).map(Granted::Tool).collect(),
            Reach::AnyUse => {
                let any = |tool: &ToolUse| Granted::Tool(ToolScope::Tool(tool.tool().to_owned()));
                self.tools().map(any).into_iter().collect()
            }
            Reach::ReadingTools => {
                let reads = self.tools().filter(|_| self.only_reads);
                reads.map(|_| Granted::Tool(ToolScope::Reading)).into_iter().collect()
            }
            Reach::AllTools => self.tools().map(|_| Granted::Tool(ToolScope::All)).into_iter().collect(),
            Reach::Request | Reach::NewDefinition | Reach::OldDefinition | Reach::NoDefinition => Vec::new(),
        }
    }

    /// Returns the use of the tool, if other tools of the server can be granted with it. Other requests are not tools.
    pub(super) fn tools(&self) -> Option<&ToolUse> {
        self.tool.as_ref().filter(|tool| JudgedRequest::parse(tool.tool()).is_none())
    }

    /// Returns all requested access, plus reading and writing.
    pub(super) fn access_to_change(&self) -> AccessSet {
        let both = AccessSet::only(Access::Read).with(Access::Write);
        self.requested.iter().fold(both, |access, requested| access.with(requested.access))
    }
}

/// Returns the folder of each requested path, or the path itself if it is a folder, with all access requested there.
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
