//! Orders to the supervisor of a sandbox, which the owner of the control connection carries out.

use crate::server::control::SupervisorControl;
use ironcurtain_sandbox::{ControlAnswer, ControlOp, MountRefusal, UnmountProof};
use tokio::sync::oneshot;

/// Request to the task that owns the supervisor connection, with a channel for the answer.
pub(crate) type SandboxOrder = (ControlOp, oneshot::Sender<Option<ControlAnswer>>);

/// Carries out an order. A folder is watched for autostart files while it is writable.
pub(crate) async fn carry_out(control: &mut SupervisorControl, order: ControlOp) -> Option<ControlAnswer> {
    let (path, order) = match order {
        ControlOp::Add(mount) => {
            let path = mount.path.clone();
            let opened = match control.look() {
                Some(look) => look.open(&path).await,
                None => Ok(vec![]),
            };
            match opened {
                Ok(closed) => (Some(path), ControlOp::Add(mount.closing(closed))),
                // A folder that cannot be watched is not made writable.
                Err(problem) => {
                    let (code, message) = (MountRefusal::Special, problem.to_string());
                    return Some(ControlAnswer::Refused { code, message });
                }
            }
        }
        ControlOp::Remove { path } => (Some(path.clone()), ControlOp::Remove { path }),
        other @ (ControlOp::Narrow { .. } | ControlOp::List | ControlOp::Check | ControlOp::Shutdown) => {
            (None, other)
        }
    };
    let answer = control.ask(order).await.ok();
    let is_closed = matches!(
        answer,
        Some(ControlAnswer::Refused { .. } | ControlAnswer::Removed { proof: UnmountProof::Proved })
    );
    if let (true, Some(path), Some(look)) = (is_closed, path, control.look()) {
        look.close(&path);
    }
    answer
}
