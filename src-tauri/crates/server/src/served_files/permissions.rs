//! Accesses that a file view permits without asking the user.
//!
//! - INVARIANT: an access is added only if grants and policy are unchanged since it was judged. After each change to
//!   the grants or the policy, all accesses are judged again, and those that are no longer allowed are removed. The same
//!   applies to readable folders.

use super::ServedFiles;
use super::folder_reads::FolderReads;
use super::mounts::GrantedMounts;
use ironcurtain_audit::Entry;
use ironcurtain_config::PolicySnapshot;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::Verdict;
use ironcurtain_sandbox::file_access::{PermittedAccess, ToView};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Maximum number of permitted accesses. Further accesses are denied.
const MAX_COUNT: usize = 100_000;

/// Maximum total length of the permitted accesses' paths, in bytes: 16 MiB. Further accesses are denied.
const MAX_PATHS_LEN: usize = 16 << 20;

/// Permitted accesses, and the version of the grants that the file view has applied.
#[derive(Debug)]
pub(super) struct Permissions {
    permitted: Mutex<PermittedAccesses>,
    reads: FolderReads,
    applied: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct PermittedAccesses {
    accesses: HashSet<PermittedAccess>,
    /// Total length of the paths.
    length: usize,
    /// Folders whose files may all be read.
    readable: HashSet<CanonicalPath>,
    /// Folders in `readable` whose files may be read only if they are open. The next read is judged.
    suspended: HashSet<CanonicalPath>,
    /// `true` while files that were read cannot be recorded. No further folder becomes readable then.
    holds_readable: bool,
}

impl PermittedAccesses {
    /// Returns `true` if the access is permitted or can be added.
    fn has_room_for(&self, access: &PermittedAccess) -> bool {
        let is_within = self.accesses.len() < MAX_COUNT && self.length + access.path.len() <= MAX_PATHS_LEN;
        is_within || self.accesses.contains(access)
    }

    /// Adds an access. Returns `false` if a limit is reached.
    fn insert(&mut self, access: PermittedAccess) -> bool {
        if !self.has_room_for(&access) {
            return false;
        }
        let length = access.path.len();
        if self.accesses.insert(access) {
            self.length += length;
        }
        true
    }

    fn remove(&mut self, access: &PermittedAccess) {
        if self.accesses.remove(access) {
            self.length -= access.path.len();
        }
    }
}

/// Versions of the grants and the policy against which an access was judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct JudgedVersions<'a> {
    pub(super) grants: u64,
    pub(super) snapshot: &'a Arc<PolicySnapshot>,
}

/// Result of adding a permitted access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PermitResult {
    Permitted,
    /// Grants or policy have changed, so the access must be judged again.
    Outdated,
    /// The maximum number of accesses is reached.
    Full,
}

impl Permissions {
    /// Creates the permissions of a new view. `permitted` is judged before the file view receives it.
    pub(super) fn new(permitted: impl Iterator<Item = PermittedAccess>) -> Self {
        let mut all = PermittedAccesses::default();
        permitted.for_each(|access| _ = all.insert(access));
        Self { permitted: Mutex::new(all), reads: FolderReads::default(), applied: watch::Sender::new(0) }
    }

    /// Returns `true` if the access is not permitted and no further access can be added.
    pub(super) fn is_full(&self, access: &PermittedAccess) -> bool {
        let permitted = self.permitted.lock().unwrap_or_else(PoisonError::into_inner);
        !permitted.has_room_for(access)
    }

    /// Returns the folders whose files may all be opened for reading.
    pub(super) fn readable(&self) -> HashSet<CanonicalPath> {
        let permitted = self.permitted.lock().unwrap_or_else(PoisonError::into_inner);
        permitted.readable.difference(&permitted.suspended).cloned().collect()
    }

    /// Returns the readable folders that the view was sent, with entries for the files in them.
    pub(super) fn reads(&self) -> &FolderReads {
        &self.reads
    }

