//! Asks the user to approve a call.
//!
//! - An answer applies to the call as it was shown. The call is then resolved and judged again. If anything has
//!   changed, the user is asked again.
//! - Other calls with an identical question are judged again too, but the answer does not apply to them.

use super::{Call, proceed};
use crate::session::Session;
use crate::session::authorize::Judged;
use crate::session::refusal::CallRefusal;
use ironcurtain_audit::{DecidedBy, Event, PolicyDecision};
use ironcurtain_config::PolicySnapshot;
use ironcurtain_consent::found_paths::{FoundPaths, project_around};
use ironcurtain_consent::{
    CallQuestion, DenialScope, DeniedKey, FileComparison, Grantable, Inquiry, Lifetime, QuestionKey, Reach,
    RequestedAccess, TooLongToShow, file_state,
};
use ironcurtain_grants::StandingGrant;
use ironcurtain_judging::InspectedCall;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Escalation, GrantKind, PendingApproval, ToolUse, Verdict};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum number of questions per call. The user is asked again only if files that the call names have changed.
const MAX_QUESTIONS: usize = 3;

/// Maximum number of times that a call is judged again, which happens whenever a similar question is answered.
const MAX_ROUNDS: usize = 200;

/// A call that needs approval, and the policy that requires the approval.
pub(super) struct Escalated {
    pub(super) escalation: Escalation,
    pub(super) inspected: InspectedCall,
    pub(super) snapshot: Arc<PolicySnapshot>,
}

/// Result of one question.
enum Answered {
    /// The user approved these values for this call only. Empty if a new grant allows the call, or if the call must be
    /// judged again.
    Approved(Vec<PendingApproval>),
    /// The question was closed without an answer because it is no longer needed. The call is judged again.
    JudgeAgain,
}

/// Asks the user until an answer applies to the current state of the call, then forwards the call.
pub(super) async fn ask(session: Arc<Session>, call: Call, mut escalated: Escalated) {
    session.counts.asked.fetch_add(1, Ordering::Relaxed);
    session.services.metrics.count_decision("escalate");
    let (mut approved, mut answers) = (Vec::new(), 0);
    for _ in 0..MAX_ROUNDS {
        if answers == MAX_QUESTIONS {
            break;
        }
        match ask_once(&session, &call, &escalated).await {
            Ok(Answered::Approved(values)) => {
                approved.extend(values);
                answers += 1;
            }
            Ok(Answered::JudgeAgain) => {}
            Err(refusal) => {
                session.record_violation(&call, &escalated.inspected).await;
                return session.refuse(&call, &refusal);
            }
        }
        let mut again = session.judge(&call.tool, &approved).await;
        if !again.inspected.paths.has_same_kinds(&escalated.inspected.paths) {
            // The answer was about a different state, so it does not apply.
            approved.clear();
            again = session.judge(&call.tool, &[]).await;
        }
        let Judged { verdict, inspected, basis } = again;
        match verdict {
            Verdict::Allow(permit) => {
                let authorization = session.authorize(permit, inspected, &basis, approved);
                return proceed(session, call, authorization, None).await;
            }
            Verdict::Escalate(escalation) => {
                escalated = Escalated { escalation, inspected, snapshot: basis.snapshot };
            }
            Verdict::Deny(denial) => return session.deny(&call, &inspected, denial, &basis.snapshot).await,
        }
    }
    session.refuse(&call, &CallRefusal::KeptChanging);
}

