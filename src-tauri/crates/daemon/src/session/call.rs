//! A tool call: judged, perhaps asked about, put on record, forwarded.
//!
//! - INVARIANT: a call is forwarded by [`forward`] alone, which takes the judge's permit and writes the decision to the
//!   audit log first; if that fails the call does not happen.
//! - After a person's answer the call is resolved and judged again: a change in between is a new question, and so is that
//!   another kind of thing stands at one of its paths.

mod asking;
mod record;
mod resources;
mod showing;

use super::authorize::{Authorization, Judged};
use super::in_flight::Ticket;
use super::passing::Rejection;
use super::refusal::CallRefusal;
use super::tool_call::ToolCall;
use super::{Session, blocked, tasks};
use crate::server::{AtServer, MemoryShare, PendingRequest, ServerAnswer, ServerConnection};
use crate::wire::Response;
use asking::{Escalated, ask};
use ironcurtain_audit::{CallResult, Entry, Event, PolicyDecision};
use ironcurtain_policy::{RuleReason, Verdict};
use record::{allowed_by, millis};
use resources::CallResources;
use rmcp::model::ErrorCode;
use serde_json::value::RawValue;
use showing::proceed;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A call with everything it needs until its answer.
struct Call {
    ticket: Ticket,
    tool: ToolCall,
    began: Instant,
    budget: MemoryShare,
}

/// Takes one `tools/call`. Only what must wait is left to a task of its own, so calls are forwarded in their order.
pub(super) async fn handle_tool_call(
    session: &Arc<Session>,
    ticket: Ticket,
    params: Option<&RawValue>,
    budget: MemoryShare,
) {
    let tool = match ToolCall::read(params) {
        Ok(tool) => tool,
        Err(problem) => {
            let answer = (ErrorCode::INVALID_PARAMS, &*problem.to_string());
            return session.reject(&ticket, ("tools/call", params), Rejection::Malformed, answer).await;
        }
    };
    session.calls(&ticket, &tool.tool);
    let call = Call { ticket, tool, began: Instant::now(), budget };
    let Judged { verdict, inspected, by } = session.judge(&call.tool, &[]).await;
    match verdict {
        Verdict::Allow(permit) => {
            let authorization = session.authorize(permit, inspected, &by, Vec::new());
            forward_or_queue(session, call, authorization).await;
        }
        Verdict::Escalate(escalation) => {
            let escalated = Escalated { escalation, inspected, snapshot: by.snapshot };
            spawn(session, call, None, |s, c| ask(s, c, escalated));
        }
        Verdict::Deny(denial) => session.deny(&call, &inspected, denial, &by.snapshot).await,
    }
}

/// Forwards at once where the server sees what the call needs and nobody waits; else the call stands in line.
async fn forward_or_queue(session: &Arc<Session>, call: Call, authorization: Authorization) {
    let at_once = |_: &ServerConnection| session.shows(&authorization) && session.nobody_in_line();
    let Some(connection) = session.server.ready_now().filter(at_once) else {
        let (turn, next) = session.stand_in_line();
        return spawn(session, call, None, |s, c| wait_in_line(s, c, authorization, turn, next));
    };
    match forward(session, &call, &authorization, &connection).await {
        Ok(forwarded) => {
            let place = forwarded.pending.place();
            let resources = CallResources::default();
            spawn(session, call, Some(place), |s, c| deliver(s, c, authorization, forwarded, resources));
        }
        Err(refusal) => session.refuse(&call, &refusal).await,
    }
}

async fn wait_in_line(
    session: Arc<Session>,
    call: Call,
    authorization: Authorization,
    turn: Option<oneshot::Receiver<()>>,
    next: oneshot::Sender<()>,
) {
    if let Some(turn) = turn {
        // Whatever became of the one before, it is this one's turn.
        let _ = turn.await;
    }
    proceed(session, call, authorization, Some(next)).await;
}

fn spawn<F: Future<Output = ()> + Send + 'static>(
    session: &Arc<Session>,
    call: Call,
    at_server: Option<AtServer>,
    wait: impl FnOnce(Arc<Session>, Call) -> F,
) {
    let ticket = call.ticket.clone();
    session.track(&ticket, at_server, wait(session.clone(), call));
}