    /// Records that the file view has applied the permissions of this version.
    pub(super) fn applied(&self, version: u64) {
        self.applied.send_if_modified(|applied| {
            let is_newer = version > *applied;
            *applied = version.max(*applied);
            is_newer
        });
    }
}

impl ServedFiles {
    /// Permits an access, and reading the files in a folder, until they are revoked. The folder comes with the entry that
    /// records the access.
    pub(super) fn permit(
        &self,
        (access, readable): (PermittedAccess, Option<(CanonicalPath, Entry)>),
        judged: JudgedVersions<'_>,
    ) -> PermitResult {
        let mut permitted = self.permissions.permitted.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = self.services.grants.now().version == judged.grants
            && Arc::ptr_eq(&self.services.snapshot(), judged.snapshot);
        if !is_current {
            return PermitResult::Outdated;
        }
        if !permitted.insert(access.clone()) {
            return PermitResult::Full;
        }
        self.send_to_view(ToView::Permit(access));
        let may_be_readable = !permitted.holds_readable && !self.services.broker.stops().is_paused(&self.id);
        if let Some((folder, entry)) = readable.filter(|_| may_be_readable)
            && (permitted.readable.insert(folder.clone()) || permitted.suspended.remove(&folder))
        {
            // The view may report files as soon as it has the permission.
            self.permissions.reads.add(folder.clone(), entry);
            self.send_to_view(ToView::PermitReading { folder: folder.as_str().to_owned() });
        }
        PermitResult::Permitted
    }

    /// Judges all permitted accesses again whenever grants or policy change.
    pub(super) async fn follow_changes(self: Arc<Self>) {
        let (mut table, mut snapshots) = (self.services.grants.watch(), self.services.snapshots.clone());
        let mut mounts = GrantedMounts::of(&self);
        loop {
            // This also runs once at the start, so that the view always has a version. Unmount first: a version counts
            // as applied only once all folders that it revokes are unmounted.
            let now = self.services.grants.now();
            let version = now.version;
            if self.unmount_revoked().await {
                mounts.report(&self);
            }
            let wanted = self.folders_to_mount(now).await;
            mounts.remove_others(&self, &wanted).await;
            let files = self.clone();
            // Ignore the error: it occurs only while the daemon exits, which also terminates the sandbox.
            let _ = tokio::task::spawn_blocking(move || files.judge_again(version)).await;
            mounts.add(&self, &wanted, version).await;
            let moved = mounts.wait_until_replaced();
            let changed = tokio::select! {
                changed = table.changed() => changed,
                changed = snapshots.changed() => changed,
                () = mounts.reserved() => Ok(()),
                () = moved => Ok(()),
            };
            if changed.is_err() {
                return;
            }
        }
    }

    /// Judges the permitted accesses by grants of this version or a newer one. Accesses that are added concurrently
    /// have also been judged by such grants.
    fn judge_again(&self, version: u64) {
        self.end_outdated_folders();
        let permitted = || self.permissions.permitted.lock().unwrap_or_else(PoisonError::into_inner);
        let before = permitted().accesses.clone();
        // Judging is slow and must not block the opening of files, so release the lock.
        let allowed = |access: &PermittedAccess| matches!(self.judge(access, &[]).verdict, Verdict::Allow(_));
        let ended: Vec<PermittedAccess> = before.into_iter().filter(|access| !allowed(access)).collect();
        let mut permitted = permitted();
        ended.iter().for_each(|access| permitted.remove(access));
        self.send_permissions(version, &permitted);
    }

    /// Ends readable folders whenever grants or policy change. There are few of them, so this takes effect long before
    /// all accesses are judged again.
    pub(super) async fn follow_readable_folders(self: Arc<Self>) {
        let (mut table, mut snapshots) = (self.services.grants.watch(), self.services.snapshots.clone());
        loop {
            let changed = tokio::select! {
                changed = table.changed() => changed,
                changed = snapshots.changed() => changed,
            };
            if changed.is_err() {
                return;
            }
            let files = self.clone();
            // Ignore the error: it occurs only while the daemon exits, which also terminates the sandbox.
            let _ = tokio::task::spawn_blocking(move || files.end_outdated_folders()).await;
        }
    }

