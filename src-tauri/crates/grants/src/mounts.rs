//! Computes the mounts that a server needs, and the steps to reach them from its current mounts. Performs no I/O.
//!
//! - A server has exactly the mounts that active grants and in-flight calls need.
//! - Removing a mount also removes the mounts below it. Mounts that are still needed are then added again.
//! - INVARIANT: a mount that is needed both before and after a change is never removed in between, because in-flight
//!   calls use it.

use ironcurtain_paths::{CanonicalPath, PathKind};
use ironcurtain_policy::{Access, FileWrites};

/// Path that must be mounted in a server's sandbox.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MountRequest {
    /// Path on the host and in the sandbox.
    pub path: CanonicalPath,
    /// `true` if the server may write to the path.
    pub writable: bool,
    /// `true` if only a file may be mounted. If a folder replaces the file, the folder is not mounted.
    pub is_file_only: bool,
    /// `true` if the path is an autostart file that the user approved by name. The sandbox makes all other autostart
    /// files read-only.
    pub is_approved_by_name: bool,
}

impl MountRequest {
    /// Creates a request that applies to a file or a folder.
    #[must_use]
    pub fn new(path: CanonicalPath, writable: bool) -> Self {
        Self { path, writable, is_file_only: false, is_approved_by_name: false }
    }

    /// Limits the request to a file, so that a folder at the path is not mounted.
    #[must_use]
    pub fn file_only(self) -> Self {
        Self { is_file_only: true, ..self }
    }
}

/// Returns the mount that one access needs, if any. `nearest` is the nearest existing parent folder.
///
/// Creating or deleting a file changes its folder, so the folder must be mounted. Reading a path that does not exist
/// needs no mount.
#[must_use]
pub fn mount_for_access(
    access: Access,
    path: &CanonicalPath,
    target: PathKind,
    writes: FileWrites,
    nearest: Option<CanonicalPath>,
) -> Option<MountRequest> {
    let folder = |nearest: Option<CanonicalPath>| nearest.map(|path| MountRequest::new(path, true));
    match (access, target) {
        (Access::Read, PathKind::Missing) => None,
        (Access::Read, PathKind::Folder) => Some(MountRequest::new(path.clone(), false)),
        (Access::Read, PathKind::File { .. } | PathKind::Special) => {
            Some(MountRequest::new(path.clone(), false).file_only())
        }
        (Access::Write, PathKind::File { .. } | PathKind::Special) if writes == FileWrites::InPlace => {
            Some(MountRequest::new(path.clone(), true).file_only())
        }
        (Access::Write, PathKind::Folder) => Some(MountRequest::new(path.clone(), true)),
        (Access::Write | Access::Delete, _) => folder(nearest),
    }
}

/// Merges requests. A path is writable if any of its requests is writable, and limited to a file if any of its requests is.
/// Omits a request that a parent folder's mount satisfies.
#[must_use]
pub fn merge_requests(requests: impl IntoIterator<Item = MountRequest>) -> Vec<MountRequest> {
    let mut all: Vec<MountRequest> = requests.into_iter().collect();
    all.sort_by(|a, b| a.path.cmp(&b.path).then(b.writable.cmp(&a.writable)));
    all.dedup_by(|later, first| {
        let is_same = later.path == first.path;
        first.is_file_only |= is_same && later.is_file_only;
        first.is_approved_by_name |= is_same && later.is_approved_by_name;
        is_same
    });
    // A parent folder's mount satisfies the request if the mount is writable or the path does not have to be.
    let satisfies = |above: &MountRequest, n: &MountRequest| {
        above.path.strictly_contains(&n.path) && (above.writable || !n.writable)
    };
    // In a mounted folder, autostart files are read-only, so an approved autostart file needs its own mount.
    let covered = |n: &MountRequest| !n.is_approved_by_name && all.iter().any(|above| satisfies(above, n));
    all.iter().filter(|n| !covered(n)).cloned().collect()
}

/// Change to a server's mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountStep {
    /// Adds a mount.
    Add(MountRequest),
    /// Makes a writable mount read-only.
    Narrow(MountRequest),
    /// Removes a mount and verifies that it was removed.
    Remove(CanonicalPath),
}

