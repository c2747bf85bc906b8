//! Reopens an expired question for the user. An approval waits for the agent's retry.
//!
//! - INVARIANT: only the dialog or the terminal answers, as for any question, and an approval is recorded before it
//!   can be used.
//! - A late approval allows one call and creates no grant.

use super::missed::{Inquiry, MissedError};
use super::{Broker, Lifetime, Offer, Question, QuestionLimits, QuestionMetrics, QuestionOutcome, Reach};
use ironcurtain_audit::clock::boot_ms;
use ironcurtain_audit::{Audit, AuditError, Event};
use tokio::sync::watch;
use tokio::time::Instant;

/// Notice that the call was already denied.
const OVER: &str = "Nobody answered in time, so this call was denied. If you allow it now, the agent can repeat exactly this \
    call once within 15 minutes.";

/// Context for asking an expired question again.
#[derive(Clone, Copy)]
pub struct LateAsking<'a> {
    /// Audit log.
    pub audit: &'a Audit,
    /// Broker for the questions.
    pub broker: &'a Broker,
    /// Counter that signals a change in anything shown to the user.
    pub changes: &'a watch::Sender<u64>,
    /// Counters of questions and answers.
    pub metrics: &'a dyn QuestionMetrics,
    /// Limits on denials.
    pub limits: QuestionLimits,
}

/// Reason that a question was not shown again, or that its answer did not count.
#[derive(Debug, thiserror::Error)]
pub enum LateError {
    /// The question cannot be shown.
    #[error(transparent)]
    Missed(#[from] MissedError),
    /// The audit log could not be written.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The trusted process is shutting down.
    #[error("IronCurtain is shutting down; start it again")]
    Ending,
}

impl LateAsking<'_> {
    /// Shows the question again and waits for the answer. Returns `true` for an approval that can be used.
    ///
    /// # Errors
    /// Returns a [`LateError`] if nothing was allowed.
    pub async fn ask(&self, id: &str) -> Result<bool, LateError> {
        let missed = self.broker.missed();
        let inquiry = missed.show(id, boot_ms())?;
        let shown = ShownAgain { broker: self.broker, id };
        if let Some(stop) = self.broker.stops().of(&inquiry.question.session, &inquiry.scope) {
            return Err(MissedError::Stopped(stop).into());
        }
        let mut entry = inquiry.entry.clone();
        "an expired question was shown to the user again".clone_into(&mut entry.summary);
        entry.question_id = Some(id.to_owned());
        self.audit.record(entry.clone()).await?;
        self.metrics.asked();
        self.changed();
        let asked = Instant::now();
        let question = again(&inquiry.question);
        let outcome = self.broker.ask(question, &inquiry.scope, missed.expired(id)).await;
        let end = outcome.on_record();
        self.metrics.answered(&end, asked.elapsed());
        let mut answer = entry.follow_up(Event::Answer, format!("the question ended: {end}, after its call"));
        answer.escalation_result = Some(end);
        answer.human_ms = Some(u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX));
        if let QuestionOutcome::Denied { note, reach } = &outcome {
            // A denial takes effect even if it cannot be recorded.
            self.broker.apply_denial(&inquiry, note.clone(), *reach, self.limits);
        }
        self.audit.record(answer).await?;
        let is_allowed = matches!(outcome, QuestionOutcome::Allowed { .. }) && missed.allow(id, boot_ms());
        drop(shown);
        self.changed();
        Ok(is_allowed)
    }

    fn changed(&self) {
        self.changes.send_modify(|n| *n += 1);
    }
}

/// Guard for a reopened question. Dropping it marks the question as open, unless it was allowed or forgotten.
struct ShownAgain<'a> {
    broker: &'a Broker,
    id: &'a str,
}

impl Drop for ShownAgain<'_> {
    fn drop(&mut self) {
        self.broker.missed().reopen(self.id, boot_ms());
    }
}

/// Returns whether an approval can serve a call other than the one asked about.
pub(super) fn can_be_late(inquiry: &Inquiry) -> bool {
    let once = inquiry.question.offers.iter().any(|offer| offer.lifetimes.contains(&Lifetime::Once));
    once && inquiry.question.tool.is_some()
}

/// Returns the question, changed to say that its call is over.
fn again(question: &Question) -> Question {
    let mut again = question.clone();
    again.also.insert(0, OVER.to_owned());
    again.fits_a_batch = false;
    again.offers = vec![Offer {
        reach: Reach::Paths,
        label: "this exact call".to_owned(),
        sentence: format!("{} may repeat exactly this call", question.client.name),
        lifetimes: vec![Lifetime::Once],
    }];
    again
}