    /// Ends the folders that are no longer readable, and suspends those whose decision no longer holds. Blocks while
    /// paths are resolved.
    fn end_outdated_folders(&self) {
        let all = self.permissions.permitted.lock().unwrap_or_else(PoisonError::into_inner).readable.clone();
        let (table, snapshot) = (self.services.grants.now(), self.services.snapshot());
        let (kept, ended): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|folder| self.may_read_all(folder, &table));
        let is_outdated =
            |folder: &CanonicalPath| !self.permissions.reads.is_current(folder, &table, &snapshot.hash);
        let outdated: Vec<CanonicalPath> = kept.into_iter().filter(is_outdated).collect();
        if !(ended.is_empty() && outdated.is_empty()) {
            let mut permitted = self.permissions.permitted.lock().unwrap_or_else(PoisonError::into_inner);
            for folder in &ended {
                permitted.readable.remove(folder);
                permitted.suspended.remove(folder);
            }
            permitted.suspended.extend(outdated);
            self.resend_permissions(&permitted);
        }
    }

    /// Requires the next read in each readable folder to be judged. If it is allowed, the folder is readable again. Open
    /// files stay open.
    pub fn suspend_readable_folders(&self) {
        let mut permitted = self.permissions.permitted.lock().unwrap_or_else(PoisonError::into_inner);
        permitted.suspended = permitted.readable.clone();
        self.resend_permissions(&permitted);
    }

    /// Requires each read to be judged until this function is called with `false`.
    pub(super) fn hold_readable_folders(&self, holds: bool) {
        self.permissions.permitted.lock().unwrap_or_else(PoisonError::into_inner).holds_readable = holds;
        if holds {
            self.suspend_readable_folders();
        }
    }

    /// Sends permissions with the version that the view has applied last or will apply next.
    fn resend_permissions(&self, permitted: &PermittedAccesses) {
        self.send_permissions(*self.permissions.applied.borrow(), permitted);
    }

    fn send_permissions(&self, version: u64, permitted: &PermittedAccesses) {
        let paths = |folders: Vec<&CanonicalPath>| {
            folders.into_iter().map(|folder| folder.as_str().to_owned()).collect()
        };
        self.send_to_view(ToView::Permissions {
            version,
            permitted: permitted.accesses.iter().cloned().collect(),
            readable: paths(permitted.readable.difference(&permitted.suspended).collect()),
            kept: paths(permitted.readable.iter().collect()),
        });
    }

    /// Waits until the file view no longer uses grants older than this version, or the sandbox has exited.
    pub async fn wait_until_enforced(&self, version: u64) {
        let mut applied = self.permissions.applied.subscribe();
        tokio::select! {
            // Ignore the result: the sender exists as long as this value.
            _ = applied.wait_for(|applied| *applied >= version) => {}
            () = self.exited.cancelled() => {}
        }
    }

    /// Sends a message to the file view.
    pub(super) fn send_to_view(&self, message: ToView) {
        // Ignore the error, which occurs only if the sandbox has exited.
        let _ = self.to_view.send(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_sandbox::file_access::FileAccess;

    #[test]
    fn permitted_paths_are_limited_in_number_and_length() {
        let access = |path: String| PermittedAccess { path, access: FileAccess::Read };
        let mut short = PermittedAccesses::default();
        assert!((0..MAX_COUNT).all(|number| short.insert(access(number.to_string()))));
        assert!(!short.insert(access("more".into())) && short.insert(access("7".into())));
        short.remove(&access("7".into()));
        assert!(short.insert(access("more".into())));
        let mut long = PermittedAccesses::default();
        let path = |number: usize| format!("{number:04096}");
        assert!((0..MAX_PATHS_LEN / 4096).all(|number| long.insert(access(path(number)))));
        assert!(!long.insert(access("x".into())));
        long.remove(&access(path(0)));
        long.remove(&access(path(0)));
        assert!(long.insert(access("x".into())) && !long.insert(access(path(0))));
    }
}
