//! A call, which is a `tools/call` or a request that is judged like one: judged, perhaps asked about, put on record, forwarded.
//!
//! - After a person's answer the call is resolved and judged again: a change in between is a new question, and so is that
//!   another kind of thing stands at one of its paths.

mod asking;
mod forwarding;
mod record;
mod resources;
mod showing;

use super::authorize::{Authorization, Judged};
use super::in_flight::Ticket;
use super::queue::QueuePlace;
use super::tool_call::ToolCall;
use super::{Session, blocked, tasks};
use asking::{Escalated, ask};
pub(super) use forwarding::Together;
use forwarding::{forward, forward_alone};
use futures_util::FutureExt;
use ironcurtain_audit::{CallResult, Entry};
use ironcurtain_mcp::server::MemoryShare;
use ironcurtain_mcp::server::ServerAnswer;
use ironcurtain_mcp::server::ServerConnection;
use ironcurtain_mcp::wire::Response;
use ironcurtain_policy::{JudgedRequest, Verdict};
use record::millis;
use resources::CallResources;
use serde_json::value::RawValue;
use showing::proceed;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A call with everything it needs until its answer.
struct Call {
    ticket: Ticket,
    tool: ToolCall,
    began: Instant,
    budget: MemoryShare,
}

impl Call {
    fn decided(&self, decision: u64) -> Decided {
        Decided { decision, began: self.began, makes_task: self.tool.task().is_some() }
    }
}

/// Takes one call. One that can be forwarded at once goes with those that came together with it. Only what must wait is
/// left to a task of its own, when those before it are forwarded, so that calls are forwarded in their order.
pub(super) async fn handle_call(
    session: &Arc<Session>,
    ticket: Ticket,
    (method, params): (&str, Option<&RawValue>),
    budget: MemoryShare,
    together: &mut Together,
) {
    let tool = match ToolCall::read(JudgedRequest::parse(method), params) {
        Ok(tool) => tool,
        Err(problem) => return session.reject_params(&ticket, (method, params), &problem).await,
    };
    session.calls(&ticket, &tool.tool);
    let call = Call { ticket, tool, began: Instant::now(), budget };
    if session.is_paused() {
        return session.deny_paused(&call).await;
    }
    let Judged { verdict, inspected, by } = judged(session, &call.tool, together).await;
    match verdict {
        Verdict::Allow(permit) => {
            let authorization = session.authorize(permit, inspected, &by, Vec::new());
            let stands = || session.reaches_no_more(&authorization) && session.shows(&authorization);
            let at_once = |_: &ServerConnection| stands() && session.queue.is_empty();
            if let Some(connection) = session.server.ready_now().filter(at_once) {
                return together.add(session, call, authorization, connection);
            }
            together.forward(session).await;
            let place = session.queue.stand();
            spawn(session, call, |s, c| wait_in_line(s, c, authorization, place));
        }
        Verdict::Escalate(escalation) => {
            together.forward(session).await;
            let escalated = Escalated { escalation, inspected, snapshot: by.snapshot };
            spawn(session, call, |s, c| ask(s, c, escalated));
        }
        Verdict::Deny(denial) => {
            together.forward(session).await;
            session.deny(&call, &inspected, denial, &by.snapshot).await;
        }
    }
}

/// The entry of a call's decision, and what of the call its answer is held against.
#[derive(Clone, Copy)]
struct Decided {
    decision: u64,
    began: Instant,
    makes_task: bool,
}

/// Judges a call. Where git must be asked for that, no other call waits for it.
async fn judged(session: &Arc<Session>, tool: &ToolCall, together: &mut Together) -> Judged {
    let mut judging = std::pin::pin!(session.judge(tool, &[]));
    if let Some(judged) = judging.as_mut().now_or_never() {
        return judged;
    }
    together.forward(session).await;
    judging.await
}

async fn wait_in_line(
    session: Arc<Session>,
    call: Call,
    authorization: Authorization,
    mut place: QueuePlace,
) {
    place.comes().await;
    proceed(session, call, authorization, Some(place)).await;
}

fn spawn<F: Future<Output = ()> + Send + 'static>(
    session: &Arc<Session>,
    call: Call,
    wait: impl FnOnce(Arc<Session>, Call) -> F,
) {
    let ticket = call.ticket.clone();
    session.track(&ticket, wait(session.clone(), call));
}

/// An answer on its way to the task that waits for it.
struct Answered {
    decision: u64,
    answer: ServerAnswer,
    held: MemoryShare,
}

impl Session {
    /// Passes the server's answer to a call on; then it is put on record.
    fn answered(
        &self,
        ticket: &Ticket,
        Decided { decision, began, makes_task }: Decided,
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
            self.issued.hear_task(&answer);
        }
        if self.principal.is_new && result == CallResult::Ok {
            self.services.grants.serves(self.config.identity());
        }
        let offline = self.config.has_no_network().then_some(self.config.name.as_str());
        let blocked = if self.sandboxed && has_failed { blocked::marked(&answer, offline) } else { None };
        let result = if blocked.is_some() { CallResult::BlockedBySandbox } else { result };
        let mut entry = Entry::end_of(decision, result, millis(began));
        if let ServerAnswer::Failed(why) = &answer {
            entry.summary = why.to_string();
        }
        if !self.pass_on(ticket, blocked.unwrap_or(answer), held) {
            // It was taken back, which is on record.
            return;
        }
        self.services.metrics.served(began.elapsed());
        // Without a runtime everything ends, and the next one notes what has no end.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        self.note_end(entry);
        self.services.changed();
    }
}

/// Waits for the answer and passes it on; then what was shown and opened for this call alone is taken away.
async fn deliver(
    session: Arc<Session>,
    call: Call,
    authorization: Authorization,
    pending: oneshot::Receiver<Answered>,
    resources: CallResources,
) {
    let Some((answered, resources)) = answer(&session, &call, &authorization, pending, resources).await
    else {
        return;
    };
    let Answered { decision, answer, held } = answered;
    let task = tasks::made(&answer).filter(|_| resources.is_some());
    // Without a task it is taken away before the client hears the answer.
    let kept = task.map(|task| (session.tasks.begin(task), resources));
    session.answered(&call.ticket, call.decided(decision), answer, held);
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
    mut pending: oneshot::Receiver<Answered>,
    mut resources: CallResources,
) -> Option<(Answered, CallResources)> {
    if resources.is_some() {
        let why = tokio::select! {
            // One that is forgotten was taken back.
            answered = &mut pending => return answered.ok().map(|answered| (answered, resources)),
            () = session.forbidden(&call.tool, authorization) => "a rule forbids it now",
            () = CallResources::over(resources.one_time.as_mut()) => "it was taken back, or the time for it is over",
        };
        close_early(session, call, resources, why).await;
    }
    pending.await.ok().map(|answered| (answered, CallResources::default()))
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
