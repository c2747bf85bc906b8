//! Updates a server's mounts and roots after a change to grants, leases or the policy.
//!
//! - To add access: mounts, notifies the server, then waits for its confirmation. To remove access: notifies the
//!   server, then unmounts and requires proof. A server that still holds a file open is killed and restarted.
//! - Access that remains granted stays mounted, so that calls that need no other access are not delayed.
//! - Every wait has a time limit. Grant and policy changes are applied to the mounts during the wait, so a slow server
//!   cannot delay a revocation.
//! - INVARIANT: waits once per version of the roots. A change that does not affect this server's roots does not restart
//!   the wait.

mod confirmation;
mod mount_steps;

use super::{Actor, Applied, Command, Running, ServerState, Versions};
use crate::server::control::SupervisorControl;
use crate::server::process::Containment;
use crate::server::roots::{ServerView, compute_view};
use confirmation::{ROOTS_CHANGED, RootsWait, WaitOutcome};
use ironcurtain_autostart::is_autostart_file;
use ironcurtain_config::PolicySnapshot;
use ironcurtain_grants::mounts::{MountRequest, MountStep, additions, needed_mounts, removals};
use ironcurtain_grants::{GrantTable, StandingGrant};
use ironcurtain_mcp::wire::notification_line;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{GrantKind, OpenFolder};
use mount_steps::{RoundOutcome, add, narrow, remove};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// Name of the tool that some file servers provide for listing their allowed directories.
const LIST_ALLOWED: &str = "list_allowed_directories";

/// Maximum number of consecutive restarts to enforce changes to the mounts.
const MAX_RESTARTS: usize = 3;

/// Parts of the policy that apply to this server.
pub(super) struct ServerRules {
    version: u64,
    /// Folders that a policy rule permits access to.
    opened: Arc<[OpenFolder]>,
    /// `true` if the server has the `list_allowed_directories` tool.
    lists_allowed: bool,
}

impl ServerRules {
    pub(super) fn of(snapshot: &PolicySnapshot, server: &str) -> Self {
        Self {
            version: snapshot.version,
            opened: snapshot.open_folders(server).into(),
            lists_allowed: snapshot.annotations.get(server, LIST_ALLOWED).is_some(),
        }
    }
}

impl Actor {
    /// Applies the newest grants and policy. Returns once the server has its mounts and has confirmed its roots.
    pub(super) async fn reconcile(&mut self) {
        let (mut grants, mut snapshots) = (self.options.grants.clone(), self.options.snapshots.clone());
        let mut restarts = 0;
        let (mut wait, mut refreshed) = (None::<RootsWait>, Vec::<oneshot::Sender<()>>::new());
        loop {
            grants.mark_unchanged();
            let versions = self.update_view();
            let round = self.mount_for(versions.grants).await;
            if round.may_hold_revoked && restarts < MAX_RESTARTS {
                restarts += 1;
                self.restarts += 1;
                wait = None;
                self.restart("it still had access that was revoked").await;
                continue;
            }
            if round.outdated && restarts < MAX_RESTARTS {
                restarts += 1;
                wait = None;
                self.restart("the files it may see have changed").await;
                continue;
            }
            self.applied.send_modify(|applied| {
                (applied.enforced_grants, applied.restarts) = (versions.grants, self.restarts);
                (applied.mounted, applied.failed) = (self.mounted.clone(), round.failed.clone());
            });
            for reply in refreshed.drain(..) {
                // Ignore the error, which occurs if the caller was cancelled.
                let _ = reply.send(());
            }
            wait = self.wait_for(round.unconfirmed_roots, wait);
            if let Some(wait) = &mut wait {
                tokio::select! {
                    outcome = &mut wait.outcome => self.wait_ended(wait.version, outcome),
                    () = versions_changed(&mut grants, &mut snapshots, versions) => continue,
                    reply = next_refresh(&mut self.inbox, &mut self.postponed) => match reply {
                        Some(reply) => {
                            refreshed.push(reply);
                            continue;
                        }
                        // All senders were dropped: the session is closing.
                        None => return,
                    },
                }
            }
            self.applied.send_replace(Applied {
                versions,
                enforced_grants: versions.grants,
                restarts: self.restarts,
                failed: round.failed,
                read_only: self.recreating.read_only(),
                opened: self.server_rules.opened.clone(),
                mounted: self.mounted.clone(),
            });
            if round.takes_calls {
                self.mark_ready();
            }
            break;
        }
    }

