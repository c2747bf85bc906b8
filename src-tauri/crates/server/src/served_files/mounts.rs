//! Mounts the folders to which a sandbox has full access, so that programs use them without requests to the view.
//!
//! - Mounts follow from grants, rules and protected paths, like every other permission.
//! - A folder is mounted like the working folder: existing autostart files are read-only, and the folder is watched for
//!   new ones.
//! - INVARIANT: a version of the grants is reported as applied only after every folder that it no longer covers is
//!   unmounted.
//! - INVARIANT: a folder is mounted only while the view has reserved it, so no pending request can block the mount.

use super::ServedFiles;
use super::holders::holders;
use super::profile::lock;
use ironcurtain_grants::{GrantTable, StandingGrant};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::GrantKind;
use ironcurtain_sandbox::file_access::ToView;
use ironcurtain_sandbox::{ControlAnswer, ControlOp, Mount, MountAccess, UnmountProof};
use ironcurtain_visible as visible;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Maximum number of folders that are mounted for grants. The view serves any further folders.
const MAX_COUNT: usize = 100;

/// Interval between checks that mounted folders are still at their paths. A folder that is moved elsewhere stays
/// writable until the next check.
const CHECK: Duration = Duration::from_secs(1);

/// Device and inode number.
type Identity = (u64, u64);

/// Folders that are mounted for grants. Owned by the task that applies changed grants.
pub(super) struct GrantedMounts {
    mounted: BTreeMap<CanonicalPath, Identity>,
    /// Folders that could not be mounted, with the version of the grants at that time.
    refused: BTreeMap<CanonicalPath, u64>,
    /// Next folder to mount, with the number of its reservation.
    next: Option<(CanonicalPath, u64)>,
    reservations: u64,
    /// Number of the view's latest reservation.
    reserved: watch::Receiver<u64>,
}

impl GrantedMounts {
    pub(super) fn of(files: &ServedFiles) -> Self {
        files.send_to_view(ToView::Mounted { paths: files.mounted_from_start() });
        Self {
            mounted: BTreeMap::new(),
            refused: BTreeMap::new(),
            next: None,
            reservations: 0,
            reserved: files.reserved.subscribe(),
        }
    }

    /// Completes when the view has reserved a folder.
    pub(super) async fn reserved(&mut self) {
        if self.reserved.changed().await.is_err() {
            // The sender was dropped, so no further folder will be reserved.
            std::future::pending().await
        }
    }

    /// Completes when a mounted folder is no longer at its path.
    pub(super) fn wait_until_replaced(&self) -> impl Future<Output = ()> + use<> {
        let mounted = self.mounted.clone();
        async move {
            if mounted.is_empty() {
                std::future::pending().await
            }
            loop {
                tokio::time::sleep(CHECK).await;
                if !replaced(mounted.clone()).await.is_empty() {
                    return;
                }
            }
        }
    }

    /// Unmounts folders that are not in `wanted`. Terminates the sandbox if a program is still using a revoked folder.
    pub(super) async fn remove_others(&mut self, files: &ServedFiles, wanted: &BTreeSet<CanonicalPath>) {
        let replaced = replaced(self.mounted.clone()).await;
        let is_ended =
            |path: &CanonicalPath, _: &mut Identity| !wanted.contains(path) || replaced.contains(path);
        let ended: Vec<CanonicalPath> = self.mounted.extract_if(.., is_ended).map(|(path, _)| path).collect();
        for path in &ended {
            if let Err(holders) = files.unmount(path).await {
                files.end_for_holders(path, &holders).await;
            }
        }
        let is_cancelled = self.next.as_ref().is_some_and(|(path, _)| !wanted.contains(path));
        if is_cancelled || !ended.is_empty() {
            self.report(files);
        }
    }

    /// Mounts the folder that the view has reserved, and requests the next reservation.
    pub(super) async fn add(&mut self, files: &ServedFiles, wanted: &BTreeSet<CanonicalPath>, version: u64) {
        self.refused.retain(|_, refused_at| *refused_at == version);
        if let Some((path, number)) = &self.next {
            if *self.reserved.borrow_and_update() != *number {
                return;
            }
            // If the folder is replaced concurrently, the next check unmounts it.
            let folder = path.clone();
            let identity = tokio::task::spawn_blocking(move || identity(&folder)).await.unwrap_or_default();
            match identity {
                Some(identity) if files.mount(path).await => {
                    self.mounted.insert(path.clone(), identity);
                }
                Some(_) | None => {
                    self.refused.insert(path.clone(), version);
                }
            }
            self.report(files);
        }
        let is_new =
            |path: &&CanonicalPath| !self.mounted.contains_key(path) && !self.refused.contains_key(path);
        if let Some(path) = wanted.iter().find(is_new).filter(|_| self.mounted.len() < MAX_COUNT) {
            self.reservations += 1;
            self.next = Some((path.clone(), self.reservations));
            files.send_to_view(ToView::Reserve { path: path.as_str().to_owned(), number: self.reservations });
        }
    }

    /// Sends the list of mounted folders to the view, which releases the reservation. [`Self::add`] requests a new one.
    pub(super) fn report(&mut self, files: &ServedFiles) {
        self.next = None;
        let mounted = self.mounted.keys().map(|path| path.as_str().to_owned());
        files.send_to_view(ToView::Mounted { paths: mounted.chain(files.mounted_from_start()).collect() });
    }
}

