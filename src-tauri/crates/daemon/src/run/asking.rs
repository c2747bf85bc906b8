//! Decides about one access: judges it, and asks the user if needed.
//!
//! - An answer applies to the file as it was shown. The access is judged again afterwards, and a change in between leads to a new
//!   question.
//! - A denial holds for the rest of the run, for this access to this path and what is below it.

use super::Run;
use super::judge::{JudgedAccess, operation};
use super::permissions::{JudgedVersions, Permitting};
use crate::judging::{allowed_by, denied_by};
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::{Entry, Event, PolicyDecision, redacted};
use ironcurtain_consent::found_paths::project_around;
use ironcurtain_consent::{
    CallQuestion, DenialScope, DeniedKey, ExchangeError, Grantable, Inquiry, Lifetime, NotApproved,
    QuestionKey, RequestedAccess, SessionDenial, file_state,
};
use ironcurtain_policy::{AllowedBy, Denial, Escalation, FileWrites, PendingApproval, Permit, Verdict};
use ironcurtain_protocol::RunAsk;
use ironcurtain_sandbox::file_access::{AccessAnswer, PermittedAccess};
use std::sync::atomic::Ordering;

/// Maximum number of times one access is judged, which happens whenever a similar question is answered.
const MOST_ROUNDS: usize = 200;

/// Maximum number of questions about one access because the file changed.
const MOST_QUESTIONS: usize = 3;

impl Run {
    /// Decides about an access. If it stays allowed, the view gets the permission before this returns.
    pub(super) async fn decide(&self, wanted: PermittedAccess) -> AccessAnswer {
        let mut why = None;
        let answer = self.decided(&wanted, &mut why).await;
        let allowed = answer != AccessAnswer::Denied;
        if allowed {
            self.notes.allowed(&wanted);
        } else {
            self.notes.denied(&wanted.path, why);
        }
        let counter = if allowed { &self.counts.allowed } else { &self.counts.denied };
        counter.fetch_add(1, Ordering::Relaxed);
        self.services.metrics.decided(if allowed { "allow" } else { "deny" });
        self.services.changed();
        answer
    }

    /// Decides, and sets the reason of a denial that the user did not just choose.
    async fn decided(&self, wanted: &PermittedAccess, why: &mut Option<String>) -> AccessAnswer {
        let (mut approved, mut answers) = (Vec::new(), 0);
        for _ in 0..MOST_ROUNDS {
            let judged = self.judge(wanted, &approved);
            match &judged.verdict {
                Verdict::Allow(permit) => match self.allow(wanted, permit, &judged).await {
                    Some(answer) => return answer,
                    None => continue,
                },
                Verdict::Deny(denial) => {
                    self.record_denial(wanted, denial, &judged).await;
                    *why = Some(denial.reason.to_string());
                    return AccessAnswer::Denied;
                }
                Verdict::Escalate(escalation) => {
                    // The answer was about another state of the file.
                    approved.clear();
                    if answers == MOST_QUESTIONS {
                        return AccessAnswer::Denied;
                    }
                    if self.ask == RunAsk::Deny {
                        let denial = Denial::invalid("the run was started with `--deny`");
                        self.record_denial(wanted, &denial, &judged).await;
                        return AccessAnswer::Denied;
                    }
                    match self.question(wanted, escalation, &judged, |_| true).await {
                        Ok(Some(yes)) => {
                            answers += usize::from(!yes.is_empty());
                            approved = yes;
                        }
                        Ok(None) => {}
                        Err(problem) => {
                            if let ExchangeError::NotApproved(refusal) = problem {
                                *why = Some(refusal)
                                    .filter(|why| *why != NotApproved::Denied)
                                    .map(|why| why.to_string());
                            } else {
                                tracing::error!(%problem, "failed to ask about a file");
                            }
                            return AccessAnswer::Denied;
                        }
                    }
                }
            }
        }
        AccessAnswer::Denied
    }

    /// Records an allowed access, and permits it from now on unless the user allowed it once. Returns `None` if it has to be
    /// judged again.
    async fn allow(
        &self,
        wanted: &PermittedAccess,
        permit: &Permit,
        judged: &JudgedAccess,
    ) -> Option<AccessAnswer> {
        let reason = permit.reason();
        let mut entry = self.entry(wanted, judged, Event::Decision, "allowed");
        entry.policy_decision =
            Some(PolicyDecision::allow(allowed_by(permit.allowed_by()), &reason.rule, &reason.reason));
        entry.policy_hash = Some(judged.snapshot.hash.clone());
        entry.grant_id = permit.grants().first().cloned();
        if let Err(problem) = self.services.audit.record(entry).await {
            tracing::error!(%problem, "failed to record an allowed access, which is denied");
            return Some(AccessAnswer::Denied);
        }
        if !self.services.grants.hold(permit.grants()) {
            return None;
        }
        self.services.grants.used(permit.grants());
        if permit.allowed_by() == AllowedBy::Answer {
            return Some(AccessAnswer::Once);
        }
        let versions = JudgedVersions { grants: judged.grants_version, snapshot: &judged.snapshot };
        match self.permit(wanted.clone(), versions) {
            Permitting::Permitted => Some(AccessAnswer::Permitted),
            Permitting::Outdated => None,
            Permitting::Full => {
                tracing::error!(run = self.id, "the run has used too many files; another one is denied");
                Some(AccessAnswer::Denied)
            }
        }
    }

