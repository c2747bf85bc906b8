//! A call with canonical values, and the paths that must be mounted into the sandbox for the call.

use crate::RequestedAccess;
use crate::found_paths::{FoundPath, FoundPaths};
use ironcurtain_grants::mounts::{MountRequest, mount_for_access};
use ironcurtain_paths::{CanonicalPath, PathKind};
use ironcurtain_policy::{
    Access, ApprovalSubject, Denial, FileWrites, PendingApproval, ProtectedPaths, ResolvedCall,
};

/// A call whose paths were canonical when it was resolved.
#[derive(Debug)]
pub struct LocatedCall {
    /// The call to judge and then send.
    pub call: ResolvedCall,
    /// The call's paths and what they refer to.
    pub paths: FoundPaths,
}

impl LocatedCall {
    /// Returns a denial if the call would also give a sandboxed server access to a protected path.
    #[must_use]
    pub fn deny_exposure(
        &self,
        sandbox: Option<&CanonicalPath>,
        writes: FileWrites,
        protected: &ProtectedPaths,
    ) -> Option<Denial> {
        let opens = || {
            self.opens(sandbox, writes, protected).map(|(folder, inside)| contains_protected(&folder, inside))
        };
        self.exposes(protected.paths()).map(exposes).or_else(opens)
    }

    // Mounting a folder also exposes the protected paths inside it.
    fn exposes<'a>(&self, protected: &'a [CanonicalPath]) -> Option<(&CanonicalPath, &'a CanonicalPath)> {
        let is_folder = |p: &&FoundPath| p.target == PathKind::Folder;
        self.paths.iter().filter(is_folder).map(|p| &p.path).find_map(|folder| {
            let inside = protected.iter().find(|p| folder.strictly_contains(p) && p.as_path().exists())?;
            Some((folder, inside))
        })
    }

    // Creating or deleting a file requires the whole folder to be mounted writable.
    fn opens<'a>(
        &self,
        sandbox: Option<&CanonicalPath>,
        writes: FileWrites,
        protected: &'a ProtectedPaths,
    ) -> Option<(CanonicalPath, &'a CanonicalPath)> {
        let open = self
            .paths
            .mount_requests(&self.call, sandbox, writes)
            .into_iter()
            .filter(|n| n.writable)
            .map(|n| n.path);
        open.into_iter().find_map(|folder| {
            // The folder may contain a protected path that does not exist yet. A call that changes a protected path
            // itself is denied by the policy, with its own reason.
            let masked = protected.masked_in(&folder);
            let kept = protected.read_only().iter().map(|kept| &kept.path);
            let kept = kept.filter(|p| folder.strictly_contains(p) && !masked.contains(p));
            let inside = protected.paths().iter().filter(|p| folder.contains(p)).chain(kept).next()?;
            Some((folder, inside))
        })
    }
}

impl FoundPaths {
    /// Returns the paths that must be mounted for the call, except paths inside the `sandbox` folder.
    #[must_use]
    pub fn mount_requests(
        &self,
        call: &ResolvedCall,
        sandbox: Option<&CanonicalPath>,
        writes: FileWrites,
    ) -> Vec<MountRequest> {
        let is_inside = |path: &CanonicalPath| sandbox.is_some_and(|sandbox| sandbox.contains(path));
        let paths = call.paths().filter(|(_, _, path)| !is_inside(path));
        let needs = paths.filter_map(|(role, argument, path)| {
            let found = self.find(argument, path)?;
            mount_for_access(role.access()?, path, found.target, writes, nearest_folder(path))
        });
        ironcurtain_grants::mounts::merge_requests(needs)
    }

    /// Returns the paths that need approval, with the kind of access to each.
    pub fn requested(&self, approvals: &[PendingApproval], writes: FileWrites) -> Vec<RequestedAccess> {
        approvals.iter().filter_map(|approval| self.requested_path(approval, writes)).collect()
    }

    fn requested_path(&self, approval: &PendingApproval, writes: FileWrites) -> Option<RequestedAccess> {
        let ApprovalSubject::Path(path) = &approval.subject else { return None };
        let access: Access = approval.role?.access()?;
        let found = self.find(&approval.argument, path)?;
        let need = mount_for_access(access, path, found.target, writes, nearest_folder(path));
        Some(RequestedAccess { access, path: path.clone(), target: found.target, need })
    }
}

fn contains_protected(folder: &CanonicalPath, inside: &CanonicalPath) -> Denial {
    let reason = format!(
        "to create or delete something in `{folder}`, the server needs access to the whole folder, which holds the protected `{inside}`; choose a subfolder"
    );
    Denial::protected(reason)
}

fn exposes((folder, inside): (&CanonicalPath, &CanonicalPath)) -> Denial {
    let reason = format!(
        "`{folder}` cannot be opened as a whole, because it holds the protected `{inside}`; name a folder or file in it"
    );
    Denial::protected(reason)
}

/// Returns the nearest existing ancestor folder of a path.
fn nearest_folder(path: &CanonicalPath) -> Option<CanonicalPath> {
    let mut above = path.parent();
    while let Some(folder) = above {
        if folder.as_path().is_dir() {
            return Some(folder);
        }
        above = folder.parent();
    }
    None
}
