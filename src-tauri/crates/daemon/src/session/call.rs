//! A tool call: judged, perhaps asked about, put on record, forwarded.
//!
//! - INVARIANT: a call is forwarded by [`forward`] alone, which takes the judge's permit and writes the decision to the
//!   audit log first; if that fails the call does not happen.
//! - After a person's answer the call is resolved and judged again: a change in between is a new question, and so is that
//!   another kind of thing stands at one of its paths.

mod record;
mod resources;

use super::authorize::Authorization;
use super::in_flight::Ticket;
use super::passing::TurnedAway;
use super::tool_call::ToolCall;
use super::{Session, blocked, refusal};
use crate::consent::{Asking, Lifetime, Outcome, Reach, build, opened_by};
use crate::judging::LookedAt;
use crate::policy_snapshot::PolicySnapshot;
use crate::server::{
    AtServer, MemoryShare, MountLease, PendingRequest, ServerAnswer, ServerConnection, ServerError,
};
use crate::wire::Response;
use ironcurtain_audit::{CallResult, Event, PolicyDecision};
use ironcurtain_policy::{Escalation, PendingApproval, Permit, Verdict};
use record::{allowed_by, millis};
use resources::CallResources;
use rmcp::model::ErrorCode;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The number of times that one call may become a new question because what it names changed under the last one.
const MOST_QUESTIONS: usize = 3;

/// The number of times that what stands may change while a call waits for what it needs.
const MOST_ROUNDS: usize = 3;

/// A call with everything it needs until its answer.
struct Call {
    ticket: Ticket,
    tool: ToolCall,
    began: Instant,
    budget: MemoryShare,
}

/// Takes one `tools/call`. Only what must wait is left to a task of its own, so calls are forwarded in their order.
pub(super) async fn called(
    session: &Arc<Session>,
    ticket: Ticket,
    params: Option<&RawValue>,
    budget: MemoryShare,
) {
    let tool = match ToolCall::read(params) {
        Ok(tool) => tool,
        Err(problem) => {
            let problem = (ErrorCode::INVALID_PARAMS, problem.as_str());
            return session.turn_away(&ticket, ("tools/call", params), TurnedAway::Malformed, problem).await;
        }
    };
    session.calls(&ticket, &tool.tool);
    let call = Call { ticket, tool, began: Instant::now(), budget };
    let judged = session.judge(&call.tool, &[]).await;
    match judged.verdict {
        Verdict::Allow(permit) => {
            let authorization = session.authorize(permit, judged.looked, &judged.by, Vec::new());
            allowed(session, call, authorization).await;
        }
        Verdict::Escalate(escalation) => {
            spawn(session, call, None, |s, c| ask(s, c, judged.looked, escalation, judged.by.snapshot));
        }
        Verdict::Deny(denial) => session.deny(&call, &judged.looked, &denial, &judged.by.snapshot).await,
    }
}

