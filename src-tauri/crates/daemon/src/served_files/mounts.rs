//! Mounts the folders in which a sandbox may do everything, so that work in them needs no requests to the view.
//!
//! - Computed from grants, rules and protected paths, like every other permission.
//! - A folder is mounted as the working folder is: autostart files in it are read-only, and new ones are watched for.
//! - INVARIANT: the grants of a version are reported as applied only after everything that they no longer cover is unmounted.
//! - INVARIANT: a folder is mounted only while the view lets no request wait that would block the mount.

use super::ServedFiles;
use super::holders::holders;
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

/// Maximum number of folders that are mounted for grants. Others are served.
const MOST: usize = 100;

/// Interval at which mounted folders are compared with those at their paths. One that is moved outside stays writable until then.
const CHECK: Duration = Duration::from_secs(1);

/// Device and inode number.
type Identity = (u64, u64);

/// Folders that are mounted for grants. Owned by the task that follows the grants.
pub(super) struct GrantedMounts {
    mounted: BTreeMap<CanonicalPath, Identity>,
    /// Unmounted folders that programs still held, and their names. Once they are revoked, only the end of the sandbox proves it.
    held: BTreeMap<CanonicalPath, Vec<String>>,
    /// Folders that cannot be mounted, and the version of the grants at which that was found.
    refused: BTreeMap<CanonicalPath, u64>,
    /// Folder that is to be mounted next, with the number of its reservation.
    next: Option<(CanonicalPath, u64)>,
    reservations: u64,
    /// Newest reservation that the view has made.
    reserved: watch::Receiver<u64>,
}

impl GrantedMounts {
    pub(super) fn of(files: &ServedFiles) -> Self {
        files.tell(ToView::Mounted { paths: files.mounted_from_start() });
        Self {
            mounted: BTreeMap::new(),
            held: BTreeMap::new(),
            refused: BTreeMap::new(),
            next: None,
            reservations: 0,
            reserved: files.reserved.subscribe(),
        }
    }

    /// Completes when the view has reserved a folder.
    pub(super) async fn reserved(&mut self) {
        if self.reserved.changed().await.is_err() {
            // Without a sender, no folder is reserved any more.
            std::future::pending().await
        }
    }

    /// Completes when another folder is at the path of a mounted one.
    pub(super) fn moved(&self) -> impl Future<Output = ()> + use<> {
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

    /// Unmounts what is not to be mounted any more. If a program still holds it, the sandbox is ended.
    pub(super) async fn remove_others(&mut self, files: &ServedFiles, wanted: &BTreeSet<CanonicalPath>) {
        let replaced = replaced(self.mounted.clone()).await;
        let is_ended =
            |path: &CanonicalPath, _: &mut Identity| !wanted.contains(path) || replaced.contains(path);
        let ended: Vec<CanonicalPath> = self.mounted.extract_if(.., is_ended).map(|(path, _)| path).collect();
        for path in &ended {
            if let Err(holders) = files.unmount(path).await {
                self.held.insert(path.clone(), holders);
            }
        }
        if let Some((path, holders)) = self.held.iter().find(|(path, _)| !wanted.contains(*path)) {
            files.end_holding(path, holders).await;
        }
        let is_cancelled = self.next.take_if(|(path, _)| !wanted.contains(path)).is_some();
        if is_cancelled || !ended.is_empty() {
            self.report(files);
        }
    }

    /// Mounts the folder that the view has reserved, and has it reserve the next one.
    pub(super) async fn add(&mut self, files: &ServedFiles, wanted: &BTreeSet<CanonicalPath>, version: u64) {
        self.refused.retain(|_, refused_at| *refused_at == version);
        if let Some((path, number)) = &self.next {
            if *self.reserved.borrow_and_update() != *number {
                return;
            }
            // A folder that is replaced meanwhile is unmounted in the next round.
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
            self.next = None;
            self.report(files);
        }
        let is_new =
            |path: &&CanonicalPath| !self.mounted.contains_key(path) && !self.refused.contains_key(path);
        if let Some(path) = wanted.iter().find(is_new).filter(|_| self.mounted.len() < MOST) {
            self.reservations += 1;
            self.next = Some((path.clone(), self.reservations));
            files.tell(ToView::Reserve { path: path.as_str().to_owned(), number: self.reservations });
        }
    }

    /// Tells the view what is mounted, which ends the reservation.
    fn report(&self, files: &ServedFiles) {
        let mounted = self.mounted.keys().map(|path| path.as_str().to_owned());
        files.tell(ToView::Mounted { paths: mounted.chain(files.mounted_from_start()).collect() });
    }
}

impl ServedFiles {
    /// Returns the folders to be mounted for the current grants, none inside another.
    pub(super) async fn folders_to_mount(
        self: &Arc<Self>,
        table: Arc<GrantTable>,
    ) -> BTreeSet<CanonicalPath> {
        let files = self.clone();
        // Fails only while the trusted process is exiting, which ends the sandbox.
        tokio::task::spawn_blocking(move || files.to_mount(&table)).await.unwrap_or_default()
    }