    /// Asks one question. Returns what the user approved for this access alone, or nothing if it is to be judged again.
    ///
    /// Offers only lifetimes that `lasts` accepts.
    pub(super) async fn question(
        &self,
        wanted: &PermittedAccess,
        escalation: &Escalation,
        judged: &JudgedAccess,
        lasts: impl Fn(&Lifetime) -> bool,
    ) -> Result<Option<Vec<PendingApproval>>, ExchangeError> {
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        self.services.metrics.decided("escalate");
        let exchange = self.services.exchange(&self.principal);
        let JudgedAccess { inspected, snapshot, .. } = judged;
        let requested = inspected.paths.requested(&escalation.values, FileWrites::default());
        // Nothing is mounted for an access.
        let requested: Vec<_> =
            requested.into_iter().map(|asked| RequestedAccess { need: None, ..asked }).collect();
        let grantable = Grantable {
            project: project_around(requested.iter().map(|requested| &requested.path)),
            requested,
            ..Grantable::default()
        };
        let tool = operation(wanted.access).name();
        let scope = DenialScope::of_call(tool, &escalation.values, &grantable.requested, |_| true);
        let mut question = CallQuestion {
            id: exchange.name()?,
            principal: &self.principal,
            tool,
            escalation,
            grantable: &grantable,
            found: &inspected.paths,
            compared: None,
            scope: &scope,
            limits: snapshot.limits(),
            deadline: self.services.config.question_deadline(),
        }
        .build();
        let is_offered = |lifetime: &Lifetime| {
            let is_of_run = matches!(lifetime, Lifetime::Once | Lifetime::Session);
            lasts(lifetime) && (is_of_run || self.ask != RunAsk::Terminal)
        };
        question.offers.iter_mut().for_each(|offer| offer.lifetimes.retain(is_offered));
        question.offers.retain(|offer| !offer.lifetimes.is_empty());
        if question.offers.is_empty() {
            return Err(ExchangeError::NoOffer);
        }
        let mut entry = self.entry(wanted, judged, Event::Question, "the user was asked");
        entry.policy_decision = Some(PolicyDecision::escalate(&escalation.by.rule, &escalation.by.reason));
        entry.policy_hash = Some(snapshot.hash.clone());
        let facts: Vec<String> = inspected.paths.iter().map(|found| file_state(&found.path)).collect();
        let denial = SessionDenial {
            id: question.id.clone(),
            session: self.id.clone(),
            client: question.client.name.clone(),
            server: question.server.clone(),
            scope: scope.clone(),
            words: question.denial.clone(),
            note: None,
            at_ms: now_ms(),
        };
        let inquiry = Inquiry {
            identity: QuestionKey::of(&question, &facts),
            call: DeniedKey::of(&self.principal, tool, &inspected.arguments),
            question,
            entry,
            scope,
        };
        let can_ask = self.ask == RunAsk::Terminal || self.services.broker.can_ask();
        let open = can_ask.then(|| self.notes.waiting(&wanted.path));
        let answer = exchange.ask(inquiry, self.no_question_left(wanted)).await;
        drop(open);
        let denied = |why: &NotApproved| matches!(why, NotApproved::Denied | NotApproved::DeniedWithNote(_));
        if matches!(&answer, Err(ExchangeError::NotApproved(why)) if denied(why)) {
            self.services.broker.stops().deny(denial);
        }
        let Some(approval) = answer? else { return Ok(None) };
        if !self.judge(wanted, &[]).inspected.paths.has_same_kinds(&inspected.paths) {
            return Ok(None);
        }
        if approval.lifetime == Lifetime::Once {
            return Ok(Some(escalation.values.clone()));
        }
        // From now on the grant decides.
        exchange.grant(&approval, grantable.opened_by(approval.offer.reach)).await?;
        Ok(Some(Vec::new()))
    }

    /// Completes when the access no longer needs a question, because of another answer or a new policy.
    async fn no_question_left(&self, wanted: &PermittedAccess) {
        let (mut table, mut snapshots) = (self.services.grants.watch(), self.services.snapshots.clone());
        while matches!(self.judge(wanted, &[]).verdict, Verdict::Escalate(_)) {
            let changed = tokio::select! {
                changed = table.changed() => changed,
                changed = snapshots.changed() => changed,
            };
            if changed.is_err() {
                return std::future::pending().await;
            }
        }
    }

    async fn record_denial(&self, wanted: &PermittedAccess, denial: &Denial, judged: &JudgedAccess) {
        let mut entry = self.entry(wanted, judged, Event::Decision, "denied");
        entry.policy_decision =
            Some(PolicyDecision::deny(denied_by(denial.by), &denial.rule, &denial.reason));
        entry.policy_hash = Some(judged.snapshot.hash.clone());
        if let Err(problem) = self.services.audit.record(entry).await {
            tracing::error!(%problem, "failed to record a denied access");
        }
    }

    fn entry(&self, wanted: &PermittedAccess, judged: &JudgedAccess, event: Event, summary: &str) -> Entry {
        let mut entry = self.principal.entry(event, summary);
        entry.tool_name = Some(operation(wanted.access).name().to_owned());
        entry.paths = vec![wanted.path.clone()];
        entry.arguments = Some(redacted(&judged.inspected.arguments));
        entry
    }
}