/// Forwards at once where the server sees what the call needs and nobody waits; else the call stands in line.
async fn allowed(session: &Arc<Session>, call: Call, authorization: Authorization) {
    let at_once = |_: &ServerConnection| session.shows(&authorization) && session.nobody_in_line();
    let Some(connection) = session.server.ready_now().filter(at_once) else {
        let (turn, next) = session.stand_in_line();
        return spawn(session, call, None, |s, c| wait_in_line(s, c, authorization, turn, next));
    };
    match forward(session, &call, &authorization, &connection).await {
        Ok(pending) => {
            let place = pending.place();
            let resources = CallResources::default();
            spawn(session, call, Some(place), |s, c| deliver(s, c, authorization, pending, resources));
        }
        Err(reason) => session.refuse(&call, reason).await,
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

/// Puts the call to the person until there is an answer to what it is at that moment.
async fn ask(
    session: Arc<Session>,
    call: Call,
    mut looked: LookedAt,
    mut escalation: Escalation,
    mut snapshot: Arc<PolicySnapshot>,
) {
    session.counts.asked.fetch_add(1, Ordering::Relaxed);
    let mut approved = Vec::new();
    for _ in 0..MOST_QUESTIONS {
        match question(&session, &call, &looked, &escalation, &snapshot).await {
            Ok(yes) => approved.extend(yes),
            Err(reason) => return session.refuse(&call, reason).await,
        }
        let mut again = session.judge(&call.tool, &approved).await;
        if !again.looked.paths.stands_as(&looked.paths) {
            // What was said was said about something else.
            approved.clear();
            again = session.judge(&call.tool, &[]).await;
        }
        match again.verdict {
            Verdict::Allow(permit) => {
                let authorization = session.authorize(permit, again.looked, &again.by, approved);
                return proceed(session, call, authorization, None).await;
            }
            Verdict::Escalate(next) => {
                (looked, escalation, snapshot) = (again.looked, next, again.by.snapshot)
            }
            Verdict::Deny(denial) => {
                return session.deny(&call, &again.looked, &denial, &again.by.snapshot).await;
            }
        }
    }
    let reason = "DENIED: what the call names kept changing while it was asked about.".to_owned();
    session.refuse(&call, reason).await;
}

/// One question. What the person said yes to, or why the call does not happen.
async fn question(
    session: &Arc<Session>,
    call: &Call,
    looked: &LookedAt,
    escalation: &Escalation,
    snapshot: &PolicySnapshot,
) -> Result<Vec<PendingApproval>, String> {
    let id = crate::clock::random_name().map_err(|e| format!("DENIED: no question could be made: {e}"))?;
    let wanted = looked.paths.wanted(&escalation.values, session.config.file_writes);
    let hosts = session.grantable_hosts(escalation);
    let client = session.client_view();
    let command = std::iter::once(&session.config.command).chain(&session.config.args);
    let question = build(Asking {
        id: id.clone(),
        session: &session.id,
        client: &client,
        server: &session.config.name,
        server_command: &command.map(String::as_str).collect::<Vec<_>>().join(" "),
        sandboxed: session.sandboxed,
        tool: &call.tool.tool,
        escalation,
        wanted: &wanted,
        found: &looked.paths,
        hosts: &hosts,
        limits: snapshot.limits(),
        deadline: session.services.config.question_deadline(),
    });
    let offers = question.offers.clone();
    let mut entry = session.about(call, looked, Event::Question, "a question was put to the person");
    entry.policy_decision = Some(PolicyDecision::escalate(&escalation.by.rule, &escalation.by.reason));
    entry.policy_hash = Some(snapshot.hash.clone());
    entry.question_id = Some(id.clone());
    session.services.audit.record(entry).await.map_err(|e| format!("DENIED: {e}"))?;
    session.services.changed();
    let asked = Instant::now();
    let asking = session.asking(&call.ticket.id);
    let outcome = session.services.broker.ask(question, session.settled(&call.tool)).await;
    drop(asking);
    session.services.changed();
    session.answered(call, looked, &id, &outcome, asked).await?;
    match outcome {
        Outcome::Allowed { offer, lifetime } => {
            let offer = offers.get(offer).ok_or("DENIED: the answer names no offer.")?;
            let now = session.judge(&call.tool, &[]).await;
            // A call that is denied by now, or is about something else, is given nothing.
            if matches!(now.verdict, Verdict::Deny(_)) || !now.looked.paths.stands_as(&looked.paths) {
                return Ok(Vec::new());
            }
            if lifetime == Lifetime::Once {
                return Ok(escalation.values.to_vec());
            }
            // From now on the grant speaks, for this call too: taken back, it allows nothing any more.
            session.grant(call, offer, lifetime, opened_by(offer.reach, &wanted, &hosts), &id).await?;
            // That a host may be reached is no answer to a rule that asks about the call itself.
            Ok(if offer.reach == Reach::Host { escalation.values.to_vec() } else { Vec::new() })
        }
        Outcome::Settled => Ok(Vec::new()),
        refused @ (Outcome::Denied(_) | Outcome::Unavailable(_) | Outcome::Closed | Outcome::TimedOut) => {
            session.counts.denied.fetch_add(1, Ordering::Relaxed);
            Err(refusal::unanswered(&refused, session.services.config.question_deadline_seconds))
        }
    }
}

/// Makes the kernel show what the call needs, then forwards it, then lets the next in line go on.
async fn proceed(
    session: Arc<Session>,
    call: Call,
    mut authorization: Authorization,
    next: Option<oneshot::Sender<()>>,
) {
    let loan = session.lend(&call.ticket.id, &authorization.approved);
    let shown = shown(&session, &call, &mut authorization).await;
    drop(next);
    match shown {
        Ok((pending, lease)) => {
            session.forwarded(&call.ticket, pending.place());
            let resources = session.listed(&authorization, CallResources { lease, loan, one_time: None });
            deliver(session, call, authorization, pending, resources).await;
        }
        Err(reason) => session.refuse(&call, reason).await,
    }
}

/// Shows the server what the call needs and forwards it, by the leave it has at that moment.
async fn shown(
    session: &Arc<Session>,
    call: &Call,
    authorization: &mut Authorization,
) -> Result<(PendingRequest, Option<MountLease>), String> {
    for _ in 0..MOST_ROUNDS {
        let lease = show(session, authorization).await?;
        // Mounting may have had to restart the server.
        let connection = session.server.ready().await.map_err(not_shown)?;
        let applied = session.server.applied();
        if let Some((path, reason)) = authorization.looked.paths.first_of(&applied.failed) {
            return Err(format!(
                "The call was allowed, but the kernel could not show `{path}` to the server: {reason}."
            ));
        }
        // While it was waited, a grant may have been taken back, the policy or what the call names may have changed.
        let again = session.judge(&call.tool, &authorization.approved).await;
        let now = match again.verdict {
            Verdict::Allow(permit) if is_as_authorized(&permit, &again.looked, authorization) => {
                session.authorize(permit, again.looked, &again.by, authorization.approved.clone())
            }
            Verdict::Deny(denial) => return Err(refusal::denied(&denial)),
            Verdict::Allow(_) | Verdict::Escalate(_) => return Err(refusal::changed()),
        };
        let leased = lease.as_ref().map_or(&[][..], MountLease::needs);
        let is_shown = now.to_lease(&applied).iter().all(|need| leased.contains(need));
        *authorization = now;
        if is_shown {
            return Ok((forward(session, call, authorization, &connection).await?, lease));
        }
    }
    Err(refusal::changed())
}

/// True if a permit is for the call that was authorized; and where a person approved it, for what stood there then.
fn is_as_authorized(permit: &Permit, looked: &LookedAt, authorization: &Authorization) -> bool {
    let stands = || looked.paths.stands_as(&authorization.looked.paths);
    permit.call() == authorization.permit.call() && (authorization.approved.is_empty() || stands())
}

/// Waits until the server sees what stands, and shows it what the call needs beside that.
async fn show(session: &Arc<Session>, authorization: &Authorization) -> Result<Option<MountLease>, String> {
    session.server.ready().await.map_err(not_shown)?;
    if !authorization.needs_nothing() {
        session.server.caught_up(authorization.versions).await.map_err(not_shown)?;
    }
    if session.shows(authorization) {
        return Ok(None);
    }
    let needs = authorization.to_lease(&session.server.applied());
    session.server.lease(needs, authorization.named.clone()).await.map(Some).map_err(not_shown)
}

fn not_shown(problem: ServerError) -> String {
    format!("The call was allowed, but {problem}.")
}

/// Writes the decision and sends the call. The error is for the agent.
async fn forward(
    session: &Session,
    call: &Call,
    authorization: &Authorization,
    connection: &ServerConnection,
) -> Result<PendingRequest, String> {
    let permit = &authorization.permit;
    let params = call.tool.forwarded(permit.call()).map_err(|e| format!("DENIED: {e}"))?;
    let mut entry = session.about(call, &authorization.looked, Event::Decision, "allowed");
    let reason = permit.reasons().first();
    entry.policy_decision =
        reason.map(|r| PolicyDecision::allow(allowed_by(permit.allowed_by()), &r.rule, &r.reason));
    entry.policy_hash = Some(authorization.snapshot.hash.clone());
    entry.grant_id = permit.grants().first().cloned();
    session.services.audit.record(entry).await.map_err(|e| format!("DENIED: {e}"))?;
    session.counts.allowed.fetch_add(1, Ordering::Relaxed);
    session.services.grants.used(permit.grants());
    Ok(connection.request_held("tools/call", Some(&params), call.budget.clone()))
}

/// Waits for the answer and passes it on; then what was shown and opened for this call alone is taken away.
async fn deliver(
    session: Arc<Session>,
    call: Call,
    authorization: Authorization,
    pending: PendingRequest,
    resources: CallResources,
) {
    let (answered, held) = answer(&session, &call, &authorization, pending, resources).await;
    let blocked = if session.sandboxed { blocked::marked(&answered) } else { None };
    let result = match &answered {
        _ if blocked.is_some() => CallResult::BlockedBySandbox,
        ServerAnswer::Response(Response::Result(result)) if is_error(result) => CallResult::Error,
        ServerAnswer::Response(Response::Result(_)) => CallResult::Ok,
        ServerAnswer::Response(Response::Error(_)) => CallResult::RefusedByServer,
        ServerAnswer::Failed(_) => CallResult::NoAnswer,
    };
    session.pass_on(&call.ticket, blocked.unwrap_or(answered), held).await;
    let mut entry = session.about(&call, &authorization.looked, Event::Outcome, "the server answered");
    entry.arguments = None;
    entry.result = Some(result);
    entry.duration_ms = Some(millis(call.began));
    session.record(entry).await;
    session.services.changed();
}

/// Waits for the answer. What is shown for this call alone is taken away with it, or when a policy comes that does not allow
/// the call, or when what the person allowed once has been open long enough, by the person's word or by the clock.
async fn answer(
    session: &Session,
    call: &Call,
    authorization: &Authorization,
    pending: PendingRequest,
    mut resources: CallResources,
) -> (ServerAnswer, MemoryShare) {
    let answer = pending.answer_held();
    tokio::pin!(answer);
    if resources.is_some() {
        let why = tokio::select! {
            answered = &mut answer => return answered,
            () = session.forbidden(&call.tool, authorization) => "a rule forbids it now",
            () = CallResources::over(resources.one_time.as_mut()) => "it was taken back, or the time for it is over",
        };
        let closed = resources.one_time.as_ref().map(|once| once.grants().to_vec()).unwrap_or_default();
        drop(resources);
        session.closed_early(&call.tool.tool, closed, why).await;
    }
    answer.await
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
