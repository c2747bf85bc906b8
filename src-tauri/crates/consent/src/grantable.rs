//! The things that a question can be answered for beyond its call, and the grants that an offer of them opens.
//!
//! - The offer and the grants come from the same value, so that nothing is opened that no offer names.

use super::Reach;
use ironcurtain_egress::HostPort;
use ironcurtain_grants::mounts::Need;
use ironcurtain_grants::{Files, Granted};
use ironcurtain_paths::{CanonicalPath, PathKind};
use ironcurtain_policy::{Access, AccessSet, GrantKind, ToolUse};

/// One access that a call asks for and that needs the person's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedAccess {
    /// The access that it needs.
    pub access: Access,
    /// The path that it accesses.
    pub path: CanonicalPath,
    /// The thing at that path.
    pub target: PathKind,
    /// The path that the kernel must show the server for it.
    pub need: Option<Need>,
}

/// The things that a call is asked about, as far as each can be allowed for longer than the call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grantable {
    /// Each path that is asked about.
    pub requested: Vec<RequestedAccess>,
    /// The project around all of them.
    pub project: Option<CanonicalPath>,
    /// The folder around all of them that the person has opened to be read.
    pub open: Option<CanonicalPath>,
    /// Hosts; none unless the call is asked about for nothing else.
    pub hosts: Vec<HostPort>,
    /// The use of the tool; nothing where the call names what is granted by itself.
    pub tool: Option<ToolUse>,
}

impl Grantable {
    /// The grants that an offer opens.
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
            Reach::Tool => self.tool.iter().cloned().map(Granted::Tool).collect(),
            Reach::Request => Vec::new(),
        }
    }

    /// Whatever is asked for in a folder, and with it reading and writing there.
    pub(super) fn access_to_change(&self) -> AccessSet {
        let both = AccessSet::only(Access::Read).with(Access::Write);
        self.requested.iter().fold(both, |access, requested| access.with(requested.access))
    }
}

/// The folder of each thing requested (a folder's own), with everything requested there.
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
