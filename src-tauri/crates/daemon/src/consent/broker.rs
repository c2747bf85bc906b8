//! Puts questions to the person and keeps their deadlines.
//!
//! - The future of [`Broker::ask`] is the question: dropping it takes the question away.
//! - One that cannot be shown ([`WaitingQuestions`]) is denied at once, with the reason.
//! - Only an answer that names an offer and one of its lifetimes allows.

use super::showable::WaitingQuestions;
use super::{Answer, Consent, Lifetime, Question, Slot, Withdrawn};
use ironcurtain_audit::EscalationResult;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// However long a person works in a dialog, it ends then.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionOutcome {
    /// The person allowed it.
    Allowed {
        /// Index into the question's offers.
        offer: usize,
        /// The time for which it is allowed.
        lifetime: Lifetime,
    },
    /// The person denied it, perhaps with a note for the agent.
    Denied(Option<String>),
    /// Nobody could be asked, and why.
    Unavailable(String),
    /// The dialog went away without an answer.
    Closed,
    /// Nobody answered in time.
    TimedOut,
    /// Something else settled it; the call is to be judged again.
    Settled,
}

impl QuestionOutcome {
    /// The end of the question, as it is on record.
    #[must_use]
    pub fn on_record(&self) -> EscalationResult {
        match self {
            Self::Allowed { .. } => EscalationResult::Approved,
            Self::Denied(_) => EscalationResult::Denied,
            Self::Unavailable(_) => EscalationResult::Unavailable,
            Self::Closed => EscalationResult::Closed,
            Self::TimedOut => EscalationResult::TimedOut,
            Self::Settled => EscalationResult::Settled,
        }
    }
}

/// The one place questions go through.
#[derive(Clone)]
pub struct Broker {
    consent: Arc<dyn Consent>,
    open: watch::Sender<usize>,
    by_session: Arc<WaitingQuestions>,
}

impl Broker {
    /// A broker that asks through `consent`.
    #[must_use]
    pub fn new(consent: Arc<dyn Consent>) -> Self {
        Self { consent, open: watch::Sender::new(0), by_session: Arc::default() }
    }

    /// Returns `false` if nobody can be asked here, ever.
    #[must_use]
    pub fn reaches_person(&self) -> bool {
        self.consent.reaches_person()
    }

    /// The number of questions that wait for the person.
    #[must_use]
    pub fn open(&self) -> watch::Receiver<usize> {
        self.open.subscribe()
    }

    /// Asks, until there is an answer, the deadline passes or `settled` completes.
    pub async fn ask(&self, question: Question, settled: impl Future<Output = ()>) -> QuestionOutcome {
        if let Err(why) = self.by_session.enter(&question) {
            return QuestionOutcome::Unavailable(why.to_string());
        }
        let (answer, answered) = oneshot::channel();
        let (working, mut works) = mpsc::channel(1);
        let deadline = question.deadline;
        let mut shown = Shown::new(self, &question);
        let offers = question.offers.clone();
        self.consent.ask(question, Slot { answer, working });
        let mut ends = Instant::now() + deadline;
        let last = Instant::now() + LONGEST;
        tokio::pin!(answered, settled);
        let outcome = loop {
            tokio::select! {
                biased;
                answer = &mut answered => {
                    shown.why = None;
                    break answer.map_or(QuestionOutcome::Closed, |answer| understood(answer, &offers));
                }
                () = &mut settled => {
                    shown.why = Some(Withdrawn::Settled);
                    break QuestionOutcome::Settled;
                }
                Some(()) = works.recv() => ends = (Instant::now() + deadline).min(last),
                () = tokio::time::sleep_until(ends) => {
                    shown.why = Some(Withdrawn::Deadline);
                    break QuestionOutcome::TimedOut;
                }
            }
        };
        drop(shown);
        outcome
    }
}

/// A question on the screen; its drop takes it away.
struct Shown<'a> {
    broker: &'a Broker,
    id: String,
    session: String,
    /// Why it is to be taken away; nothing when its asker already did.
    why: Option<Withdrawn>,
}

impl<'a> Shown<'a> {
    fn new(broker: &'a Broker, question: &Question) -> Self {
        broker.open.send_modify(|n| *n += 1);
        let (id, session) = (question.id.clone(), question.session.clone());
        Self { broker, id, session, why: Some(Withdrawn::Cancelled) }
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.broker.open.send_modify(|n| *n = n.saturating_sub(1));
        self.broker.by_session.leave(&self.session);
        if let Some(why) = self.why {
            self.broker.consent.withdraw(&self.id, why);
        }
    }
}