impl ServedFiles {
    /// Returns the folders to mount for the current grants. No folder is inside another.
    pub(super) async fn folders_to_mount(
        self: &Arc<Self>,
        table: Arc<GrantTable>,
    ) -> BTreeSet<CanonicalPath> {
        let files = self.clone();
        // Fails only while the daemon is exiting, which terminates the sandbox.
        tokio::task::spawn_blocking(move || files.to_mount(&table)).await.unwrap_or_default()
    }

    fn to_mount(&self, table: &GrantTable) -> BTreeSet<CanonicalPath> {
        // Skip grants that expire: if a program were still using the folder at that time, the sandbox would be
        // terminated.
        let is_permanent =
            |grant: &&StandingGrant| grant.expires_ms.is_none() && self.may_use(&grant.subject);
        let table = &GrantTable::of(table.grants.iter().filter(is_permanent).cloned().collect());
        let folders = table.grants.iter().filter_map(StandingGrant::files);
        let changed = folders.filter(|files| files.kind == GrantKind::Tree && files.access.write);
        // Outer folders come first.
        let changed: BTreeSet<&CanonicalPath> = changed.map(|files| &files.path).collect();
        let from_start = self.mounted_from_start();
        let mut wanted: Vec<CanonicalPath> = Vec::new();
        for path in changed {
            let is_inside = from_start.iter().any(|mounted| path.as_path().starts_with(mounted))
                || wanted.iter().any(|outer| outer.contains(path));
            let is_folder = || std::fs::symlink_metadata(path.as_path()).is_ok_and(|found| found.is_dir());
            if !is_inside && is_folder() && self.may_change_all(path, table) {
                wanted.push(path.clone());
            }
        }
        wanted.into_iter().collect()
    }

    /// Returns the writable folders that were mounted at the start and have not been unmounted.
    fn mounted_from_start(&self) -> Vec<String> {
        let working = lock(&self.working_folder).clone();
        let own = self.mounted.iter().chain(&working).map(|folder| folder.as_str().to_owned());
        own.chain(self.profile.mounted()).collect()
    }

    /// Mounts a folder. Returns `false` if that fails.
    async fn mount(&self, path: &CanonicalPath) -> bool {
        let mount =
            Mount::new(path.as_str(), MountAccess::ReadWrite).with_pinned(self.read_only_paths_in(path));
        match self.send_order(ControlOp::Add(mount)).await {
            Some(ControlAnswer::Added) => true,
            // The view continues to serve the folder.
            Some(ControlAnswer::Refused { message, .. }) => {
                tracing::info!(session = self.id, %path, message, "a granted folder is not mounted");
                false
            }
            answer => {
                tracing::error!(session = self.id, %path, ?answer, "failed to mount a folder; terminating the sandbox");
                self.end();
                false
            }
        }
    }

    /// Unmounts a folder. The error contains the names of the programs that are still using it.
    pub(super) async fn unmount(&self, path: &CanonicalPath) -> Result<(), Vec<String>> {
        let holders = holders(self.pid, path).await;
        let answer = self.send_order(ControlOp::Remove { path: path.as_str().to_owned() }).await;
        if let Some(ControlAnswer::Removed { proof: UnmountProof::Proved }) = answer {
            return Ok(());
        }
        Err(holders)
    }

    /// Terminates the sandbox because a program is still using a revoked folder.
    pub(super) async fn end_for_holders(&self, path: &CanonicalPath, holders: &[String]) {
        let holders = if holders.is_empty() { "a program".to_owned() } else { holders.join(", ") };
        let why = format!("{holders} still used {path} after it was revoked");
        tracing::error!(session = self.id, why, "terminating the sandbox");
        self.end_with_reason(visible::line(&why));
        self.exited.cancelled().await;
    }

    /// Sends an order to the supervisor and returns its response, or `None` if the sandbox has exited.
    async fn send_order(&self, op: ControlOp) -> Option<ControlAnswer> {
        let (answer, answered) = oneshot::channel();
        self.to_sandbox.send((op, answer)).ok()?;
        answered.await.ok().flatten()
    }

    /// Returns the paths in a folder that must stay read-only.
    fn read_only_paths_in(&self, folder: &CanonicalPath) -> Vec<String> {
        let snapshot = self.services.snapshot();
        snapshot.protected.masked_in(folder).into_iter().map(|kept| kept.as_str().to_owned()).collect()
    }
}

/// Returns the mounted folders that are no longer at their paths.
async fn replaced(mut mounted: BTreeMap<CanonicalPath, Identity>) -> BTreeSet<CanonicalPath> {
    let replaced = move || {
        mounted.retain(|path, mounted| identity(path) != Some(*mounted));
        mounted.into_keys().collect()
    };
    // Fails only while the daemon is exiting, which terminates the sandbox.
    tokio::task::spawn_blocking(replaced).await.unwrap_or_default()
}

fn identity(path: &CanonicalPath) -> Option<Identity> {
    let found = std::fs::symlink_metadata(path.as_path()).ok()?;
    found.is_dir().then_some((found.dev(), found.ino()))
}
