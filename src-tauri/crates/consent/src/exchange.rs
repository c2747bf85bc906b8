//! Asks the user, records the question and the answer, and creates grants. No other code turns answers into grants.
//!
//! - Before asking, checks in this order: stops, late approvals, identical pending questions, recent denials and the
//!   question limit. No other code performs these checks.
//! - INVARIANT: a question is recorded before the user sees it, an approval before it takes effect, and a grant before
//!   it is created.
//! - The caller chooses the question and the grants. This module asks the question and stores the grants.

use super::expired_questions::Inquiry;
use super::identical::{AskGuard, QuestionClosed, QuestionRole};
use super::offers::{limit, max_lifetime_sentence};
use super::rate::{QuestionSource, TooMany};
use super::reopen::can_approve_late;
use super::{
    Broker, DenialReach, Lifetime, NotApproved, Offer, Principal, Question, QuestionLimits, QuestionMetrics,
    QuestionOutcome, grants_of,
};
use ironcurtain_audit::clock::{boot_ms, now_ms};
use ironcurtain_audit::{Audit, AuditError, Entry, EscalationResult, Event, PolicyDecision};
use ironcurtain_grants::{GrantError, Granted, Grants, StandingGrant, StoreError};
use ironcurtain_paths::random_name;
use ironcurtain_visible as visible;
use std::io;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Services and limits that each exchange uses.
#[derive(Clone, Copy)]
pub struct Exchange<'a> {
    /// Client, server and session of the call.
    pub principal: &'a Principal,
    /// Audit log for questions, answers and grants.
    pub audit: &'a Audit,
    /// Broker that shows the questions.
    pub broker: &'a Broker,
    /// Store for the granted permissions.
    pub grants: &'a Grants,
    /// Counter that is incremented when anything shown to the user changes.
    pub changes: &'a watch::Sender<u64>,
    /// Counters for questions and answers.
    pub metrics: &'a dyn QuestionMetrics,
    /// Limits on questions.
    pub limits: QuestionLimits,
}

/// The user's approval of a question.
#[derive(Debug)]
pub struct Approval {
    /// Chosen offer.
    pub offer: Offer,
    /// Chosen lifetime.
    pub lifetime: Lifetime,
    /// Audit entry of the question. The grants' audit entries refer to it.
    question: Entry,
    /// Keeps identical questions waiting until the grants exist.
    _guard: Option<AskGuard>,
}

/// Reason a call was not approved or its grants were not created.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The user denied the call or did not answer.
    #[error(transparent)]
    NotApproved(#[from] NotApproved),
    /// The system provided no random bytes for the question id.
    #[error("failed to create a question id: {0}")]
    QuestionId(io::Error),
    /// The question has no offer that the user can choose, or the answer names no offer.
    #[error("no offer applies")]
    NoOffer,
    /// Writing the audit log failed.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The system provided no random bytes for the grant id.
    #[error("failed to create a grant id: {0}")]
    GrantId(io::Error),
    /// Storing the grant in the database failed.
    #[error("failed to store the grant: {0}")]
    Store(StoreError),
}

impl From<GrantError> for ExchangeError {
    fn from(problem: GrantError) -> Self {
        match problem {
            GrantError::Audit(problem) => Self::Audit(problem),
            GrantError::Store(problem) => Self::Store(problem),
        }
    }
}