/// Returns the mounts that [`merge_requests`] returns for all requests, plus the existing mounts that are still needed. Removing
/// such a mount would terminate a server that has it open.
#[must_use]
pub fn needed_mounts(now: &[MountRequest], requests: &[MountRequest]) -> Vec<MountRequest> {
    let mut wanted = merge_requests(requests.iter().cloned());
    let replaced = |m: &MountRequest, w: &MountRequest| {
        w.path == m.path || (w.path.strictly_contains(&m.path) && w.writable && !m.writable)
    };
    let kept: Vec<MountRequest> = now
        .iter()
        .filter(|m| requests.contains(m) && !wanted.iter().any(|w| replaced(m, w)))
        .cloned()
        .collect();
    wanted.extend(kept);
    wanted.sort();
    wanted
}

/// Returns the steps that add the wanted mounts. Writable mounts inside another mount are added before that mount
/// becomes read-only. Existing mounts are not removed.
#[must_use]
pub fn additions(now: &[MountRequest], wanted: &[MountRequest]) -> Vec<MountStep> {
    let new: Vec<&MountRequest> = wanted.iter().filter(|w| !now.contains(w)).collect();
    let narrows = |n: &&MountRequest| !n.writable && now.iter().any(|m| m.path == n.path && m.writable);
    let (narrowed, mut to_add): (Vec<&MountRequest>, Vec<&MountRequest>) = new.into_iter().partition(narrows);
    to_add.sort_by_key(|n| depth(&n.path));
    let added = to_add.into_iter().cloned().map(MountStep::Add);
    added.chain(narrowed.into_iter().cloned().map(MountStep::Narrow)).collect()
}

/// Returns the steps that remove unwanted mounts, deepest first.
#[must_use]
pub fn removals(now: &[MountRequest], wanted: &[MountRequest]) -> Vec<MountStep> {
    let mut to_remove: Vec<&MountRequest> =
        now.iter().filter(|m| !wanted.iter().any(|w| w.path == m.path)).collect();
    to_remove.sort_by_key(|n| std::cmp::Reverse(depth(&n.path)));
    to_remove.into_iter().map(|n| MountStep::Remove(n.path.clone())).collect()
}

