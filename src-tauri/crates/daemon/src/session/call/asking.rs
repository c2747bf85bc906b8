//! Putting a call to the person.
//!
//! - What the person said holds for the call as it was shown: it is resolved and judged again afterwards, and a change in
//!   between is a new question.

use super::{Call, proceed};
use crate::consent::{CallQuestion, Grantable, Lifetime, Reach};
use crate::judging::InspectedCall;
use crate::policy_snapshot::PolicySnapshot;
use crate::resolve::project_around;
use crate::session::Session;
use crate::session::authorize::Judged;
use crate::session::refusal::CallRefusal;
use ironcurtain_audit::{Event, PolicyDecision};
use ironcurtain_policy::{Escalation, PendingApproval, ToolUse, Verdict};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The number of times that one call may become a new question because what it names changed under the last one.
const MOST_QUESTIONS: usize = 3;

/// A call that a person must decide, as it was looked at, by a policy.
pub(super) struct Escalated {
    pub(super) escalation: Escalation,
    pub(super) inspected: InspectedCall,
    pub(super) snapshot: Arc<PolicySnapshot>,
}

/// Puts the call to the person until there is an answer to what it is at that moment.
pub(super) async fn ask(session: Arc<Session>, call: Call, mut escalated: Escalated) {
    session.counts.asked.fetch_add(1, Ordering::Relaxed);
    session.services.metrics.decided("escalate");
    let mut approved = Vec::new();
    for _ in 0..MOST_QUESTIONS {
        match question(&session, &call, &escalated).await {
            Ok(yes) => approved.extend(yes),
            Err(refusal) => {
                session.note_violation(&call, &escalated.inspected).await;
                return session.refuse(&call, &refusal);
            }
        }
        let mut again = session.judge(&call.tool, &approved).await;
        if !again.inspected.paths.stands_as(&escalated.inspected.paths) {
            // What was said was said about something else.
            approved.clear();
            again = session.judge(&call.tool, &[]).await;
        }
        let Judged { verdict, inspected, by } = again;
        match verdict {
            Verdict::Allow(permit) => {
                let authorization = session.authorize(permit, inspected, &by, approved);
                return proceed(session, call, authorization, None).await;
            }
            Verdict::Escalate(escalation) => {
                escalated = Escalated { escalation, inspected, snapshot: by.snapshot };
            }
            Verdict::Deny(denial) => return session.deny(&call, &inspected, denial, &by.snapshot).await,
        }
    }
    session.refuse(&call, &CallRefusal::KeptChanging);
}

/// One question. What the person said yes to for this call alone; nothing, where a grant speaks from now on or the call is
/// to be judged anew.
async fn question(
    session: &Session,
    call: &Call,
    Escalated { escalation, inspected, snapshot }: &Escalated,
) -> Result<Vec<PendingApproval>, CallRefusal> {
    if let Some(host) = session.out_of_reach(escalation) {
        return Err(session.deny_out_of_reach(call, inspected, host, snapshot).await);
    }
    let exchange = session.services.exchange(&session.principal);
    let requested = inspected.paths.requested(&escalation.values, session.config.file_writes);
    let grantable = Grantable {
        project: project_around(requested.iter().map(|requested| &requested.path)),
        hosts: session.grantable_hosts(escalation),
        tool: ToolUse::of(&escalation.call),
        requested,
    };
    let question = CallQuestion {
        id: exchange.name()?,
        principal: &session.principal,
        tool: &call.tool.tool,
        escalation,
        grantable: &grantable,
        found: &inspected.paths,
        limits: snapshot.limits(),
        deadline: session.services.config.question_deadline(),
    }
    .build();
    let mut entry = session.about(call, inspected, Event::Question, "a question was put to the person");
    entry.policy_decision = Some(PolicyDecision::escalate(&escalation.by.rule, &escalation.by.reason));
    entry.policy_hash = Some(snapshot.hash.clone());
    let answer = {
        let _told = session.asking(&call.ticket.id);
        tokio::select! {
            answer = exchange.ask(question, entry, session.no_question_left(&call.tool)) => answer?,
            never = session.tell_progress(call.began, call.tool.progress_token()) => match never {},
        }
    };
    let Some(approval) = answer else { return Ok(Vec::new()) };
    let now = session.judge(&call.tool, &[]).await;
    // A call that is denied by now, or is about something else, is given nothing.
    if matches!(now.verdict, Verdict::Deny(_)) || !now.inspected.paths.stands_as(&inspected.paths) {
        return Ok(Vec::new());
    }
    if approval.lifetime == Lifetime::Once {
        return Ok(escalation.values.to_vec());
    }
    // From now on the grant speaks, for this call too: taken back, it allows nothing any more.
    exchange.grant(&approval, grantable.opened_by(approval.offer.reach)).await?;
    // That a host may be reached is no answer to a rule that asks about the call itself.
    Ok(if approval.offer.reach == Reach::Host { escalation.values.to_vec() } else { Vec::new() })
}
