//! Handles calls: `tools/call`, and other requests that are judged like tool calls. Judges a call, asks the user if
//! necessary, records the decision, and forwards the call.
//!
//! - After the user's answer, resolves and judges the call again. If anything has changed, including the type of file
//!   at one of its paths, the user is asked again.

mod asking;
mod changed_tool;
mod forwarding;
mod mounting;
mod record;
mod resources;

use super::authorize::{Authorization, Judged};
use super::in_flight::Ticket;
use super::queue::QueueSlot;
use super::refusal::CallRefusal;
use super::sandbox_hints::Network;
use super::tool_call::ToolCall;
use super::{Session, sandbox_hints, tasks};
use asking::{Escalated, ask};
use changed_tool::ask_about_tool;
pub(super) use forwarding::CallBatch;
use forwarding::{forward, forward_alone};
use futures_util::FutureExt;
use ironcurtain_audit::{CallResult, Entry};
use ironcurtain_config::ServerAccess;
use ironcurtain_mcp::server::{MemoryShare, ServerAnswer, ServerConnection};
use ironcurtain_mcp::wire::Response;
use ironcurtain_policy::{JudgedRequest, Verdict};
use ironcurtain_sandbox::check_tun;
use mounting::proceed;
use record::millis;
use resources::CallResources;
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A call that has not been answered yet.
struct Call {
    ticket: Ticket,
    tool: ToolCall,
    began: Instant,
    budget: MemoryShare,
}

impl Call {
    fn recorded_decision(&self, decision: u64) -> RecordedDecision {
        RecordedDecision { decision, began: self.began, makes_task: self.tool.task().is_some() }
    }
}

/// Handles one call. Adds it to `batch` if it can be forwarded without waiting. Otherwise, forwards the batch to keep
/// the calls in order, then spawns a task for the call.
pub(super) async fn handle_call(
    session: &Arc<Session>,
    ticket: Ticket,
    (method, params): (&str, Option<&RawValue>),
    budget: MemoryShare,
    batch: &mut CallBatch,
) {
    let tool = match ToolCall::parse(JudgedRequest::parse(method), params) {
        Ok(tool) => tool,
        Err(problem) => return session.reject_params(&ticket, (method, params), &problem).await,
    };
    session.set_tool(&ticket, &tool.tool);
    let call = Call { ticket, tool, began: Instant::now(), budget };
    if session.is_paused() {
        return session.deny_paused(&call).await;
    }
    if call.tool.request.is_none()
        && let Err(refusal) = session.check_pin(&call.tool.tool).await
    {
        batch.forward(session).await;
        if matches!(refusal, CallRefusal::ToolChanged { .. }) && session.services.broker.can_ask() {
            return spawn(session, call, |session, call| ask_about_tool(session, call, refusal));
        }
        return session.deny_changed(&call, &refusal).await;
    }
    let Judged { verdict, inspected, basis } = judge_in_batch(session, &call.tool, batch).await;
    match verdict {
        Verdict::Allow(permit) => {
            let authorization = session.authorize(permit, inspected, &basis, Vec::new());
            let is_ready =
                || session.reach_not_grown(&authorization) && session.has_mounts_for(&authorization);
            let can_forward_now = |_: &ServerConnection| is_ready() && session.queue.is_empty();
            if let Some(connection) = session.server.ready_now().filter(can_forward_now) {
                return batch.add(session, call, authorization, connection);
            }
            batch.forward(session).await;
            let slot = session.queue.join();
            spawn(session, call, |s, c| wait_for_turn(s, c, authorization, slot));
        }
        Verdict::Escalate(escalation) => {
            batch.forward(session).await;
            let escalated = Escalated { escalation, inspected, snapshot: basis.snapshot };
            spawn(session, call, |s, c| ask(s, c, escalated));
        }
        Verdict::Deny(denial) => {
            batch.forward(session).await;
            session.deny(&call, &inspected, denial, &basis.snapshot).await;
        }
    }
}

/// Sequence number of a decision's audit entry, and data for handling the response.
#[derive(Clone, Copy)]
struct RecordedDecision {
    decision: u64,
    began: Instant,
    makes_task: bool,
}

/// Judges a call. Forwards the batch first if judging must wait for git.
async fn judge_in_batch(session: &Arc<Session>, tool: &ToolCall, batch: &mut CallBatch) -> Judged {
    let mut judging = std::pin::pin!(session.judge(tool, &[]));
    if let Some(judged) = judging.as_mut().now_or_never() {
        return judged;
    }
    batch.forward(session).await;
    judging.await
}

async fn wait_for_turn(session: Arc<Session>, call: Call, authorization: Authorization, mut slot: QueueSlot) {
    slot.wait().await;
    proceed(session, call, authorization, Some(slot)).await;
}