/// Writes the decision and sends the call.
async fn forward(
    session: &Session,
    call: &Call,
    authorization: &Authorization,
    connection: &ServerConnection,
) -> Result<Forwarded, CallRefusal> {
    let permit = &authorization.permit;
    let params = call.tool.forwarded(permit.call())?;
    let mut entry = session.about(call, &authorization.inspected, Event::Decision, "");
    let RuleReason { rule, reason } = permit.reason();
    entry.policy_decision = Some(PolicyDecision::allow(allowed_by(permit.allowed_by()), rule, reason));
    entry.policy_hash = Some(authorization.snapshot.hash.clone());
    entry.grant_id = permit.grants().first().cloned();
    let decision = session.services.audit.record(entry).await?;
    session.counts.allowed.fetch_add(1, Ordering::Relaxed);
    session.services.grants.used(permit.grants());
    let pending = connection.request_held("tools/call", Some(&params), call.budget.clone());
    Ok(Forwarded { decision, pending })
}

/// A call that the server has.
struct Forwarded {
    /// The entry of its decision.
    decision: u64,
    pending: PendingRequest,
}

/// Waits for the answer and passes it on; then what was shown and opened for this call alone is taken away.
async fn deliver(
    session: Arc<Session>,
    call: Call,
    authorization: Authorization,
    Forwarded { decision, pending }: Forwarded,
    resources: CallResources,
) {
    let (answered, held, resources) = answer(&session, &call, &authorization, pending, resources).await;
    let task = tasks::made(&answered).filter(|_| resources.is_some());
    // Without a task it is taken away before the client hears the answer.
    let kept = task.map(|task| (session.tasks.begin(task), resources));
    let blocked = if session.sandboxed { blocked::marked(&answered) } else { None };
    let result = match &answered {
        _ if blocked.is_some() => CallResult::BlockedBySandbox,
        ServerAnswer::Response(Response::Result(result)) if is_error(result) => CallResult::Error,
        ServerAnswer::Response(Response::Result(_)) => CallResult::Ok,
        ServerAnswer::Response(Response::Error(_)) => CallResult::RefusedByServer,
        ServerAnswer::Failed(_) => CallResult::NoAnswer,
    };
    session.pass_on(&call.ticket, blocked.unwrap_or(answered), held).await;
    session.record(Entry::end_of(decision, result, millis(call.began))).await;
    session.services.changed();
    if let Some((task, mut resources)) = kept {
        let taken_back = CallResources::over(resources.one_time.as_mut());
        if let Some(why) = session.task_is_over(task, (&call.tool, &authorization), taken_back).await {
            close_early(&session, &call, resources, why).await;
        }
    }
}

async fn close_early(session: &Session, call: &Call, resources: CallResources, why: &str) {
    let closed = resources.one_time.as_ref().map(|once| once.grants().to_vec()).unwrap_or_default();
    drop(resources);
    session.closed_early(&call.tool.tool, closed, why).await;
}

/// Waits for the answer. What is shown for this call alone is taken away with it, or when a policy comes that does not allow
/// the call, or when what the person allowed once has been open long enough, by the person's word or by the clock.
async fn answer(
    session: &Session,
    call: &Call,
    authorization: &Authorization,
    pending: PendingRequest,
    mut resources: CallResources,
) -> (ServerAnswer, MemoryShare, CallResources) {
    let answer = pending.answer_held();
    tokio::pin!(answer);
    if resources.is_some() {
        let why = tokio::select! {
            (answered, held) = &mut answer => return (answered, held, resources),
            () = session.forbidden(&call.tool, authorization) => "a rule forbids it now",
            () = CallResources::over(resources.one_time.as_mut()) => "it was taken back, or the time for it is over",
        };
        close_early(session, call, resources, why).await;
    }
    let (answered, held) = answer.await;
    (answered, held, CallResources::default())
}

fn is_error(result: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Flag {
        #[serde(default)]
        is_error: Option<bool>,
    }
    serde_json::from_str::<Flag>(result.get()).is_ok_and(|f| f.is_error == Some(true))
}
