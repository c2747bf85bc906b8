//! A tool call: judged, perhaps asked about, put on record, forwarded.
//!
//! - INVARIANT: a call is forwarded by [`forward`] alone, which takes the judge's permit and writes the decision to the
//!   audit log first; if that fails the call does not happen.
//! - After a person's answer the call is resolved and judged again: a change in between is a new question.

use super::prepare::{Prepared, ToolCall};
use super::{Session, refusal};
use crate::audit::{Entry, Event, PolicyDecision, redacted};
use crate::consent::{Asking, Lifetime, Offer, Outcome, Wanted, build, grants_of};
use crate::grants::{StandingGrant, Subject};
use crate::mounts::Need;
use crate::server::{Answered, Lease, Pending, Pump};
use crate::wire::{Id, Response, response_line, result_line};
use ironcurtain_policy::{Asked, Context, Denial, Escalation, Grant, Permit, Verdict, judge};
use rmcp::model::ErrorCode;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

/// How often one call may become a new question because what it names changed under the last one.
const MOST_QUESTIONS: usize = 3;

/// A call with everything it needs until its answer.
struct Call {
    id: Id,
    tool: ToolCall,
    began: Instant,
    _budget: OwnedSemaphorePermit,
}

/// What the judge said, and about what.
struct Judged {
    prepared: Option<Prepared>,
    verdict: Verdict,
    /// The grants it was judged with, and the version of their table.
    grants: Vec<StandingGrant>,
    version: u64,
}

/// Leave for a call, with what it was given for.
struct Leave {
    prepared: Prepared,
    permit: Permit,
    needs: Vec<Need>,
    version: u64,
}

/// Takes one `tools/call`. Only what must wait is left to a task of its own, so calls are forwarded in their order.
pub(super) async fn called(
    session: &Arc<Session>,
    id: Id,
    params: Option<&RawValue>,
    budget: OwnedSemaphorePermit,
) {
    let tool = match ToolCall::read(params) {
        Ok(tool) => tool,
        Err(problem) => return session.fail(&id, ErrorCode::INVALID_PARAMS, &problem).await,
    };
    let call = Call { id, tool, began: Instant::now(), _budget: budget };
    let judged = session.judge(&call.tool, &[]);
    match (judged.verdict, judged.prepared) {
        (Verdict::Allow(permit), Some(prepared)) => {
            let leave = session.leave(prepared, permit, &judged.grants, judged.version);
            match session.server.ready_now().filter(|_| session.shows(&leave)) {
                Some(pump) => match forward(session, &call, &leave, &pump).await {
                    Ok(pending) => {
                        spawn(session, call, Some(pending.id), |s, c| deliver(s, c, leave, pending, None))
                    }
                    Err(reason) => session.refuse(&call, reason).await,
                },
                None => spawn(session, call, None, |s, c| proceed(s, c, leave)),
            }
        }
        (Verdict::Escalate(escalation), Some(prepared)) => {
            spawn(session, call, None, |s, c| ask(s, c, prepared, escalation));
        }
        (Verdict::Deny(denial), prepared) => session.deny(&call, prepared.as_ref(), &denial).await,
        (Verdict::Allow(_) | Verdict::Escalate(_), None) => session.deny(&call, None, &unresolved()).await,
    }
}

fn spawn<F: Future<Output = ()> + Send + 'static>(
    session: &Arc<Session>,
    call: Call,
    at_server: Option<u64>,
    wait: impl FnOnce(Arc<Session>, Call) -> F,
) {
    let id = call.id.clone();
    session.track(&id, at_server, wait(session.clone(), call));
}

