//! Shows an expired question again. If the user approves, the agent may repeat the call.
//!
//! - INVARIANT: as for any question, only the dialog or the terminal can answer, and an approval is recorded before it
//!   takes effect.
//! - A late approval allows one call and creates no grant.

use super::expired_questions::{ExpiredQuestionError, Inquiry};
use super::{Broker, Lifetime, Offer, Question, QuestionLimits, QuestionMetrics, QuestionOutcome, Reach};
use ironcurtain_audit::clock::boot_ms;
use ironcurtain_audit::{Audit, AuditError, Event};
use tokio::sync::watch;
use tokio::time::Instant;

/// Explains to the user that the call was already denied.
const EXPIRED_NOTICE: &str = "This question was not answered in time, so the call was denied. If you allow it now, the agent can repeat exactly this \
    call once within 15 minutes.";

/// Services for showing an expired question again.
#[derive(Clone, Copy)]
pub struct ReopenContext<'a> {
    /// Audit log for the question and the answer.
    pub audit: &'a Audit,
    /// Broker that shows the question.
    pub broker: &'a Broker,
    /// Counter that is incremented when anything shown to the user changes.
    pub changes: &'a watch::Sender<u64>,
    /// Counters for questions and answers.
    pub metrics: &'a dyn QuestionMetrics,
    /// Limits that determine how long a denial is remembered.
    pub limits: QuestionLimits,
}

/// Reason a question was not shown again or its answer was discarded.
#[derive(Debug, thiserror::Error)]
pub enum ReopenError {
    /// The question does not exist, is already shown, or is denied by a stop.
    #[error(transparent)]
    Question(#[from] ExpiredQuestionError),
    /// Writing the audit log failed.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The trusted process is shutting down.
    #[error("IronCurtain is shutting down; start it again")]
    Ending,
}

impl ReopenContext<'_> {
    /// Shows the question again and waits for the answer. Returns `true` if the next identical call is now allowed.
    ///
    /// # Errors
    /// Returns a [`ReopenError`] if the question was not shown or could not be recorded.
    pub async fn ask(&self, id: &str) -> Result<bool, ReopenError> {
        let expired = self.broker.expired_questions();
        let inquiry = expired.show(id, boot_ms())?;
        let shown = ReopenedGuard { broker: self.broker, id };
        if let Some(stop) = self.broker.stops().find(&inquiry.question.session, &inquiry.scope) {
            return Err(ExpiredQuestionError::Stopped(stop).into());
        }
        let mut entry = inquiry.entry.clone();
        "an expired question was shown to the user again".clone_into(&mut entry.summary);
        entry.question_id = Some(id.to_owned());
        self.audit.record(entry.clone()).await?;
        self.metrics.asked();
        self.notify_changed();
        let asked = Instant::now();
        let question = reopened_question(&inquiry.question);
        let outcome = self.broker.ask(question, &inquiry.scope, expired.wait_until_forgotten(id)).await;
        let end = outcome.audit_result();
        self.metrics.answered(&end, asked.elapsed());
        let mut answer = entry.follow_up(Event::Answer, format!("the question ended: {end}, after its call"));
        answer.escalation_result = Some(end);
        answer.human_ms = Some(u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX));
        if let QuestionOutcome::Denied { note, reach } = &outcome {
            // The denial is applied before it is recorded so that it takes effect even if the disk is full.
            self.broker.apply_denial(&inquiry, note.clone(), *reach, self.limits);
        }
        self.audit.record(answer).await?;
        let is_allowed = matches!(outcome, QuestionOutcome::Allowed { .. }) && expired.allow(id, boot_ms());
        drop(shown);
        self.notify_changed();
        Ok(is_allowed)
    }

    fn notify_changed(&self) {
        self.changes.send_modify(|n| *n += 1);
    }
}

/// Guard for a question that is shown again. Dropping the guard reopens the question, unless the question was allowed
/// or forgotten.
struct ReopenedGuard<'a> {
    broker: &'a Broker,
    id: &'a str,
}

impl Drop for ReopenedGuard<'_> {
    fn drop(&mut self) {
        self.broker.expired_questions().reopen(self.id, boot_ms());
    }
}

/// Returns `true` if a late approval of the question can allow a repeated call. This requires a tool call that can be
/// allowed once.
pub(super) fn can_approve_late(inquiry: &Inquiry) -> bool {
    let once = inquiry.question.offers.iter().any(|offer| offer.lifetimes.contains(&Lifetime::Once));
    once && inquiry.question.tool.is_some()
}

/// Returns a copy of the question that says that the call was denied and offers only to allow one repeated call.
fn reopened_question(question: &Question) -> Question {
    let mut again = question.clone();
    again.also.insert(0, EXPIRED_NOTICE.to_owned());
    again.fits_a_batch = false;
    again.offers = vec![Offer {
        reach: Reach::Paths,
        label: "this exact call".to_owned(),
        sentence: format!("{} may repeat exactly this call", question.client.name),
        lifetimes: vec![Lifetime::Once],
    }];
    again
}
