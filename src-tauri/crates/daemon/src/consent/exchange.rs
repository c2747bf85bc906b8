//! Ask, record, grant: the one way from a question to what the person allows.
//!
//! - INVARIANT: a question is on record before the person sees it, its answer before it takes effect, and a grant before
//!   it is given.
//! - Never decides what may be asked or granted: it is handed both.

use super::{Broker, Lifetime, Offer, Principal, Question, QuestionOutcome, grants_of};
use crate::clock::{now_ms, random_name};
use crate::grants::{GrantError, Granted, Grants, StandingGrant, StoreError};
use crate::metrics::Metrics;
use ironcurtain_audit::{Audit, AuditError, Entry, Event};
use std::io;
use tokio::sync::watch;
use tokio::time::Instant;

/// The parts that every exchange uses.
#[derive(Clone, Copy)]
pub struct Exchange<'a> {
    /// On whose behalf.
    pub principal: &'a Principal,
    /// The audit log.
    pub audit: &'a Audit,
    /// The questions.
    pub broker: &'a Broker,
    /// The grants.
    pub grants: &'a Grants,
    /// Moves whenever something that people are shown has changed.
    pub changes: &'a watch::Sender<u64>,
    /// Figures of what happens.
    pub metrics: &'a Metrics,
}

/// The person's yes to a question.
#[derive(Debug)]
pub struct Approval {
    /// The offer that was chosen.
    pub offer: Offer,
    /// The time for which it is allowed.
    pub lifetime: Lifetime,
    /// The question, as it is on record.
    question: Entry,
}

/// Nobody said yes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotApproved {
    /// The person said no, and why.
    #[error("the user denied it and says: {0}")]
    DeniedWithNote(String),
    /// The person said no.
    #[error("the user denied it")]
    Denied,
    /// Nobody can be asked, and why.
    #[error("{0}")]
    Unavailable(String),
    /// The dialog went away.
    #[error("the question was closed without an answer")]
    Closed,
    /// Nobody answered in time.
    #[error("the user did not answer within {seconds} s")]
    TimedOut {
        /// The time that it waited.
        seconds: u64,
    },
}

/// Why nothing is allowed.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// Nobody said yes.
    #[error(transparent)]
    NotApproved(#[from] NotApproved),
    /// The kernel has no random bytes for the name of a question.
    #[error("no question could be made: {0}")]
    NoQuestion(io::Error),
    /// The answer is none of those that were offered.
    #[error("the answer names no offer")]
    NoOffer,
    /// It cannot be put on record.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The kernel has no random bytes for the name of a grant.
    #[error("no grant could be made: {0}")]
    NoGrant(io::Error),
    /// The database does not take the grant.
    #[error("the grant could not be kept: {0}")]
    NotKept(StoreError),
}

impl From<GrantError> for ExchangeError {
    fn from(problem: GrantError) -> Self {
        match problem {
            GrantError::Audit(problem) => Self::Audit(problem),
            GrantError::Store(problem) => Self::NotKept(problem),
        }
    }
}

impl Exchange<'_> {
    /// A name for a question.
    ///
    /// # Errors
    /// [`ExchangeError::NoQuestion`].
    pub fn name(&self) -> Result<String, ExchangeError> {
        random_name().map_err(ExchangeError::NoQuestion)
    }

    /// Puts a question, which `entry` is about, to the person. Nothing is approved where `settled` completes first.
    ///
    /// # Errors
    /// [`ExchangeError`], except for grants.
    pub async fn ask(
        &self,
        question: Question,
        entry: Entry,
        settled: impl Future<Output = ()>,
    ) -> Result<Option<Approval>, ExchangeError> {
        let entry = Entry { question_id: Some(question.id.clone()), ..entry };
        self.audit.record(entry.clone()).await?;
        self.metrics.asked();
        self.changed();
        let (asked, offers) = (Instant::now(), question.offers.clone());
        let seconds = question.deadline.as_secs();
        let outcome = self.broker.ask(question, settled).await;
        self.changed();
        let end = outcome.on_record();
        self.metrics.answered(&end, asked.elapsed());
        let mut answer = entry.follow_up(Event::Answer, format!("the question ended: {end}"));
        answer.escalation_result = Some(end);
        answer.human_ms = Some(u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.audit.record(answer).await?;
        let (offer, lifetime) = match outcome {
            QuestionOutcome::Allowed { offer, lifetime } => (offer, lifetime),
            QuestionOutcome::Settled => return Ok(None),
            QuestionOutcome::Denied(Some(note)) => return Err(NotApproved::DeniedWithNote(note).into()),
            QuestionOutcome::Denied(None) => return Err(NotApproved::Denied.into()),
            QuestionOutcome::Unavailable(why) => return Err(NotApproved::Unavailable(why).into()),
            QuestionOutcome::Closed => return Err(NotApproved::Closed.into()),
            QuestionOutcome::TimedOut => return Err(NotApproved::TimedOut { seconds }.into()),
        };
        let offer = offers.into_iter().nth(offer).ok_or(ExchangeError::NoOffer)?;
        Ok(Some(Approval { offer, lifetime, question: entry }))
    }

    /// Gives what the person approved for longer than once.
    ///
    /// # Errors
    /// [`ExchangeError`]: nothing is granted.
    pub async fn grant(&self, approval: &Approval, what: Vec<Granted>) -> Result<(), ExchangeError> {
        let Approval { offer, lifetime, question } = approval;
        let id = question.question_id.as_deref().unwrap_or_default();
        let (subject, when) = (self.principal.subject(), (*lifetime, now_ms()));
        let grants = grants_of(what, &subject, when, &format!("question {id}"), random_name)
            .map_err(ExchangeError::NoGrant)?;
        let gift = |grant: StandingGrant| {
            let summary = format!("{}, {}", offer.sentence, lifetime.words());
            let mut entry = question.follow_up(Event::Grant, summary);
            entry.arguments.clone_from(&question.arguments);
            entry.paths.clear();
            grant.what.note_in(&mut entry);
            entry.grant_id = Some(grant.id.clone());
            (grant, entry)
        };
        self.grants.give(grants.into_iter().map(gift).collect()).await?;
        self.changed();
        Ok(())
    }

    fn changed(&self) {
        self.changes.send_modify(|n| *n += 1);
    }
}
