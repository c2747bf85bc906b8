//! One change of the mounts of a running sandbox: added, narrowed or removed, with the watch over files that run later.
//!
//! - What is not watched is not made writable.
//! - Without proof that something is gone, the round says that it is held, and the server is started anew.

use crate::server::control::SupervisorControl;
use crate::server::mounted::Mounted;
use crate::server::process;
use ironcurtain_grants::mounts::Need;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_sandbox::{ControlAnswer, ControlOp, UnmountProof};
use std::collections::BTreeMap;

/// The outcome of a round of mounting.
#[derive(Default)]
pub(super) struct RoundOutcome {
    /// The client had greeted the server when that was told of its roots.
    pub(super) takes_calls: bool,
    /// Something that was taken away is still held, or the sandbox is not known to be as it should.
    pub(super) held: bool,
    /// The server does not see what it is to see, and that cannot be changed while it runs.
    pub(super) outdated: bool,
    /// The paths that could not be mounted, each with the reason.
    pub(super) failed: BTreeMap<CanonicalPath, String>,
    /// The version of the roots that the server is to ask for.
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
            // What is not watched is not made writable.
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
        // What is mounted is not known any more.
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
            // Without proof that nothing is written there the server is started anew.
            round.held |= proof != UnmountProof::Proved;
            if proof == UnmountProof::Proved {
                closed_again(control, &Need { writable: true, ..need });
            }
            replace(mounted, new);
        }
        // Something else is there now than what was shown for writing.
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
    // Without proof that it is gone the server is started anew, and what it wrote until then is looked at when it has ended.
    let is_gone = matches!(answer, Ok(ControlAnswer::Removed { proof: UnmountProof::Proved }));
    round.held |= !is_gone;
    for gone in mounted.extract_if(.., |m| m.need.path == *path).filter(|_| is_gone) {
        closed_again(control, &gone.need);
    }
}

/// Tells the watch over the sandbox that a path is not writable any more.
fn closed_again(control: &SupervisorControl, need: &Need) {
    if let Some(look) = control.look().filter(|_| need.writable) {
        look.close(need.path.as_str());
    }
}

fn replace(mounted: &mut Vec<Mounted>, new: Mounted) {
    mounted.retain(|m| m.need.path != new.need.path);
    mounted.push(new);
}
