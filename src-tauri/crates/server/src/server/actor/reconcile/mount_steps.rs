//! Mounts and unmounts paths in a running sandbox, and updates the watch for autostart files.
//!
//! - A folder that cannot be watched is not made writable.
//! - If a mount cannot be proven to be removed, the round is marked as `held` and the server is restarted.

use crate::server::control::SupervisorControl;
use crate::server::mounted::Mounted;
use crate::server::process;
use ironcurtain_grants::mounts::Need;
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
    pub(super) held: bool,
    /// `true` if the mounts are outdated but can be changed only by a restart.
    pub(super) outdated: bool,
    /// Paths that could not be mounted, with the reasons.
    pub(super) failed: BTreeMap<CanonicalPath, String>,
    /// Version of the roots that the server has yet to confirm.
    pub(super) told: Option<u64>,
}

pub(super) async fn add(
    control: &mut SupervisorControl,
    mounted: &mut Vec<Mounted>,
    need: Need,
    kept: Vec<String>,
    round: &mut RoundOutcome,
) {
    let closed = match control.look().filter(|_| need.writable) {
        Some(look) => match look.open(need.path.as_str()).await {
            Ok(closed) => closed,
            // A folder that cannot be watched is not made writable.
            Err(problem) => return drop(round.failed.insert(need.path, problem.to_string())),
        },
        None => Vec::new(),
    };
    let new = Mounted::about_to_be(need.clone()).closing(closed.clone());
    match control.ask(ControlOp::Add(process::mount(&need, closed).keeping(kept))).await {
        Ok(ControlAnswer::Added) => replace(mounted, new),
        Ok(ControlAnswer::Refused { message, .. }) => {
            if !mounted.iter().any(|m| m.need.writable && m.need.path == need.path) {
                closed_again(control, &need);
            }
            round.failed.insert(need.path, message);
        }
        // The supervisor failed, so the state of the mounts is unknown.
        Ok(_) | Err(_) => round.held = true,
    }
}

pub(super) async fn narrow(
    control: &mut SupervisorControl,
    mounted: &mut Vec<Mounted>,
    need: Need,
    round: &mut RoundOutcome,
) {
    let new = Mounted::about_to_be(need.clone());
    let op = ControlOp::Narrow { path: need.path.as_str().to_owned(), file: need.file };
    match control.ask(op).await {
        Ok(ControlAnswer::Narrowed { proof }) => {
            // Without proof that writing has stopped, restart the server.
            round.held |= proof != UnmountProof::Proved;
            if proof == UnmountProof::Proved {
                closed_again(control, &Need { writable: true, ..need });
            }
            replace(mounted, new);
        }
        // The file at the path was replaced after it had been mounted as writable.
        Ok(ControlAnswer::Refused { .. }) => {
            remove(control, mounted, &need.path, round).await;
            add(control, mounted, need, vec![], round).await;
        }
        Ok(_) | Err(_) => round.held = true,
    }
}

pub(super) async fn remove(
    control: &mut SupervisorControl,
    mounted: &mut Vec<Mounted>,
    path: &CanonicalPath,
    round: &mut RoundOutcome,
) {
    let answer = control.ask(ControlOp::Remove { path: path.as_str().to_owned() }).await;
    // Without proof of the unmount, restart the server. Files that the server writes before the restart are checked
    // after it has exited.
    let is_gone = matches!(answer, Ok(ControlAnswer::Removed { proof: UnmountProof::Proved }));
    round.held |= !is_gone;
    for gone in mounted.extract_if(.., |m| m.need.path == *path).filter(|_| is_gone) {
        closed_again(control, &gone.need);
    }
}

/// Notifies the sandbox's watcher that a path is no longer writable.
fn closed_again(control: &SupervisorControl, need: &Need) {
    if let Some(look) = control.look().filter(|_| need.writable) {
        look.close(need.path.as_str());
    }
}

fn replace(mounted: &mut Vec<Mounted>, new: Mounted) {
    mounted.retain(|m| m.need.path != new.need.path);
    mounted.push(new);
}