impl Exchange<'_> {
    /// Creates a random question id.
    ///
    /// # Errors
    /// Returns [`ExchangeError::QuestionId`] if the system provides no random bytes.
    pub fn new_question_id(&self) -> Result<String, ExchangeError> {
        random_name().map_err(ExchangeError::QuestionId)
    }

    /// Asks the user about a call. Returns `None` if `settled` completes first, or if an identical question is closed
    /// without a denial. The caller must then judge the call again.
    ///
    /// # Errors
    /// Returns an [`ExchangeError`] if the call was not approved or the question could not be recorded.
    pub async fn ask(
        &self,
        mut inquiry: Inquiry,
        settled: impl Future<Output = ()>,
    ) -> Result<Option<Approval>, ExchangeError> {
        self.limit(&mut inquiry.question)?;
        if let Some(stop) = self.broker.stops().find(&inquiry.question.session, &inquiry.scope) {
            return Err(self.record_unasked(&inquiry, NotApproved::Stopped(stop)).await);
        }
        if let Some(late) = self.broker.expired_questions().take_approval(inquiry.identity, boot_ms()) {
            return self.use_late_approval(inquiry, late.question.id).await.map(Some);
        }
        match self.broker.identical.register(inquiry.identity, &inquiry.question.id) {
            QuestionRole::Waits { question, closed } => {
                self.wait_for(&inquiry, question, closed, settled).await
            }
            QuestionRole::Asks(first) => match self.ask_unless_limited(inquiry, settled).await {
                Ok(approval) => Ok(approval.map(|approval| Approval { _guard: Some(first), ..approval })),
                Err(ExchangeError::NotApproved(why)) => {
                    first.deny_waiting(&why);
                    Err(why.into())
                }
                Err(problem) => Err(problem),
            },
        }
    }

    /// Removes offers that the user cannot grant to this principal.
    fn limit(&self, question: &mut Question) -> Result<(), ExchangeError> {
        let max = self.grants.max_lifetime();
        limit(&mut question.offers, self.principal, max);
        question.also.extend(max.and_then(|max| max_lifetime_sentence(&question.offers, max)));
        if question.offers.is_empty() { Err(ExchangeError::NoOffer) } else { Ok(()) }
    }

    /// Asks the user, unless a recent denial or the question limit denies the call.
    async fn ask_unless_limited(
        &self,
        inquiry: Inquiry,
        settled: impl Future<Output = ()>,
    ) -> Result<Option<Approval>, ExchangeError> {
        let (asked, client) = (Instant::now(), &self.principal.client);
        if let Some(recent) = self.broker.denied.find(inquiry.call, asked) {
            let why =
                NotApproved::StillDenied { note: recent.note, seconds: whole_seconds(recent.remaining) };
            return Err(self.record_unasked(&inquiry, why).await);
        }
        self.count(&inquiry, asked).await?;
        self.broker.expired_questions().forget_identical(inquiry.identity);
        let (offers, seconds) = (inquiry.question.offers.clone(), inquiry.question.deadline.as_secs());
        let denied =
            |note: Option<String>, reach| self.broker.apply_denial(&inquiry, note, reach, self.limits);
        let (outcome, entry) = self.show_and_record(&inquiry, settled, || {}, denied).await?;
        let (offer, lifetime) = match outcome {
            QuestionOutcome::Allowed { offer, lifetime } => (offer, lifetime),
            QuestionOutcome::Settled => {
                self.broker.rate.uncount(&client.key, asked);
                return Ok(None);
            }
            QuestionOutcome::Denied { note: Some(note), .. } => {
                return Err(NotApproved::DeniedWithNote(note).into());
            }
            QuestionOutcome::Denied { note: None, .. } => return Err(NotApproved::Denied.into()),
            QuestionOutcome::Stopped(stop) => return Err(NotApproved::Stopped(stop).into()),
            QuestionOutcome::Unavailable(why) => return Err(NotApproved::Unavailable(why).into()),
            QuestionOutcome::Closed => return Err(NotApproved::Closed.into()),
            QuestionOutcome::TimedOut => {
                if can_approve_late(&inquiry) {
                    self.broker.expired_questions().add(inquiry, boot_ms());
                    self.notify_changed();
                }
                return Err(NotApproved::TimedOut { seconds }.into());
            }
        };
        self.broker.denied.forget(inquiry.call);
        let offer = offers.into_iter().nth(offer).ok_or(ExchangeError::NoOffer)?;
        Ok(Some(Approval { offer, lifetime, question: entry, _guard: None }))
    }

    /// Asks the user a question from a remote machine. Applies only this computer's stops, question limits and audit
    /// log. The remote machine applies denials and creates grants itself. Calls `on_activity` whenever the user is active
    /// in the dialog.
    ///
    /// # Errors
    /// Returns an [`ExchangeError`] if the question was not shown or could not be recorded.
    pub async fn ask_remote(
        &self,
        inquiry: &Inquiry,
        settled: impl Future<Output = ()>,
        on_activity: impl Fn(),
    ) -> Result<QuestionOutcome, ExchangeError> {
        if let Some(stop) = self.broker.stops().find(&inquiry.question.session, &inquiry.scope) {
            return Err(self.record_unasked(inquiry, NotApproved::Stopped(stop)).await);
        }
        self.count(inquiry, Instant::now()).await?;
        Ok(self.show_and_record(inquiry, settled, on_activity, |_, _| {}).await?.0)
    }

    /// Counts the question towards the limits. Denies the call if a limit is exceeded.
    async fn count(&self, inquiry: &Inquiry, asked: Instant) -> Result<(), ExchangeError> {
        let client = &self.principal.client;
        let asker = QuestionSource {
            client: &client.key,
            session: &self.principal.session,
            is_for_call: inquiry.question.tool.is_some(),
            is_in_batch: self.broker.can_join_batch(&inquiry.question),
        };
        let counted = self.broker.rate.count(asker, asked, self.limits.per_minute);
        if let Err(TooMany { limit, wait, is_first }) = counted {
            let seconds = whole_seconds(wait);
            if is_first {
                let name = visible::line(&client.view.name);
                self.broker.notify(&format!(
                    "{name} has asked you {limit} questions within a minute. Its further questions are denied for {seconds} s."
                ));
            }
            return Err(self.record_unasked(inquiry, NotApproved::TooMany { limit, seconds }).await);
        }
        Ok(())
    }

    /// Records and shows the question, then records the answer. Calls `denied` if the user denies the call.
    async fn show_and_record(
        &self,
        inquiry: &Inquiry,
        settled: impl Future<Output = ()>,
        on_activity: impl Fn(),
        on_denied: impl FnOnce(Option<String>, DenialReach),
    ) -> Result<(QuestionOutcome, Entry), ExchangeError> {
        let asked = Instant::now();
        let question = inquiry.question.clone();
        let entry = Entry { question_id: Some(question.id.clone()), ..inquiry.entry.clone() };
        self.audit.record(entry.clone()).await?;
        self.metrics.asked();
        self.notify_changed();
        let (outcome, is_on_terminal) =
            self.broker.ask_with_location(question, &inquiry.scope, settled, on_activity).await;
        self.notify_changed();
        let end = outcome.audit_result();
        self.metrics.answered(&end, asked.elapsed());
        let mut answer = entry.follow_up(Event::Answer, format!("the question ended: {end}"));
        if is_on_terminal {
            answer.summary.push_str(", answered on the terminal of the run");
        }
        answer.escalation_result = Some(end);
        answer.human_ms = Some(u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX));
        if let QuestionOutcome::Denied { note, reach } = &outcome {
            answer.summary.push_str(&reach.audit_clause(note.as_deref()));
            // A denial takes effect even if it cannot be recorded.
            on_denied(note.clone(), *reach);
        }
        self.audit.record(answer).await?;
        Ok((outcome, entry))
    }

    /// Waits until an identical question is closed. If the user denied it, denies this call too. Otherwise, the
    /// caller must judge this call again.
    async fn wait_for(
        &self,
        inquiry: &Inquiry,
        question: String,
        mut closed: QuestionClosed,
        settled: impl Future<Output = ()>,
    ) -> Result<Option<Approval>, ExchangeError> {
        let _waits = match self.broker.register_waiting(&inquiry.question) {
            Ok(waits) => waits,
            Err(why) => {
                return Err(self.record_unasked(inquiry, NotApproved::Unavailable(why.to_string())).await);
            }
        };
        let mut entry = Entry { question_id: Some(question), ..inquiry.entry.clone() };
        "it waits for the answer to the same question".clone_into(&mut entry.summary);
        self.audit.record(entry.clone()).await?;
        self.metrics.merged();
        let refusal = tokio::select! {
            refusal = closed.wait_for_denial() => refusal,
            () = settled => None,
        };
        let end = refusal.as_ref().map_or(EscalationResult::Settled, NotApproved::audit_result);
        let mut answer = entry.follow_up(Event::Answer, format!("the question ended: {end}"));
        answer.escalation_result = Some(end);
        self.audit.record(answer).await?;
        refusal.map_or(Ok(None), |why| Err(why.into()))
    }

    /// Records that this call uses a late approval, and returns the approval.
    async fn use_late_approval(&self, inquiry: Inquiry, id: String) -> Result<Approval, ExchangeError> {
        let entry = Entry { question_id: Some(id), ..inquiry.entry };
        let mut answer =
            entry.follow_up(Event::Answer, "a late approval of this question was used by an identical call");
        answer.escalation_result = Some(EscalationResult::Approved);
        self.audit.record(answer).await?;
        self.notify_changed();
        let offer = inquiry.question.offers.into_iter().next().ok_or(ExchangeError::NoOffer)?;
        Ok(Approval { offer, lifetime: Lifetime::Once, question: entry, _guard: None })
    }

    /// Records that the call was denied without asking the user, and returns the error.
    async fn record_unasked(&self, inquiry: &Inquiry, why: NotApproved) -> ExchangeError {
        let (by, rule) = why.decided_by();
        let mut entry = inquiry.entry.clone();
        entry.event = Event::Decision;
        "denied".clone_into(&mut entry.summary);
        entry.policy_decision = Some(PolicyDecision::deny(by, rule, &why.to_string()));
        self.metrics.unasked(rule);
        let recorded = self.audit.record(entry).await;
        self.notify_changed();
        match recorded {
            Ok(_) => why.into(),
            Err(problem) => problem.into(),
        }
    }

    /// Creates an approval's grants. Does nothing if the approval is for one call only.
    ///
    /// # Errors
    /// Returns an [`ExchangeError`] if no grant was created.
    pub async fn grant(&self, approval: &Approval, what: Vec<Granted>) -> Result<(), ExchangeError> {
        let Approval { offer, lifetime, question, .. } = approval;
        let id = question.question_id.as_deref().unwrap_or_default();
        let (subject, when) = (self.principal.subject(), (*lifetime, now_ms()));
        let grants = grants_of(what, &subject, when, &format!("question {id}"), random_name)
            .map_err(ExchangeError::GrantId)?;
        let with_entry = |grant: StandingGrant| {
            let summary = format!("{}, {}", offer.sentence, lifetime.label());
            let mut entry = question.follow_up(Event::Grant, summary);
            entry.arguments.clone_from(&question.arguments);
            entry.paths.clear();
            grant.what.add_to_entry(&mut entry);
            entry.grant_id = Some(grant.id.clone());
            (grant, entry)
        };
        self.grants.create(grants.into_iter().map(with_entry).collect()).await?;
        self.notify_changed();
        Ok(())
    }

    fn notify_changed(&self) {
        self.changes.send_modify(|n| *n += 1);
    }
}

/// Rounds a duration up to whole seconds.
fn whole_seconds(left: Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}