    /// Computes the mounts and roots that the server may have now. Returns the versions of the grants and the policy
    /// that the result reflects.
    pub(super) fn update_view(&mut self) -> Versions {
        self.apply_policy();
        let table = self.options.grants.borrow().clone();
        let denied = &self.options.denied;
        let is_denied = |grant: &StandingGrant| grant.files().is_some_and(|files| denied.covers(&files.path));
        let may_use = |grant: &&StandingGrant| (self.options.may_use)(grant) && !is_denied(grant);
        let grants: Vec<StandingGrant> = table.grants.iter().filter(may_use).cloned().collect();
        let opened = self.server_rules.opened.iter().filter(|folder| !denied.covers(&folder.path));
        let opened: Vec<OpenFolder> = opened.cloned().collect();
        let leases: Vec<MountRequest> =
            self.leases.values().flat_map(|leased| &leased.mounts).cloned().collect();
        let versions = Versions { grants: table.version, policy: self.server_rules.version };
        if self.options.server.remote.is_some() {
            // A remote server has no mounts and no roots.
            return versions;
        }
        self.update_approved_files(&grants);
        let o = &self.options;
        let mut new = compute_view(
            &o.sandbox_context.session_dir,
            &opened,
            &grants,
            &leases,
            (&o.resolver, &o.sandbox_context.protected),
        );
        let always_writable = o.containment.as_ref().map(|c| c.always_writable(&o.sandbox_context));
        if o.asking.is_some() {
            // Granted files are served.
            new.mounts.clear();
        }
        new.mounts.extend(always_writable.unwrap_or_default());
        self.remove_write_access(&mut new.mounts);
        for need in &mut new.mounts {
            need.is_approved_by_name =
                need.is_file_only && need.writable && self.approved_files.contains(&need.path);
        }
        self.roots.send_if_modified(|old| {
            let paths = |s: &ServerView| s.roots.iter().map(|r| r.path.clone()).collect::<Vec<_>>();
            let version = if paths(old) == paths(&new) { old.version } else { old.version + 1 };
            *old = ServerView { version, ..new };
            true
        });
        versions
    }

    /// Updates the approved autostart files and notifies the watcher of new ones.
    fn update_approved_files(&mut self, grants: &[StandingGrant]) {
        let granted = grants.iter().filter_map(StandingGrant::files);
        let granted = granted.filter(|files| files.kind == GrantKind::File && files.access.write);
        let leased = self.leases.values().flat_map(|leased| &leased.approved_files);
        let home = &self.options.sandbox_context.home;
        let all = granted.map(|files| &files.path).chain(leased).filter(|path| is_autostart_file(path, home));
        let approved_files: BTreeSet<CanonicalPath> = all.cloned().collect();
        if let Some(watch) =
            self.running.as_mut().and_then(Running::control).and_then(|control| control.watch())
        {
            approved_files
                .difference(&self.approved_files)
                .for_each(|path| watch.add_approved(path.as_str()));
        }
        self.approved_files = approved_files;
    }

    fn apply_policy(&mut self) {
        let snapshot = self.options.snapshots.borrow().clone();
        if snapshot.version == self.server_rules.version {
            return;
        }
        self.server_rules = ServerRules::of(&snapshot, &self.options.server.name);
        if self.options.sandbox_context.protected != snapshot.protected {
            self.options.sandbox_context.protected = snapshot.protected.clone();
            // The paths that are hidden from a running process, or permitted by its entry, cannot be changed.
            let exposes_more = |containment: &Containment| {
                containment.hides_paths() || !containment.is_permitted(&self.options.sandbox_context)
            };
            self.must_hide_more = self.options.containment.as_ref().is_ok_and(exposes_more);
        }
    }

    async fn mount_for(&mut self, grants: u64) -> RoundOutcome {
        let outdated = self.must_hide_more && self.running.is_some();
        let mut round = RoundOutcome { outdated, ..RoundOutcome::default() };
        let stale =
            self.mounted.iter().filter(|m| !m.is_current()).map(|m| MountStep::Remove(m.need.path.clone()));
        let stale = stale.collect();
        self.apply(stale, &mut round).await;
        let mounts = self.roots.borrow().mounts.clone();
        let now: Vec<MountRequest> = self.mounted.iter().map(|m| m.need.clone()).collect();
        let wanted = needed_mounts(&now, &mounts);
        self.apply(additions(&now, &wanted), &mut round).await;
        // The client may initialize at any moment. If it does, a server that was not notified of its roots in this
        // round takes no calls before the next round.
        round.takes_calls = self.is_initialized();
        round.unconfirmed_roots = self.announce_roots();
        let now: Vec<MountRequest> = self.mounted.iter().map(|m| m.need.clone()).collect();
        self.apply(removals(&now, &wanted), &mut round).await;
        round.may_hold_revoked |= !self.network_is_cut_off().await;
        round.may_hold_revoked |= !self.enforce_file_grants(grants).await;
        let lost = self.running.as_mut().and_then(Running::control).map(SupervisorControl::lost_masks);
        self.report_lost_masks(lost.unwrap_or_default()).await;
        round
    }