fn depth(path: &CanonicalPath) -> usize {
    path.components().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(text: &str) -> CanonicalPath {
        CanonicalPath::assume_canonical(text).unwrap()
    }

    fn n(text: &str, writable: bool) -> MountRequest {
        MountRequest::new(path(text), writable)
    }

    #[test]
    fn each_access_needs_the_smallest_mount() {
        let p = path("/d/f");
        let got = |access, target, writes| mount_for_access(access, &p, target, writes, Some(path("/d")));
        let (file, in_place, replace) =
            (PathKind::File { bytes: 1 }, FileWrites::InPlace, FileWrites::Replace);
        assert_eq!(got(Access::Read, file, in_place), Some(n("/d/f", false).file_only()));
        assert_eq!(got(Access::Read, PathKind::Folder, in_place), Some(n("/d/f", false)));
        assert_eq!(got(Access::Read, PathKind::Missing, in_place), None);
        assert_eq!(got(Access::Write, file, in_place), Some(n("/d/f", true).file_only()));
        assert_eq!(got(Access::Write, file, replace), Some(n("/d", true)));
        assert_eq!(got(Access::Write, PathKind::Missing, in_place), Some(n("/d", true)));
        assert_eq!(got(Access::Write, PathKind::Folder, replace), Some(n("/d/f", true)));
        assert_eq!(got(Access::Delete, file, in_place), Some(n("/d", true)));
        assert_eq!(got(Access::Delete, PathKind::Folder, in_place), Some(n("/d", true)));
    }

    #[test]
    fn merging_needs_loses_and_widens_none() {
        let got = merge_requests([
            n("/d/f", false),
            n("/d", false),
            n("/d/g", true),
            n("/e", false),
            n("/e", true),
        ]);
        assert_eq!(got, [n("/d", false), n("/d/g", true), n("/e", true)]);
        assert_eq!(merge_requests([n("/d", true), n("/d/ro", false)]), [n("/d", true)]);
        assert_eq!(
            merge_requests([n("/d/f", true), n("/d/f", false).file_only()]),
            [n("/d/f", true).file_only()]
        );
        let named = MountRequest { is_approved_by_name: true, ..n("/d/f", true).file_only() };
        assert_eq!(merge_requests([n("/d", true), named.clone()]), [n("/d", true), named]);
    }

    #[test]
    fn wider_mounts_are_added_and_removed_below_existing_ones() {
        let now = [n("/d", false), n("/d/f", true), n("/e", false)];
        assert_eq!(removals(&now, &[n("/d/f", true), n("/e", false)]), [MountStep::Remove(path("/d"))]);
        assert_eq!(
            additions(&[n("/d/f", true)], &[n("/d", false), n("/d/f", true)]),
            [MountStep::Add(n("/d", false))]
        );
        assert_eq!(additions(&now, &[n("/d", true)]), [MountStep::Add(n("/d", true))]);
        assert_eq!(additions(&now, &[n("/d/f", false)]), [MountStep::Narrow(n("/d/f", false))]);
        let (inner, outer) = (n("/d/f", true), n("/d", false));
        assert_eq!(
            additions(&[n("/d", true)], &[outer.clone(), inner.clone()]),
            [MountStep::Add(inner), MountStep::Narrow(outer)]
        );
        assert_eq!((removals(&now, &now), additions(&now, &now)), (vec![], vec![]));
    }

    #[test]
    fn needed_mounts_stay_unless_they_would_narrow_a_wider_need() {
        let (file, read, write) = (n("/d/f", false), n("/d", false), n("/d", true));
        let mounted = [file.clone()];
        assert_eq!(needed_mounts(&mounted, &[file.clone(), read.clone()]), [read.clone(), file.clone()]);
        assert_eq!(needed_mounts(&[], &[file.clone(), read.clone()]), std::slice::from_ref(&read));
        assert_eq!(needed_mounts(&mounted, &[file.clone(), write.clone()]), [write]);
        assert_eq!(needed_mounts(&mounted, std::slice::from_ref(&read)), [read]);
    }

    fn applied(now: &[MountRequest], steps: &[MountStep]) -> Vec<MountRequest> {
        let mut mounted = now.to_vec();
        for step in steps {
            match step {
                MountStep::Add(need) => {
                    let narrows = |m: &&MountRequest| m.path == need.path && m.writable && !need.writable;
                    assert_eq!(mounted.iter().find(narrows), None, "the sandbox refuses to narrow");
                    mounted.retain(|m| m.path != need.path);
                    mounted.push(need.clone());
                }
                MountStep::Narrow(need) => {
                    let is_wider =
                        |m: &&mut MountRequest| m.path == need.path && m.writable && !need.writable;
                    *mounted.iter_mut().find(is_wider).unwrap() = need.clone();
                }
                MountStep::Remove(path) => {
                    let before = mounted.len();
                    mounted.retain(|m| m.path != *path);
                    assert_eq!(before - 1, mounted.len(), "{path} is not mounted");
                }
            }
        }
        mounted.sort();
        mounted
    }

    proptest! {
        #[test]
        fn steps_lead_to_the_needed_mounts(
            now in proptest::collection::vec(("(/[ab]){1,4}", any::<bool>()), 0..8),
            requests in proptest::collection::vec(("(/[ab]){1,4}", any::<bool>()), 0..8),
        ) {
            let all = |paths: Vec<(String, bool)>| paths.iter().map(|(p, w)| n(p, *w)).collect::<Vec<_>>();
            let (now, requests) = (merge_requests(all(now)), all(requests));
            let wanted = needed_mounts(&now, &requests);
            let with = applied(&now, &additions(&now, &wanted));
            prop_assert!(wanted.iter().all(|w| with.contains(w)));
            prop_assert_eq!(applied(&with, &removals(&with, &wanted)), wanted);
        }

        #[test]
        fn existing_mounts_never_widen_or_lose_a_need(
            now in proptest::collection::vec(("(/[ab]){1,4}", any::<bool>()), 0..8),
            requests in proptest::collection::vec(("(/[ab]){1,4}", any::<bool>()), 0..8),
        ) {
            let all = |paths: Vec<(String, bool)>| paths.iter().map(|(p, w)| n(p, *w)).collect::<Vec<_>>();
            let (now, requests) = (merge_requests(all(now)), all(requests));
            let shown = needed_mounts(&now, &requests);
            let at = |paths: &[MountRequest], path: &CanonicalPath| {
                let above = paths.iter().filter(|m| m.path.contains(path));
                above.max_by_key(|m| depth(&m.path)).map(|m| m.writable)
            };
            for need in &requests {
                prop_assert_eq!(at(&shown, &need.path), at(&merge_requests(requests.clone()), &need.path));
            }
        }
    }
}
