//! Mounts the paths that an authorized call needs, then forwards the call.

use super::resources::CallResources;
use super::{Call, ServerResponse, deliver, forward, forward_alone};
use crate::session::Session;
use crate::session::authorize::{Authorization, Judged};
use crate::session::queue::QueueSlot;
use crate::session::refusal::CallRefusal;
use ironcurtain_judging::InspectedCall;
use ironcurtain_policy::{Permit, Verdict};
use ironcurtain_server::{MountLease, ServerError};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Maximum number of mount attempts. Another attempt is needed if the grants or the policy change during an attempt.
const MAX_ROUNDS: usize = 3;

/// Mounts the paths that the call needs, forwards the call, then leaves the queue.
pub(super) async fn proceed(
    session: Arc<Session>,
    call: Call,
    mut authorization: Authorization,
    slot: Option<QueueSlot>,
) {
    let hosts = session.lease_hosts(&call.ticket.id, &authorization.approved);
    let result = mount_and_forward(&session, &call, &mut authorization, hosts.is_some()).await;
    drop(slot);
    match result {
        // The connection's reader forwards the response.
        Ok((None, _)) => {}
        Ok((Some(pending), lease)) => {
            let resources =
                session.list_one_time(&authorization, CallResources { lease, hosts, one_time: None });
            deliver(session, call, authorization, pending, resources).await;
        }
        Err(refusal) => session.refuse(&call, &refusal),
    }
}

/// Mounts the paths that the call needs. Then forwards the call if it is still authorized.
async fn mount_and_forward(
    session: &Arc<Session>,
    call: &Call,
    authorization: &mut Authorization,
    has_hosts: bool,
) -> Result<(Option<oneshot::Receiver<ServerResponse>>, Option<MountLease>), CallRefusal> {
    for _ in 0..MAX_ROUNDS {
        let lease = mount(session, authorization).await?;
        // Mounting may have restarted the server, so the connection is looked up again.
        let connection = session.server.ready().await?;
        let applied = session.server.applied();
        let failed = authorization.inspected.paths.find_affected(&applied.failed);
        if let Some((path, reason)) = failed.or_else(|| applied.find_read_only(authorization.written())) {
            let (path, reason) = (path.to_string(), reason.to_owned());
            return Err(ServerError::NotMounted { path, reason }.into());
        }
        // Checks the call again, because grants may have been revoked, or the tool, the policy or the named files may
        // have changed in the meantime.
        if call.tool.request.is_none() {
            session.check_pin(&call.tool.tool).await?;
        }
        let Judged { verdict, inspected, basis } = session.judge(&call.tool, &authorization.approved).await;
        let now = match verdict {
            Verdict::Allow(permit) if is_as_authorized(&permit, &inspected, authorization) => {
                session.authorize(permit, inspected, &basis, authorization.approved.clone())
            }
            Verdict::Deny(denial) => return Err(CallRefusal::Denied(denial)),
            Verdict::Allow(_) | Verdict::Escalate(_) => return Err(CallRefusal::Changed),
        };
        let leased = lease.as_ref().map_or(&[][..], MountLease::mounts);
        let is_mounted = session.reach_not_grown(&now)
            && now.mounts_to_lease(&applied).iter().all(|need| leased.contains(need));
        *authorization = now;
        if is_mounted {
            if lease.is_none() && !has_hosts {
                forward_alone(session, call, authorization, &connection).await?;
                return Ok((None, lease));
            }
            let (send, pending) = oneshot::channel();
            // Sending fails if the call was cancelled.
            let on_response =
                move |decision, answer, held| drop(send.send(ServerResponse { decision, answer, held }));
            forward(session, call, authorization, &connection, on_response).await?;
            return Ok((Some(pending), lease));
        }
    }
    Err(CallRefusal::Changed)
}

/// Returns `true` if the permit is for the authorized call. If the user approved the call, the types of its files
/// must also be unchanged.
fn is_as_authorized(permit: &Permit, inspected: &InspectedCall, authorization: &Authorization) -> bool {
    let has_same_files = || inspected.paths.has_same_kinds(&authorization.inspected.paths);
    permit.call() == authorization.permit.call() && (authorization.approved.is_empty() || has_same_files())
}

/// Waits until the server has all current mounts, and adds the mounts that only this call needs.
async fn mount(
    session: &Arc<Session>,
    authorization: &Authorization,
) -> Result<Option<MountLease>, CallRefusal> {
    session.server.ready().await?;
    if authorization.needs_no_mounts() {
        // The server's reach is checked after mounting, so this does not wait for the server to confirm new roots.
        if !session.has_mounts_for(authorization) {
            session.server.refresh().await?;
        }
        return Ok(None);
    }
    session.server.wait_until_applied(authorization.versions).await?;
    if session.has_mounts_for(authorization) {
        return Ok(None);
    }
    let needs = authorization.mounts_to_lease(&session.server.applied());
    Ok(Some(session.server.lease(needs, authorization.approved_autostart_files.clone()).await?))
}
