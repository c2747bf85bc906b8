//! Putting a question again that nobody answered in time, at the person's own wish. Its yes waits for the agent's retry.
//!
//! - INVARIANT: only the dialog or the terminal answers, as for any question; a yes is on record before it can be used.
//! - A late yes is for one call, and gives no grant.

use super::QuestionMetrics;
use super::missed::{Inquiry, MissedError};
use super::{Broker, Lifetime, Offer, Question, QuestionLimits, QuestionOutcome, Reach};
use ironcurtain_audit::clock::boot_ms;
use ironcurtain_audit::{Audit, AuditError, Event};
use tokio::sync::watch;
use tokio::time::Instant;

/// The sentence that tells a question about a call that is over from any other.
const OVER: &str = "Nobody answered in time, so this call was denied. A yes lets the agent make the very same call once, if it \
    tries again within 15 minutes.";

/// The parts that a question is put again with.
#[derive(Clone, Copy)]
pub struct LateAsking<'a> {
    /// The audit log.
    pub audit: &'a Audit,
    /// The questions.
    pub broker: &'a Broker,
    /// Moves whenever something that people are shown has changed.
    pub changes: &'a watch::Sender<u64>,
    /// Figures of what happens.
    pub metrics: &'a dyn QuestionMetrics,
    /// The limits of a no.
    pub limits: QuestionLimits,
}

/// Why a question was not put again, or its answer did not count.
#[derive(Debug, thiserror::Error)]
pub enum LateError {
    /// It cannot be put.
    #[error(transparent)]
    Missed(#[from] MissedError),
    /// It cannot be put on record.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The trusted process is ending.
    #[error("IronCurtain is ending; start it anew")]
    Ending,
}

impl LateAsking<'_> {
    /// Puts the question of this id to the person again, and waits for the answer. `true` for a yes that can be used.
    ///
    /// # Errors
    /// [`LateError`]: nothing is allowed.
    pub async fn ask(&self, id: &str) -> Result<bool, LateError> {
        let missed = self.broker.missed();
        let inquiry = missed.show(id, boot_ms())?;
        let shown = ShownAgain { broker: self.broker, id };
        if let Some(stop) = self.broker.stops().of(&inquiry.question.session, &inquiry.scope) {
            return Err(MissedError::Stopped(stop).into());
        }
        let mut entry = inquiry.entry.clone();
        "a question that nobody answered in time was put to the person again".clone_into(&mut entry.summary);
        entry.question_id = Some(id.to_owned());
        self.audit.record(entry.clone()).await?;
        self.metrics.asked();
        self.changed();
        let asked = Instant::now();
        let question = again(&inquiry.question);
        let outcome = self.broker.ask(question, &inquiry.scope, missed.gone(id)).await;
        let end = outcome.on_record();
        self.metrics.answered(&end, asked.elapsed());
        let mut answer = entry.follow_up(Event::Answer, format!("the question ended: {end}, after its call"));
        answer.escalation_result = Some(end);
        answer.human_ms = Some(u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX));
        if let QuestionOutcome::Denied { note, reach } = &outcome {
            // A no takes effect whether it can be put on record or not.
            self.broker.note_no(&inquiry, note.clone(), *reach, self.limits);
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

/// A question that is shown again; dropped, it is open as before unless it was allowed or forgotten.
struct ShownAgain<'a> {
    broker: &'a Broker,
    id: &'a str,
}

impl Drop for ShownAgain<'_> {
    fn drop(&mut self) {
        self.broker.missed().hide(self.id, boot_ms());
    }
}

/// Returns `true` if a yes to this can serve another call than the one that it was asked about.
pub(super) fn can_be_late(inquiry: &Inquiry) -> bool {
    let once = inquiry.question.offers.first().is_some_and(|offer| offer.lifetimes.contains(&Lifetime::Once));
    once && inquiry.question.tool.is_some()
}

/// The question about a call that is over.
fn again(question: &Question) -> Question {
    let mut again = question.clone();
    again.also.insert(0, OVER.to_owned());
    again.fits_a_batch = false;
    again.offers = vec![Offer {
        reach: Reach::Paths,
        label: "the same call, tried again".to_owned(),
        sentence: format!("{} may make this very call when it tries it again", question.client.name),
        lifetimes: vec![Lifetime::Once],
    }];
    again
}