/// Asks the user once.
async fn ask_once(
    session: &Session,
    call: &Call,
    Escalated { escalation, inspected, snapshot }: &Escalated,
) -> Result<Answered, CallRefusal> {
    if let Some(host) = session.blocked_host(escalation) {
        let refusal = CallRefusal::NoNetwork { server: session.config.name.clone(), host };
        let reason = (DecidedBy::Network, "no-network");
        return Err(session.deny_without_asking(call, inspected, (reason, refusal), snapshot).await);
    }
    if let Err(too_long) = TooLongToShow::check(escalation.call.transport_arguments()) {
        let reason = (DecidedBy::TooManyQuestions, "not-shown");
        return Err(session.deny_without_asking(call, inspected, (reason, too_long.into()), snapshot).await);
    }
    let exchange = session.services.exchange(&session.principal);
    let requested = inspected.paths.requested(&escalation.values, session.config.file_writes);
    if let Some(unusable) = session.unreachable_path(&requested) {
        let reason = (DecidedBy::OutOfReach, "out-of-reach");
        return Err(session.deny_without_asking(call, inspected, (reason, unusable.into()), snapshot).await);
    }
    let grantable = Grantable {
        project: project_around(requested.iter().map(|requested| &requested.path)),
        readable_folder: session.readable_folder_around(&requested),
        hosts: session.grantable_hosts(escalation),
        tool: ToolUse::from_call(&escalation.call),
        only_reads: escalation.call.only_reads(),
        cache: None,
        mounts_folders: false,
        requested,
    };
    let limits = snapshot.limits();
    let too_wide = |folder: &CanonicalPath| !limits.may_be_granted(folder);
    let tool = &call.tool.tool;
    let scope = DenialScope::of_call(tool, &escalation.values, &grantable.requested, too_wide);
    let compared = FileComparison::of(&escalation.call, &inspected.paths).await;
    let question = CallQuestion {
        id: exchange.new_question_id()?,
        principal: &session.principal,
        tool,
        escalation,
        grantable: &grantable,
        found: &inspected.paths,
        compared: compared.as_ref(),
        scope: &scope,
        limits,
        deadline: session.services.config.question_deadline(),
    }
    .build();
    let mut entry = session.call_entry(call, inspected, Event::Question, "the user was asked");
    entry.policy_decision = Some(PolicyDecision::escalate(&escalation.by.rule, &escalation.by.reason));
    entry.policy_hash = Some(snapshot.hash.clone());
    let inquiry = Inquiry {
        identity: QuestionKey::of(&question, &distinguishing_details(call, escalation, &inspected.paths)),
        call: DeniedKey::of(&session.principal, tool, escalation.call.transport_arguments()),
        question,
        entry,
        scope,
    };
    let answer = {
        let asking = session.notify_asking(&call.ticket.id);
        let answer = tokio::select! {
            answer = exchange.ask(inquiry, session.wait_until_decided(&call.tool)) => answer,
            never = session.send_progress(call.began, call.tool.progress_token()) => match never {},
        };
        asking.notify_settled().await;
        answer?
    };
    let Some(approval) = answer else { return Ok(Answered::JudgeAgain) };
    let now = session.judge(&call.tool, &[]).await;
    // If the call is now denied or its files have changed, the approval is discarded and the call is judged again.
    if matches!(now.verdict, Verdict::Deny(_)) || !now.inspected.paths.has_same_kinds(&inspected.paths) {
        return Ok(Answered::Approved(Vec::new()));
    }
    if approval.lifetime == Lifetime::Once {
        // The file has changed since the question showed its diff, so the user is asked again.
        if compared.is_some_and(|compared| !compared.is_current()) {
            return Ok(Answered::Approved(Vec::new()));
        }
        return Ok(Answered::Approved(escalation.values.clone()));
    }
    // The approval is stored as a grant. That grant also decides on this call, and allows nothing once it is revoked.
    exchange.grant(&approval, grantable.permissions_for(approval.offer.reach)).await?;
    // A grant for a host does not satisfy a rule that requires approval for the call itself.
    let approved_values =
        if approval.offer.reach == Reach::Host { escalation.values.clone() } else { Vec::new() };
    Ok(Answered::Approved(approved_values))
}

impl Session {
    /// Returns the innermost folder that contains all requested paths and that a grant makes readable.
    fn readable_folder_around(&self, requested: &[RequestedAccess]) -> Option<CanonicalPath> {
        let table = self.services.grants.now();
        let usable = table.grants.iter().filter(|grant| self.may_use(&grant.subject));
        let opened = usable.filter_map(StandingGrant::files).filter(|files| {
            let holds = || requested.iter().all(|requested| files.path.contains(&requested.path));
            files.kind == GrantKind::Tree && files.access.read && !requested.is_empty() && holds()
        });
        opened.map(|files| &files.path).max_by_key(|path| path.components().count()).cloned()
    }
}

/// Returns the details that distinguish calls with the same question text: exact arguments, task options, values to
/// approve, and the files at the paths.
fn distinguishing_details(call: &Call, escalation: &Escalation, paths: &FoundPaths) -> Vec<String> {
    let mut details = vec![
        serde_json::to_string(escalation.call.transport_arguments()).unwrap_or_default(),
        format!("{:?}", escalation.values),
        format!("{paths:?}"),
        format!("{:?}", call.tool.task()),
    ];
    details.extend(paths.iter().map(|found| file_state(&found.path)));
    details
}