    fn to_mount(&self, table: &GrantTable) -> BTreeSet<CanonicalPath> {
        // A program may still use a folder when a grant expires, and that must not end the sandbox.
        let lasts = |grant: &&StandingGrant| grant.expires_ms.is_none() && self.may_use(&grant.subject);
        let table = &GrantTable::of(table.grants.iter().filter(lasts).cloned().collect());
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

    /// Returns the writable folders that are mounted since the start and not unmounted since.
    fn mounted_from_start(&self) -> Vec<String> {
        let own = self.mounted.iter().map(|folder| folder.as_str().to_owned());
        own.chain(self.profile.mounted()).collect()
    }

    /// Mounts a folder, and returns whether that was possible.
    async fn mount(&self, path: &CanonicalPath) -> bool {
        let mount = Mount::new(path.as_str(), MountAccess::ReadWrite).keeping(self.kept_in(path));
        match self.order(ControlOp::Add(mount)).await {
            Some(ControlAnswer::Added) => true,
            // It stays served.
            Some(ControlAnswer::Refused { message, .. }) => {
                tracing::info!(session = self.id, %path, message, "a granted folder is not mounted");
                false
            }
            answer => {
                tracing::error!(session = self.id, %path, ?answer, "failed to mount a folder, so its sandbox is ended");
                self.end();
                false
            }
        }
    }

    /// Unmounts a folder. The error names the programs that hold it.
    pub(super) async fn unmount(&self, path: &CanonicalPath) -> Result<(), Vec<String>> {
        let holders = holders(self.pid, path).await;
        let answer = self.order(ControlOp::Remove { path: path.as_str().to_owned() }).await;
        if let Some(ControlAnswer::Removed { proof: UnmountProof::Proved }) = answer {
            return Ok(());
        }
        Err(holders)
    }

    /// Ends the sandbox, because a program still holds a revoked folder.
    pub(super) async fn end_holding(&self, path: &CanonicalPath, holders: &[String]) {
        let holders = if holders.is_empty() { "a program".to_owned() } else { holders.join(", ") };
        let why = format!("{holders} still used {path} after it was revoked");
        tracing::error!(session = self.id, why, "the sandbox is ended");
        self.end_because(visible::line(&why));
        self.gone.cancelled().await;
    }

    /// Carries out an order in the sandbox. Returns nothing if the sandbox has exited.
    async fn order(&self, op: ControlOp) -> Option<ControlAnswer> {
        let (answer, answered) = oneshot::channel();
        self.to_sandbox.send((op, answer)).ok()?;
        answered.await.ok().flatten()
    }

    /// Returns the paths in a folder that no program may change.
    fn kept_in(&self, folder: &CanonicalPath) -> Vec<String> {
        let snapshot = self.services.snapshot();
        snapshot.protected.masked_in(folder).into_iter().map(|kept| kept.as_str().to_owned()).collect()
    }
}

/// Returns the mounted folders that are not at their paths any more.
async fn replaced(mut mounted: BTreeMap<CanonicalPath, Identity>) -> BTreeSet<CanonicalPath> {
    let replaced = move || {
        mounted.retain(|path, mounted| identity(path) != Some(*mounted));
        mounted.into_keys().collect()
    };
    // Fails only while the trusted process is exiting, which ends the sandbox.
    tokio::task::spawn_blocking(replaced).await.unwrap_or_default()
}

fn identity(path: &CanonicalPath) -> Option<Identity> {
    let found = std::fs::symlink_metadata(path.as_path()).ok()?;
    found.is_dir().then_some((found.dev(), found.ino()))
}
