//! Mounts and unmounts paths in a running sandbox, and updates the watch for autostart files.
//!
//! - A folder that cannot be watched is not made writable.
//! - If a mount cannot be proven to be removed, the round is marked as `may_hold_revoked` and the server is restarted.

use crate::server::control::SupervisorControl;
use crate::server::mounted::MountRecord;
use crate::server::process;
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_sandbox::{ControlAnswer, ControlOp, UnmountProof};
use std::collections::BTreeMap;

/// Result of one round of mount changes.
#[derive(Default)]
pub(super) struct RoundOutcome {
    /// `true` if the client was already initialized when the server was notified of its roots.
    pub(super) takes_calls: bool,
    /// `true` if the server may still have access that should have been removed, or if the state of its mounts is
    /// unknown.
    pub(super) may_hold_revoked: bool,
    /// `true` if the mounts are outdated but can be changed only by a restart.
    pub(super) outdated: bool,
    /// Paths that could not be mounted, with the reasons.
    pub(super) failed: BTreeMap<CanonicalPath, String>,
    /// Version of the roots that the server has yet to confirm.
    pub(super) unconfirmed_roots: Option<u64>,
}

pub(super) async fn add(
    control: &mut SupervisorControl,
    mounted: &mut Vec<MountRecord>,
    need: MountRequest,
    kept: Vec<String>,
    round: &mut RoundOutcome,
) {
    let read_only = match control.watch().filter(|_| need.writable) {
        Some(watch) => match watch.open(need.path.as_str()).await {
            Ok(read_only) => read_only,
            // A folder that cannot be watched is not made writable.
            Err(problem) => return drop(round.failed.insert(need.path, problem.to_string())),
        },
        None => Vec::new(),
    };
    let new = MountRecord::before_mounting(need.clone()).with_read_only(read_only.clone());
    match control.ask(ControlOp::Add(process::mount_for(&need, read_only).with_pinned(kept))).await {
        Ok(ControlAnswer::Added) => replace(mounted, new),
        Ok(ControlAnswer::Refused { message, .. }) => {
            if !mounted.iter().any(|m| m.need.writable && m.need.path == need.path) {
                report_no_longer_writable(control, &need);
            }
            round.failed.insert(need.path, message);
        }
        // The supervisor failed, so the state of the mounts is unknown.
        Ok(_) | Err(_) => round.may_hold_revoked = true,
    }
}

pub(super) async fn narrow(
    control: &mut SupervisorControl,
    mounted: &mut Vec<MountRecord>,
    need: MountRequest,
    round: &mut RoundOutcome,
) {
    let new = MountRecord::before_mounting(need.clone());
    let op = ControlOp::Narrow { path: need.path.as_str().to_owned(), file: need.is_file_only };
    match control.ask(op).await {
        Ok(ControlAnswer::Narrowed { proof }) => {
            // Without proof that writing has stopped, restart the server.
            round.may_hold_revoked |= proof != UnmountProof::Proved;
            if proof == UnmountProof::Proved {
                report_no_longer_writable(control, &MountRequest { writable: true, ..need });
            }
            replace(mounted, new);
        }
        // The file at the path was replaced after it had been mounted as writable.
        Ok(ControlAnswer::Refused { .. }) => {
            remove(control, mounted, &need.path, round).await;
            add(control, mounted, need, vec![], round).await;
        }
        Ok(_) | Err(_) => round.may_hold_revoked = true,
    }
}

pub(super) async fn remove(
    control: &mut SupervisorControl,
    mounted: &mut Vec<MountRecord>,
    path: &CanonicalPath,
    round: &mut RoundOutcome,
) {
    let answer = control.ask(ControlOp::Remove { path: path.as_str().to_owned() }).await;
    // Without proof of the unmount, restart the server. Files that the server writes before the restart are checked
    // after it has exited.
    let is_removed = matches!(answer, Ok(ControlAnswer::Removed { proof: UnmountProof::Proved }));
    round.may_hold_revoked |= !is_removed;
    for removed in mounted.extract_if(.., |m| m.need.path == *path).filter(|_| is_removed) {
        report_no_longer_writable(control, &removed.need);
    }
}

/// Notifies the sandbox's watcher that a path is no longer writable.
fn report_no_longer_writable(control: &SupervisorControl, need: &MountRequest) {
    if let Some(watch) = control.watch().filter(|_| need.writable) {
        watch.close(need.path.as_str());
    }
}

fn replace(mounted: &mut Vec<MountRecord>, new: MountRecord) {
    mounted.retain(|m| m.need.path != new.need.path);
    mounted.push(new);
}