fn spawn<F: Future<Output = ()> + Send + 'static>(
    session: &Arc<Session>,
    call: Call,
    wait: impl FnOnce(Arc<Session>, Call) -> F,
) {
    let ticket = call.ticket.clone();
    session.spawn_tracked(&ticket, wait(session.clone(), call));
}

/// The server's response, passed to the task that waits for the response.
struct ServerResponse {
    decision: u64,
    answer: ServerAnswer,
    held: MemoryShare,
}

impl Session {
    /// Forwards the server's response to the client and records the result.
    fn finish_call(
        &self,
        ticket: &Ticket,
        RecordedDecision { decision, began, makes_task }: RecordedDecision,
        answer: ServerAnswer,
        held: MemoryShare,
    ) {
        let (result, has_failed) = match &answer {
            ServerAnswer::Response(Response::Result(result)) if is_error(result) => (CallResult::Error, true),
            ServerAnswer::Response(Response::Result(_)) => (CallResult::Ok, false),
            ServerAnswer::Response(Response::Error(_)) => (CallResult::RefusedByServer, true),
            ServerAnswer::Failed(_) => (CallResult::NoAnswer, false),
        };
        if makes_task {
            self.issued.track_task(&answer);
        }
        if self.principal.is_new && result == CallResult::Ok {
            self.services.grants.record_served(self.config.identity());
        }
        let network = match (&self.network, self.config.has_no_network()) {
            (_, true) => Network::Offline(&self.config.name),
            (Some(_), false) if self.config.access == ServerAccess::Ask && check_tun().is_ok() => {
                Network::Other
            }
            (Some(_), false) => Network::Proxied,
            (None, false) => Network::Other,
        };
        let blocked =
            if self.sandboxed && has_failed { sandbox_hints::with_hint(&answer, network) } else { None };
        let result = if blocked.is_some() { CallResult::BlockedBySandbox } else { result };
        let mut entry = Entry::outcome_of(decision, result, millis(began));
        if let ServerAnswer::Failed(why) = &answer {
            entry.summary = why.to_string();
        }
        if !self.respond(ticket, blocked.unwrap_or(answer), held) {
            // The client has cancelled the call. The cancellation has already been recorded.
            return;
        }
        self.services.metrics.observe_call(began.elapsed());
        // If there is no runtime, the process is exiting. The next start records that the call has no result.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        self.record_end(entry);
        self.services.changed();
    }
}

/// Waits for the response and forwards it. Removes the access that was added only for this call.
async fn deliver(
    session: Arc<Session>,
    call: Call,
    authorization: Authorization,
    pending: oneshot::Receiver<ServerResponse>,
    resources: CallResources,
) {
    let Some((answered, resources)) =
        wait_for_response(&session, &call, &authorization, pending, resources).await
    else {
        return;
    };
    let ServerResponse { decision, answer, held } = answered;
    let task = tasks::created_task(&answer).filter(|_| resources.is_some());
    // Removes the access before the client receives the response, unless the call created a task.
    let tracked = task.map(|task| (session.tasks.track(task), resources));
    session.finish_call(&call.ticket, call.recorded_decision(decision), answer, held);
    if let Some((task, mut resources)) = tracked {
        let revoked = CallResources::wait_for_revocation(resources.one_time.as_mut());
        if let Some(why) = session.wait_for_task(task, (&call.tool, &authorization), revoked).await {
            revoke_early(&session, &call, resources, why).await;
        }
    }
}

async fn revoke_early(session: &Session, call: &Call, resources: CallResources, why: &str) {
    let closed = resources.one_time.as_ref().map(|once| once.grants().to_vec()).unwrap_or_default();
    drop(resources);
    session.record_early_end(&call.tool.tool, closed, why).await;
}

/// Waits for the response. Removes access that was added only for this call when the response arrives, when the policy
/// denies the call, or when the approval is revoked or expires.
async fn wait_for_response(
    session: &Session,
    call: &Call,
    authorization: &Authorization,
    mut pending: oneshot::Receiver<ServerResponse>,
    mut resources: CallResources,
) -> Option<(ServerResponse, CallResources)> {
    if resources.is_some() {
        let why = tokio::select! {
            // If the call was cancelled, the sender has been dropped.
            answered = &mut pending => return answered.ok().map(|answered| (answered, resources)),
            () = session.wait_until_denied(&call.tool, authorization) => "a rule now forbids it",
            () = CallResources::wait_for_revocation(resources.one_time.as_mut()) => "it was revoked or has expired",
        };
        revoke_early(session, call, resources, why).await;
    }
    pending.await.ok().map(|answered| (answered, CallResources::default()))
}

fn is_error(result: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ErrorFlag {
        #[serde(default)]
        is_error: Option<bool>,
    }
    serde_json::from_str::<ErrorFlag>(result.get()).is_ok_and(|f| f.is_error == Some(true))
}