    /// Returns `true` once none of the server's open connections depends on a revoked grant.
    async fn network_is_cut_off(&self) -> bool {
        match &self.options.network {
            Some(network) => network.enforce_grants().await,
            None => true,
        }
    }

    async fn apply(&mut self, steps: Vec<MountStep>, round: &mut RoundOutcome) {
        let Some(running) = self.running.as_mut() else { return };
        round.outdated |= running.is_fixed() && !steps.is_empty();
        let Some(control) = running.control() else { return };
        for step in steps {
            match step {
                MountStep::Add(need) => {
                    let kept = self.options.sandbox_context.masked_paths_in(&need.path);
                    add(control, &mut self.mounted, need, kept, round).await;
                }
                MountStep::Narrow(need) => narrow(control, &mut self.mounted, need, round).await,
                MountStep::Remove(path) => remove(control, &mut self.mounted, &path, round).await,
            }
        }
    }

    /// Notifies the server if its roots changed. Returns their version if the server has yet to confirm it.
    fn announce_roots(&mut self) -> Option<u64> {
        let version = self.roots.borrow().version;
        let connection = &self.running.as_ref()?.connection;
        let sent_version = *connection.sent_roots.borrow();
        // Skip servers that never request roots, and stateless servers, which request them when needed.
        let never_asks =
            connection.is_stateless() || (self.asks_for_roots == Some(false) && sent_version == 0);
        // A server whose input is closed receives nothing.
        if self.is_closing || !self.is_initialized() || self.confirmed_version == version || never_asks {
            return None;
        }
        // Skip servers that have not requested roots yet, because they will receive the newest ones when they do.
        let may_know = self.asks_for_roots.is_some() || sent_version > 0;
        if sent_version != version && self.announced_version != version && may_know {
            connection.send(notification_line(ROOTS_CHANGED, None), None);
            self.options.metrics.count_roots_changed();
            self.announced_version = version;
        }
        Some(version)
    }

    /// Returns the wait for a version of the roots: `wait` if it is for the same version, otherwise a new wait.
    fn wait_for(&self, unconfirmed_roots: Option<u64>, wait: Option<RootsWait>) -> Option<RootsWait> {
        let version = unconfirmed_roots?;
        if let Some(wait) = wait.filter(|wait| wait.version == version) {
            return Some(wait);
        }
        let connection = self.running.as_ref()?.connection.clone();
        let lists_allowed = self.server_rules.lists_allowed;
        let shown = self.roots.borrow().clone();
        Some(RootsWait::begin(
            connection,
            shown,
            (self.asks_for_roots, lists_allowed),
            self.options.log.clone(),
        ))
    }

    /// Handles the result of waiting for a version of the roots.
    fn wait_ended(&mut self, version: u64, outcome: WaitOutcome) {
        match outcome {
            // The process exited, so it remains unknown whether the server requests roots.
            WaitOutcome::Exited => {}
            WaitOutcome::Waited { asks_for_roots } => {
                self.asks_for_roots = asks_for_roots;
                self.confirmed_version = version;
            }
        }
    }

    /// Returns `true` if the running process has received the client's `initialized` notification.
    fn is_initialized(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.handshake.is_complete())
            && self.replay.is_initialized()
    }

    /// Marks the server as ready to take calls.
    fn mark_ready(&self) {
        if !self.is_initialized() {
            return;
        }
        self.state.send_if_modified(|state| match state {
            ServerState::Up { ready, .. } if !*ready => {
                *ready = true;
                true
            }
            ServerState::Up { .. } | ServerState::Starting(_) | ServerState::Down(_) => false,
        });
    }
}

/// Completes when the grants or the policy have changed.
async fn versions_changed(
    grants: &mut watch::Receiver<Arc<GrantTable>>,
    snapshots: &mut watch::Receiver<Arc<PolicySnapshot>>,
    versions: Versions,
) {
    let versions_changed = tokio::select! {
        table = grants.wait_for(|table| table.version != versions.grants) => table.is_ok(),
        snapshot = snapshots.wait_for(|snapshot| snapshot.version != versions.policy) => snapshot.is_ok(),
    };
    if !versions_changed {
        // All senders were dropped, so no further change will arrive.
        std::future::pending().await
    }
}

/// Returns the next call that needs no further access and postpones all other commands. Returns `None` once all
/// senders are dropped.
async fn next_refresh(
    inbox: &mut mpsc::UnboundedReceiver<Command>,
    postponed: &mut VecDeque<Command>,
) -> Option<oneshot::Sender<()>> {
    loop {
        let command = inbox.recv().await?;
        if let Command::Refresh(reply) = command {
            return Some(reply);
        }
        postponed.push_back(command);
    }
}
