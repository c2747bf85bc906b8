//! Records the decision on an allowed call, then sends the call to the server.
//!
//! - INVARIANT: only [`send`] sends a call. It requires the permit and the recorded decision, so a call whose decision
//!   cannot be recorded is not sent.
//! - Calls that arrive together are recorded and sent as one batch, in order.

use super::Call;
use crate::session::Session;
use crate::session::authorize::Authorization;
use crate::session::refusal::CallRefusal;
use ironcurtain_audit::{Event, Pending, PolicyDecision};
use ironcurtain_consent::{NotApproved, Stop};
use ironcurtain_judging::allowed_by;
use ironcurtain_mcp::request::ServerRequest;
use ironcurtain_mcp::server::{MemoryShare, ServerAnswer, ServerConnection};
use ironcurtain_policy::{Permit, RuleReason};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Calls that can be forwarded together, because none of them needs a task that waits for its response.
#[derive(Default)]
pub(in crate::session) struct CallBatch(Vec<(Pending, Box<ReadyCall>)>);

/// A call that can be sent once its decision is recorded.
struct ReadyCall {
    call: Call,
    permit: Permit,
    request: ServerRequest,
    connection: ServerConnection,
}

impl CallBatch {
    /// Adds a call. Refuses it if the request cannot be serialized.
    pub(super) fn add(
        &mut self,
        session: &Session,
        call: Call,
        authorization: Authorization,
        connection: ServerConnection,
    ) {
        match decision_entry(session, &call, &authorization) {
            Ok((entry, request)) => {
                let permit = authorization.permit;
                self.0.push((entry, Box::new(ReadyCall { call, permit, request, connection })));
            }
            Err(refusal) => session.refuse(&call, &refusal),
        }
    }

    /// Forwards all calls with a single write to the audit log and one to the server.
    pub(in crate::session) async fn forward(&mut self, session: &Arc<Session>) {
        if self.0.is_empty() {
            return;
        }
        let (entries, calls): (Vec<_>, Vec<_>) = std::mem::take(&mut self.0).into_iter().unzip();
        let first = session.services.audit.record_all(entries).await;
        let _gathered = calls.first().map(|call| call.connection.batch_writes());
        for (ready, nth) in calls.into_iter().zip(0..) {
            let ReadyCall { call, permit, request, connection } = *ready;
            let sent = first.clone().map_err(CallRefusal::from).and_then(|first| {
                let on_response = response_handler(session, &call, first + nth);
                send(session, &call, (&permit, false), &connection, (first + nth, request), on_response)
            });
            match sent {
                Ok(()) => session.services.metrics.observe_forwarding(call.began.elapsed()),
                Err(refusal) => session.refuse(&call, &refusal),
            }
        }
    }
}

/// Forwards a call that has no leases. The connection's reader forwards the response.
pub(super) async fn forward_alone(
    session: &Arc<Session>,
    call: &Call,
    authorization: &Authorization,
    connection: &ServerConnection,
) -> Result<(), CallRefusal> {
    let (entry, request) = decision_entry(session, call, authorization)?;
    let decision = session.services.audit.record_all(vec![entry]).await?;
    let on_response = response_handler(session, call, decision);
    send(session, call, permit_and_approval(authorization), connection, (decision, request), on_response)
}

/// Forwards a call. Calls `on_response` with the response and the number of the decision's audit entry.
pub(super) async fn forward(
    session: &Session,
    call: &Call,
    authorization: &Authorization,
    connection: &ServerConnection,
    on_response: impl FnOnce(u64, ServerAnswer, MemoryShare) + Send + 'static,
) -> Result<(), CallRefusal> {
    let (entry, request) = decision_entry(session, call, authorization)?;
    let decision = session.services.audit.record_all(vec![entry]).await?;
    let on_response = move |answer, held| on_response(decision, answer, held);
    send(session, call, permit_and_approval(authorization), connection, (decision, request), on_response)
}

/// Creates the audit entry for the decision, and the request to send.
fn decision_entry(
    session: &Session,
    call: &Call,
    authorization: &Authorization,
) -> Result<(Pending, ServerRequest), CallRefusal> {
    let permit = &authorization.permit;
    let request = call.tool.to_server_request(permit.call())?;
    let dropped = call.tool.dropped().unwrap_or_default();
    let mut entry = session.call_entry(call, &authorization.inspected, Event::Decision, dropped);
    let RuleReason { rule, reason } = permit.reason();
    entry.policy_decision = Some(PolicyDecision::allow(allowed_by(permit.allowed_by()), rule, reason));
    entry.policy_hash = Some(authorization.snapshot.hash.clone());
    entry.grant_id = permit.grants().first().cloned();
    Ok((Pending::new(entry)?, request))
}

/// Returns the callback that forwards a call's response to the client.
fn response_handler(
    session: &Arc<Session>,
    call: &Call,
    decision: u64,
) -> impl FnOnce(ServerAnswer, MemoryShare) + Send + use<> {
    let (waiting, ticket, decided) =
        (Arc::downgrade(session), call.ticket.clone(), call.recorded_decision(decision));
    move |answer, held| {
        if let Some(session) = waiting.upgrade() {
            session.finish_call(&ticket, decided, answer, held);
        }
    }
}

/// Returns the permit, and `true` if the permit depends on an approval for this call only.
fn permit_and_approval(authorization: &Authorization) -> (&Permit, bool) {
    (&authorization.permit, !authorization.approved.is_empty())
}

/// Sends a call whose decision has been recorded.
fn send(
    session: &Session,
    call: &Call,
    (permit, is_approved_once): (&Permit, bool),
    connection: &ServerConnection,
    (decision, request): (u64, ServerRequest),
    on_response: impl FnOnce(ServerAnswer, MemoryShare) + Send + 'static,
) -> Result<(), CallRefusal> {
    // Recording may have taken some time, so these conditions are checked again afterwards.
    if session.is_paused() {
        session.record_not_forwarded(decision, "the agent was paused in the meantime");
        return Err(NotApproved::Stopped(Stop::Paused).into());
    }
    if is_approved_once && session.services.broker.stops().now().lockdown {
        session.record_not_forwarded(decision, "lockdown began in the meantime");
        return Err(NotApproved::Stopped(Stop::Lockdown).into());
    }
    if !session.services.grants.are_active(permit.grants()) {
        session.record_not_forwarded(decision, "its permission ended in the meantime");
        return Err(CallRefusal::Changed);
    }
    session.counts.allowed.fetch_add(1, Ordering::Relaxed);
    session.services.metrics.count_decision("allow");
    session.services.grants.count_use(permit.grants());
    session.server.store_for_replay(&request);
    let handle = connection.forward_request(request, call.budget.clone(), on_response);
    session.set_server_request(&call.ticket, handle);
    Ok(())
}