/// Puts the call to the person until there is an answer to what it is at that moment.
async fn ask(session: Arc<Session>, call: Call, mut prepared: Prepared, mut escalation: Escalation) {
    session.counts.asked.fetch_add(1, Ordering::Relaxed);
    let mut approved = Vec::new();
    for _ in 0..MOST_QUESTIONS {
        match question(&session, &call, &prepared, &escalation).await {
            Ok(yes) => approved.extend(yes),
            Err(reason) => return session.refuse(&call, reason).await,
        }
        let again = session.judge(&call.tool, &approved);
        match (again.verdict, again.prepared) {
            (Verdict::Allow(permit), Some(now)) => {
                let leave = session.leave(now, permit, &again.grants, again.version);
                return proceed(session, call, leave).await;
            }
            (Verdict::Escalate(next), Some(now)) => (prepared, escalation) = (now, next),
            (Verdict::Deny(denial), now) => return session.deny(&call, now.as_ref(), &denial).await,
            (Verdict::Allow(_) | Verdict::Escalate(_), None) => {
                return session.deny(&call, None, &unresolved()).await;
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
    prepared: &Prepared,
    escalation: &Escalation,
) -> Result<Vec<Asked>, String> {
    let id = crate::clock::random_name().map_err(|e| format!("DENIED: no question could be made: {e}"))?;
    let wanted = prepared.wanted(&escalation.values, session.config.file_writes);
    let client = session.client_view();
    let command = std::iter::once(&session.config.command).chain(&session.config.args);
    let question = build(Asking {
        id: id.clone(),
        session: &session.id,
        client: &client,
        server: &session.config.name,
        server_command: &command.map(String::as_str).collect::<Vec<_>>().join(" "),
        sandboxed: session.sandboxed(),
        tool: &call.tool.tool,
        escalation,
        wanted: &wanted,
        arguments: prepared.call.transport_arguments(),
        limits: session.limits(),
        deadline: session.shared.config.question_deadline(),
    });
    let offers = question.offers.clone();
    let mut entry = session.about(call, Some(prepared), Event::Question, "a question was put to the person");
    entry.policy_decision = Some(decision("escalate", &escalation.rule, &escalation.reason));
    entry.question_id = Some(id.clone());
    session.shared.audit.record(entry).await.map_err(|e| format!("DENIED: {e}"))?;
    session.shared.changed();
    let asked = Instant::now();
    let outcome = session.shared.broker.ask(question, session.settled(&call.tool)).await;
    session.shared.changed();
    session.answered(call, prepared, &id, &outcome, asked).await?;
    match outcome {
        Outcome::Allowed { offer, lifetime } => {
            let offer = offers.get(offer).ok_or("DENIED: the answer names no offer.")?;
            if lifetime != Lifetime::Once {
                let wanted: Vec<Wanted> = wanted.into_iter().map(|(w, _)| w).collect();
                session.grant(call, offer, lifetime, &wanted, &id).await?;
            }
            Ok(escalation.values.clone())
        }
        Outcome::Settled => Ok(Vec::new()),
        refused => {
            session.counts.denied.fetch_add(1, Ordering::Relaxed);
            Err(refusal::unanswered(&refused, session.shared.config.question_deadline_seconds))
        }
    }
}

/// Makes the kernel show what the call needs, then forwards it.
async fn proceed(session: Arc<Session>, call: Call, leave: Leave) {
    match shown(&session, &call, &leave).await {
        Ok((pending, lease)) => {
            session.forwarded(&call.id, pending.id);
            deliver(session, call, leave, pending, lease).await;
        }
        Err(reason) => session.refuse(&call, reason).await,
    }
}

async fn shown(
    session: &Arc<Session>,
    call: &Call,
    leave: &Leave,
) -> Result<(Pending, Option<Lease>), String> {
    let problem = |e: crate::server::ServerError| format!("The call was allowed, but {e}.");
    session.server.ready().await.map_err(problem)?;
    let applied = session.server.caught_up(leave.version).await.map_err(problem)?;
    if let Some((path, reason)) = leave.prepared.first_of(&applied.failed) {
        return Err(format!(
            "The call was allowed, but the kernel could not show `{path}` to the server: {reason}."
        ));
    }
    let lease = if leave.needs.is_empty() {
        None
    } else {
        Some(session.server.lease(leave.needs.clone()).await.map_err(problem)?)
    };
    // Mounting may have had to restart the server.
    let pump = session.server.ready().await.map_err(problem)?;
    Ok((forward(session, call, leave, &pump).await?, lease))
}

/// Writes the decision and sends the call. The error is for the agent.
async fn forward(session: &Session, call: &Call, leave: &Leave, pump: &Pump) -> Result<Pending, String> {
    let params = call.tool.forwarded(&leave.prepared.call).map_err(|e| format!("DENIED: {e}"))?;
    let mut entry = session.about(call, Some(&leave.prepared), Event::Decision, "allowed");
    let reason = leave.permit.reasons().first();
    entry.policy_decision = reason.map(|r| decision("allow", &r.rule, &r.reason));
    entry.grant_id = leave.permit.grants().first().cloned();
    session.shared.audit.record(entry).await.map_err(|e| format!("DENIED: {e}"))?;
    session.counts.allowed.fetch_add(1, Ordering::Relaxed);
    session.shared.grants.used(leave.permit.grants());
    Ok(pump.request("tools/call", Some(&params)))
}

/// Waits for the answer and passes it on; then what was shown for this call alone is taken away.
async fn deliver(session: Arc<Session>, call: Call, leave: Leave, pending: Pending, lease: Option<Lease>) {
    let answered = pending.answer().await;
    drop(lease);
    let result = match &answered {
        Answered::Response(Response::Result(result)) if is_error(result) => "error",
        Answered::Response(Response::Result(_)) => "ok",
        Answered::Response(Response::Error(_)) => "refused by the server",
        Answered::Failed(_) => "no answer",
    };
    match answered {
        Answered::Response(response) => session.finish(&call.id, response_line(&call.id, &response)).await,
        Answered::Failed(reason) => session.fail(&call.id, ErrorCode::INTERNAL_ERROR, &reason).await,
    }
    let mut entry = session.about(&call, Some(&leave.prepared), Event::Outcome, "the server answered");
    entry.arguments = None;
    entry.result = Some(result.to_owned());
    entry.duration_ms = Some(millis(call.began));
    session.record(entry).await;
    session.shared.changed();
}

impl Session {
    fn judge(&self, tool: &ToolCall, approved: &[Asked]) -> Judged {
        let table = self.shared.grants.now();
        let grants: Vec<StandingGrant> =
            table.grants.iter().filter(|g| self.may_use(&g.subject)).cloned().collect();
        let law = &self.shared.law;
        let (prepared, verdict) = match tool.prepare(&self.config.name, law, &self.resolver) {
            Err(denial) => (None, Verdict::Deny(denial)),
            Ok(prepared) => {
                let exposed =
                    if self.sandboxed() { prepared.exposes(&law.protected).map(exposes) } else { None };
                let verdict = exposed.map_or_else(
                    || {
                        let usable: Vec<Grant> = grants.iter().map(StandingGrant::for_judging).collect();
                        let context = Context {
                            sandbox: Some(&self.sandbox),
                            sandbox_servers: std::slice::from_ref(&self.config.name),
                            protected: &law.protected,
                            gates: &law.gates,
                            grants: &usable,
                            approved,
                        };
                        judge(&law.policy, &context, &prepared.call)
                    },
                    Verdict::Deny,
                );
                (Some(prepared), verdict)
            }
        };
        Judged { prepared, verdict, grants, version: table.version }
    }

    /// What a permitted call needs that standing grants do not show already.
    fn leave(&self, prepared: Prepared, permit: Permit, grants: &[StandingGrant], version: u64) -> Leave {
        let needs = prepared.needs(&self.sandbox, self.config.file_writes);
        let needs = needs.into_iter().filter(|n| !grants.iter().any(|g| g.shows(n))).collect();
        Leave { prepared, permit, needs, version }
    }

    /// Whether the server sees everything the call needs right now.
    fn shows(&self, leave: &Leave) -> bool {
        let applied = self.server.applied();
        leave.needs.is_empty()
            && applied.grants_version >= leave.version
            && leave.prepared.first_of(&applied.failed).is_none()
    }

    /// Completes when the call needs no question any more, because of an answer to another one.
    async fn settled(&self, tool: &ToolCall) {
        let mut table = self.shared.grants.watch();
        loop {
            if table.changed().await.is_err() {
                return std::future::pending().await;
            }
            if !matches!(self.judge(tool, &[]).verdict, Verdict::Escalate(_)) {
                return;
            }
        }
    }

    async fn grant(
        &self,
        call: &Call,
        offer: &Offer,
        lifetime: Lifetime,
        wanted: &[Wanted],
        question: &str,
    ) -> Result<(), String> {
        let subject = Subject {
            client: self.client.key.clone(),
            client_name: self.client.view.name.clone(),
            server: self.config.name.clone(),
            session: Some(self.id.clone()),
        };
        let provenance = format!("question {question}");
        let when = (lifetime, crate::clock::now_ms());
        let grants = grants_of(offer.reach, wanted, &subject, when, &provenance, crate::clock::random_name)
            .map_err(|e| format!("DENIED: no grant could be made: {e}"))?;
        for grant in &grants {
            let summary = format!("{}, {}", offer.sentence, lifetime.words());
            let mut entry = self.about(call, None, Event::Grant, summary);
            entry.paths = vec![grant.path.as_str().to_owned()];
            entry.grant_id = Some(grant.id.clone());
            entry.question_id = Some(question.to_owned());
            self.shared.audit.record(entry).await.map_err(|e| format!("DENIED: {e}"))?;
        }
        self.shared
            .grants
            .add(grants)
            .await
            .map_err(|e| format!("DENIED: the grant could not be kept: {e}"))?;
        self.shared.changed();
        Ok(())
    }

    async fn answered(
        &self,
        call: &Call,
        prepared: &Prepared,
        question: &str,
        outcome: &Outcome,
        asked: Instant,
    ) -> Result<(), String> {
        let name = refusal::outcome_name(outcome);
        let mut entry =
            self.about(call, Some(prepared), Event::Answer, format!("the question ended: {name}"));
        entry.arguments = None;
        entry.escalation_result = Some(name.to_owned());
        entry.question_id = Some(question.to_owned());
        entry.human_ms = Some(millis(asked));
        self.shared.audit.record(entry).await.map(|_| ()).map_err(|e| format!("DENIED: {e}"))
    }

    /// The policy says no.
    async fn deny(&self, call: &Call, prepared: Option<&Prepared>, denial: &Denial) {
        self.counts.denied.fetch_add(1, Ordering::Relaxed);
        let mut entry = self.about(call, prepared, Event::Decision, "denied");
        entry.policy_decision = Some(decision("deny", &denial.rule, &denial.reason));
        self.record(entry).await;
        self.refuse(call, refusal::denied(denial)).await;
        self.shared.changed();
    }

    /// Answers with a tool result that says why not.
    async fn refuse(&self, call: &Call, reason: String) {
        self.finish(&call.id, result_line(&call.id, &refusal::result(reason))).await;
    }

    fn about(
        &self,
        call: &Call,
        prepared: Option<&Prepared>,
        event: Event,
        summary: impl Into<String>,
    ) -> Entry {
        let mut entry = self.entry(event, summary);
        entry.request_id = Some(call.id.as_json().to_owned());
        entry.tool_name = Some(call.tool.tool.clone());
        entry.paths = prepared.map(Prepared::paths).unwrap_or_default();
        let arguments = prepared.map_or(&call.tool.arguments, |p| p.call.transport_arguments());
        entry.arguments = Some(redacted(arguments));
        entry
    }

    /// For what has happened already and cannot be undone by a failing log.
    async fn record(&self, entry: Entry) {
        if let Err(problem) = self.shared.audit.record(entry).await {
            tracing::error!(%problem, "an event is not on record");
        }
    }
}

fn decision(status: &str, rule: &str, reason: &str) -> PolicyDecision {
    PolicyDecision { status: status.to_owned(), rule: rule.to_owned(), reason: reason.to_owned() }
}

fn exposes(
    (folder, inside): (&ironcurtain_paths::CanonicalPath, &ironcurtain_paths::CanonicalPath),
) -> Denial {
    Denial {
        rule: "structural-protected-path".to_owned(),
        reason: format!(
            "`{folder}` cannot be opened as a whole, because it holds the protected `{inside}`; name a folder or file in it"
        ),
    }
}

/// A verdict other than deny about a call that was never resolved cannot be; if it is, the call is denied.
fn unresolved() -> Denial {
    Denial { rule: "structural-invalid-argument".to_owned(), reason: "the call was not resolved".to_owned() }
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

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
