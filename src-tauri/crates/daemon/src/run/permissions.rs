//! Accesses that need no further question, as the view knows them.
//!
//! - INVARIANT: an access is added only if neither grants nor policy have changed since it was judged. Every later change judges
//!   all of them again, so none outlives what allowed it.

use super::Run;
use super::mounts::GrantedMounts;
use ironcurtain_config::PolicySnapshot;
use ironcurtain_policy::Verdict;
use ironcurtain_sandbox::file_access::{PermittedAccess, ToView};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Maximum number of accesses that are permitted at a time. Further ones are denied.
const MOST: usize = 100_000;

/// Permitted accesses, and the version of the grants that the view has applied.
#[derive(Debug)]
pub(super) struct Permissions {
    permitted: Mutex<HashSet<PermittedAccess>>,
    applied: watch::Sender<u64>,
}

/// Versions of the grants and the policy that an access was judged by.
#[derive(Debug, Clone, Copy)]
pub(super) struct JudgedVersions<'a> {
    pub(super) grants: u64,
    pub(super) snapshot: &'a Arc<PolicySnapshot>,
}

/// Result of permitting an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permitting {
    Permitted,
    /// Grants or policy have changed, so the access has to be judged again.
    Outdated,
    /// Too many accesses are permitted already.
    Full,
}

impl Permissions {
    /// Permissions of a run that starts. `permitted` are judged before the view gets them.
    pub(super) fn new(permitted: impl Iterator<Item = PermittedAccess>) -> Self {
        Self { permitted: Mutex::new(permitted.collect()), applied: watch::Sender::new(0) }
    }

    /// Notes that the view has applied the permissions of this version.
    pub(super) fn applied(&self, version: u64) {
        self.applied.send_if_modified(|applied| {
            let is_newer = version > *applied;
            *applied = version.max(*applied);
            is_newer
        });
    }
}

impl Run {
    /// Permits an access from now on.
    pub(super) fn permit(&self, access: PermittedAccess, judged: JudgedVersions<'_>) -> Permitting {
        let mut permitted = self.permissions.permitted.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = self.services.grants.now().version == judged.grants
            && Arc::ptr_eq(&self.services.snapshot(), judged.snapshot);
        if !is_current {
            return Permitting::Outdated;
        }
        if permitted.len() >= MOST && !permitted.contains(&access) {
            return Permitting::Full;
        }
        self.tell(ToView::Permit(access.clone()));
        permitted.insert(access);
        Permitting::Permitted
    }

    /// Judges every permitted access again whenever grants or policy change.
    pub(super) async fn follow_changes(self: Arc<Self>) {
        let (mut table, mut snapshots) = (self.services.grants.watch(), self.services.snapshots.clone());
        let mut mounts = GrantedMounts::of(&self);
        loop {
            // Also at the start, so that the view has applied a version from then on. A version is applied only after the
            // folders that it revokes are unmounted.
            let now = self.services.grants.now();
            let version = now.version;
            self.unmount_revoked().await;
            let wanted = self.folders_to_mount(now).await;
            mounts.remove_others(&self, &wanted).await;
            let run = self.clone();
            // Fails only while the trusted process is exiting, which ends the run.
            let _ = tokio::task::spawn_blocking(move || run.judge_again(version)).await;
            mounts.add(&self, &wanted, version).await;
            let changed = tokio::select! {
                changed = table.changed() => changed,
                changed = snapshots.changed() => changed,
                () = mounts.reserved() => Ok(()),
            };
            if changed.is_err() {
                return;
            }
        }
    }

    /// Judges permitted accesses by the grants of this version or a later one. Accesses that are added meanwhile were judged
    /// by such a version too.
    fn judge_again(&self, version: u64) {
        let permitted = || self.permissions.permitted.lock().unwrap_or_else(PoisonError::into_inner);
        let before = permitted().clone();
        // Judging takes time, and opening files must not wait for it, so the lock is not held.
        let allowed = |access: &PermittedAccess| matches!(self.judge(access, &[]).verdict, Verdict::Allow(_));
        let ended: Vec<PermittedAccess> = before.into_iter().filter(|access| !allowed(access)).collect();
        let mut permitted = permitted();
        ended.iter().for_each(|access| _ = permitted.remove(access));
        self.tell(ToView::Permissions { version, permitted: permitted.iter().cloned().collect() });
    }

    /// Waits until neither the view nor a connection uses older grants than those of this version, or nothing of the run is left.
    pub(crate) async fn is_within(&self, version: u64) {
        let mut applied = self.permissions.applied.subscribe();
        let within = async {
            // The sender lives as long as the run.
            let view = async { applied.wait_for(|applied| *applied >= version).await.is_ok() };
            let (_, is_cut_off) = tokio::join!(view, self.network.is_within_grants());
            if !is_cut_off {
                tracing::error!(
                    run = self.id,
                    "a connection to a revoked host was not closed in time; the run is ended"
                );
                self.end();
                self.gone.cancelled().await;
            }
        };
        tokio::select! {
            () = within => {}
            () = self.gone.cancelled() => {}
        }
    }

    /// Sends a message to the view.
    pub(super) fn tell(&self, message: ToView) {
        // Fails only once the run has ended.
        let _ = self.to_view.send(message);
    }
}