fn understood(answer: Answer, offers: &[super::Offer]) -> QuestionOutcome {
    match answer {
        Answer::Deny { note } => QuestionOutcome::Denied(note),
        Answer::Unavailable { why } => QuestionOutcome::Unavailable(why),
        Answer::Allow { offer, lifetime } => {
            let offered = offers.get(offer).is_some_and(|o| o.lifetimes.contains(&lifetime));
            if offered { QuestionOutcome::Allowed { offer, lifetime } } else { QuestionOutcome::Closed }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::question;
    use super::*;
    use std::sync::Mutex;

    /// Keeps the slots, so that a test answers when it likes.
    #[derive(Default)]
    struct Kept {
        slots: Mutex<Vec<Slot>>,
        withdrawn: Mutex<Vec<(String, Withdrawn)>>,
    }

    impl Consent for Kept {
        fn ask(&self, _: Question, slot: Slot) {
            self.slots.lock().unwrap().push(slot);
        }
        fn withdraw(&self, question: &str, why: Withdrawn) {
            self.withdrawn.lock().unwrap().push((question.into(), why));
        }
    }

    async fn asked(with: impl FnOnce(Slot) + Send + 'static) -> (QuestionOutcome, Vec<(String, Withdrawn)>) {
        let kept = Arc::new(Kept::default());
        let broker = Broker::new(kept.clone());
        let ask = broker.ask(question("q"), std::future::pending());
        let answer = async {
            tokio::task::yield_now().await;
            assert_eq!(*broker.open().borrow(), 1);
            with(kept.slots.lock().unwrap().pop().unwrap());
        };
        let (outcome, ()) = tokio::join!(ask, answer);
        assert_eq!(*broker.open().borrow(), 0);
        let withdrawn = kept.withdrawn.lock().unwrap().clone();
        (outcome, withdrawn)
    }

    #[tokio::test(start_paused = true)]
    async fn only_an_offered_answer_allows() {
        let allow = |offer, lifetime| asked(move |slot| slot.answer(Answer::Allow { offer, lifetime }));
        let allowed = QuestionOutcome::Allowed { offer: 0, lifetime: Lifetime::Once };
        assert_eq!(allow(0, Lifetime::Once).await, (allowed, vec![]));
        assert_eq!(allow(0, Lifetime::Always).await.0, QuestionOutcome::Closed);
        assert_eq!(allow(7, Lifetime::Once).await.0, QuestionOutcome::Closed);
        assert_eq!(asked(drop).await, (QuestionOutcome::Closed, vec![]));
        let denied = asked(|slot| slot.answer(Answer::Deny { note: Some("ask me tomorrow".into()) })).await;
        assert_eq!(denied.0, QuestionOutcome::Denied(Some("ask me tomorrow".into())));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_answers_and_it_is_taken_away() {
        let kept = Arc::new(Kept::default());
        let began = Instant::now();
        let outcome = Broker::new(kept.clone()).ask(question("q"), std::future::pending()).await;
        assert_eq!((outcome, began.elapsed()), (QuestionOutcome::TimedOut, Duration::from_secs(45)));
        assert_eq!(*kept.withdrawn.lock().unwrap(), [("q".to_owned(), Withdrawn::Deadline)]);
    }

    #[tokio::test(start_paused = true)]
    async fn working_in_the_dialog_starts_the_deadline_anew_up_to_a_bound() {
        let kept = Arc::new(Kept::default());
        let broker = Broker::new(kept.clone());
        let began = Instant::now();
        let work = async {
            loop {
                tokio::time::sleep(Duration::from_secs(20)).await;
                kept.slots.lock().unwrap()[0].working();
            }
        };
        tokio::select! {
            outcome = broker.ask(question("q"), std::future::pending()) => assert_eq!(outcome, QuestionOutcome::TimedOut),
            () = work => unreachable!(),
        }
        assert_eq!(began.elapsed(), LONGEST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_call_takes_its_question_away() {
        let kept = Arc::new(Kept::default());
        let broker = Broker::new(kept.clone());
        tokio::select! {
            biased;
            _ = broker.ask(question("q"), std::future::pending()) => unreachable!(),
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
        assert_eq!(*kept.withdrawn.lock().unwrap(), [("q".to_owned(), Withdrawn::Cancelled)]);
        let settled = broker.ask(question("r"), std::future::ready(())).await;
        assert_eq!((settled, *broker.open().borrow()), (QuestionOutcome::Settled, 0));
    }
}
