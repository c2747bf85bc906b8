//! Showing the server what an authorized call needs, and forwarding it then.

use super::resources::CallResources;
use super::{Answered, Call, deliver, forward, forward_alone};
use crate::judging::InspectedCall;
use crate::server::{MountLease, ServerError};
use crate::session::Session;
use crate::session::authorize::{Authorization, Judged};
use crate::session::queue::QueuePlace;
use crate::session::refusal::CallRefusal;
use ironcurtain_policy::{Permit, Verdict};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The number of times that what stands may change while a call waits for what it needs.
const MOST_ROUNDS: usize = 3;

/// Makes the kernel show what the call needs, then forwards it, then lets the next in line go on.
pub(super) async fn proceed(
    session: Arc<Session>,
    call: Call,
    mut authorization: Authorization,
    place: Option<QueuePlace>,
) {
    let hosts = session.lease_hosts(&call.ticket.id, &authorization.approved);
    let shown = show_and_forward(&session, &call, &mut authorization, hosts.is_some()).await;
    drop(place);
    match shown {
        // Whoever reads the answer passes it on.
        Ok((None, _)) => {}
        Ok((Some(pending), lease)) => {
            let resources =
                session.list_one_time(&authorization, CallResources { lease, hosts, one_time: None });
            deliver(session, call, authorization, pending, resources).await;
        }
        Err(refusal) => session.refuse(&call, &refusal),
    }
}

/// Shows the server what the call needs and forwards it, as it is authorized at that moment.
async fn show_and_forward(
    session: &Arc<Session>,
    call: &Call,
    authorization: &mut Authorization,
    has_hosts: bool,
) -> Result<(Option<oneshot::Receiver<Answered>>, Option<MountLease>), CallRefusal> {
    for _ in 0..MOST_ROUNDS {
        let lease = show(session, authorization).await?;
        // Mounting may have had to restart the server.
        let connection = session.server.ready().await?;
        let applied = session.server.applied();
        let failed = authorization.inspected.paths.first_of(&applied.failed);
        if let Some((path, reason)) = failed.or_else(|| applied.withheld(authorization.written())) {
            let (path, reason) = (path.to_string(), reason.to_owned());
            return Err(ServerError::NotShown { path, reason }.into());
        }
        // While it was waited, a grant may have been taken back, the policy or what the call names may have changed.
        let Judged { verdict, inspected, by } = session.judge(&call.tool, &authorization.approved).await;
        let now = match verdict {
            Verdict::Allow(permit) if is_as_authorized(&permit, &inspected, authorization) => {
                session.authorize(permit, inspected, &by, authorization.approved.clone())
            }
            Verdict::Deny(denial) => return Err(CallRefusal::Denied(denial)),
            Verdict::Allow(_) | Verdict::Escalate(_) => return Err(CallRefusal::Changed),
        };
        let leased = lease.as_ref().map_or(&[][..], MountLease::needs);
        let is_shown =
            session.reaches_no_more(&now) && now.to_lease(&applied).iter().all(|need| leased.contains(need));
        *authorization = now;
        if is_shown {
            if lease.is_none() && !has_hosts {
                forward_alone(session, call, authorization, &connection).await?;
                return Ok((None, lease));
            }
            let (send, pending) = oneshot::channel();
            // Who no longer waits took the call back.
            let then = move |decision, answer, held| drop(send.send(Answered { decision, answer, held }));
            forward(session, call, authorization, &connection, then).await?;
            return Ok((Some(pending), lease));
        }
    }
    Err(CallRefusal::Changed)
}

/// True if a permit is for the call that was authorized; and where a person approved it, for what stood there then.
fn is_as_authorized(permit: &Permit, inspected: &InspectedCall, authorization: &Authorization) -> bool {
    let stands = || inspected.paths.stands_as(&authorization.inspected.paths);
    permit.call() == authorization.permit.call() && (authorization.approved.is_empty() || stands())
}

/// Waits until the server sees what stands, and shows it what the call needs beside that.
async fn show(
    session: &Arc<Session>,
    authorization: &Authorization,
) -> Result<Option<MountLease>, CallRefusal> {
    session.server.ready().await?;
    if authorization.needs_nothing() {
        // What the server reaches by now is judged afterwards, and waits for nothing.
        if !session.shows(authorization) {
            session.server.refresh().await?;
        }
        return Ok(None);
    }
    session.server.caught_up(authorization.versions).await?;
    if session.shows(authorization) {
        return Ok(None);
    }
    let needs = authorization.to_lease(&session.server.applied());
    Ok(Some(session.server.lease(needs, authorization.named.clone()).await?))
}
