//! Puts questions to the person and keeps their deadlines.
//!
//! - The future of [`Broker::ask`] is the question: dropping it takes the question away.
//! - What is stopped ([`Stops`]) is over at once, whoever answers.
//! - One that cannot be shown ([`WaitingQuestions`]) is denied at once, with the reason.
//! - Only an answer that names an offer and one of its lifetimes allows. Whoever denies several at once ([`Broker::deny`]) can
//!   do nothing else; each of them ends for itself.

use super::identical::IdenticalQuestions;
use super::missed::{Inquiry, MissedQuestions};
use super::rate::{DeniedCalls, QuestionLimits, QuestionRate};
use super::showable::{NotShowable, WaitingQuestion, WaitingQuestions};
use super::{
    Answer, Consent, DenialReach, DenialScope, Lifetime, Question, SessionDenial, Slot, Stop, Stops,
    Withdrawn,
};
use ironcurtain_audit::EscalationResult;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_protocol::AskedOn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// The person denied it.
    Denied {
        /// A note for the agent.
        note: Option<String>,
        /// The things that are denied with it.
        reach: DenialReach,
    },
    /// It was stopped, with all that waits or by a no to another question.
    Stopped(Stop),
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
            Self::Denied { .. } => EscalationResult::Denied,
            Self::Stopped(_) => EscalationResult::Stopped,
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
    /// Shown with each question.
    notice: Option<String>,
    open: watch::Sender<usize>,
    put: Arc<Mutex<Vec<Put>>>,
    by_session: WaitingQuestions,
    stops: Stops,
    missed: MissedQuestions,
    pub(super) identical: IdenticalQuestions,
    pub(super) rate: Arc<QuestionRate>,
    pub(super) denied: Arc<DeniedCalls>,
}

/// A question that stands before the person, and the way to deny it from elsewhere.
#[derive(Debug)]
struct Put {
    shown: PutQuestion,
    deny: Option<oneshot::Sender<Option<String>>>,
}

/// A question that stands before the person, for the list of all.
#[derive(Debug, Clone)]
pub struct PutQuestion {
    /// The question.
    pub question: Arc<Question>,
    /// The moment since which it stands there.
    pub since_ms: u64,
}

impl Broker {
    /// Creates a broker that asks through `consent`, except about what is stopped. Each question shows the notice.
    #[must_use]
    pub fn new(consent: Arc<dyn Consent>, stops: Stops, notice: Option<String>) -> Self {
        Self {
            consent,
            notice,
            open: watch::Sender::new(0),
            put: Arc::default(),
            by_session: WaitingQuestions::default(),
            stops,
            missed: MissedQuestions::default(),
            identical: IdenticalQuestions::default(),
            rate: Arc::default(),
            denied: Arc::default(),
        }
    }

    /// Returns `false` if nobody can be asked here, ever.
    #[must_use]
    pub fn reaches_person(&self) -> bool {
        self.asked_on() != AskedOn::Nobody
    }

    /// Returns the place at which the user is asked.
    #[must_use]
    pub fn asked_on(&self) -> AskedOn {
        self.consent.asked_on()
    }

    /// The number of questions that wait for the person.
    #[must_use]
    pub fn open(&self) -> watch::Receiver<usize> {
        self.open.subscribe()
    }

    /// The questions that stand before the person, the oldest first.
    #[must_use]
    pub fn put(&self) -> Vec<PutQuestion> {
        self.lock_put().iter().map(|put| put.shown.clone()).collect()
    }

    /// Denies those of the questions before the person that are meant, with this note for the agent; gives their ids.
    pub fn deny(&self, is_meant: impl Fn(&Question) -> bool, note: Option<&str>) -> Vec<String> {
        let mut put = self.lock_put();
        let meant = put.iter_mut().filter(|put| is_meant(&put.shown.question));
        let denied = meant.filter_map(|put| {
            let is_told = put.deny.take()?.send(note.map(str::to_owned)).is_ok();
            is_told.then(|| put.shown.question.id.clone())
        });
        denied.collect()
    }

    fn lock_put(&self) -> MutexGuard<'_, Vec<Put>> {
        self.put.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that is stopped.
    #[must_use]
    pub fn stops(&self) -> &Stops {
        &self.stops
    }

    /// The questions that nobody answered in time.
    #[must_use]
    pub fn missed(&self) -> &MissedQuestions {
        &self.missed
    }

    /// Tells the person something that is no question.
    pub fn tell(&self, notice: &str) {
        self.consent.tell(notice);
    }

    /// Forgets what was denied and missed in a session that ended.
    pub fn end_session(&self, session: &str) {
        self.stops.end_session(session);
        self.missed.end_session(session);
    }

    /// The person said no: it holds for what they said, beyond the call.
    pub(super) fn note_no(
        &self,
        inquiry: &Inquiry,
        note: Option<String>,
        reach: DenialReach,
        limits: QuestionLimits,
    ) {
        let Inquiry { question, call, scope, .. } = inquiry;
        self.missed.is_denied(*call);
        self.denied.note(*call, note.clone(), Instant::now(), limits.denial_holds);
        match reach {
            DenialReach::Call => {}
            DenialReach::Waiting => {
                self.deny(|other| other.is_of_same_agent(question), note.as_deref());
            }
            DenialReach::Pause => {
                self.pause(&question.session);
            }
            DenialReach::Session => self.stops.deny(SessionDenial {
                // It is shown with the id of the question that it was the answer to.
                id: question.id.clone(),
                session: question.session.clone(),
                client: question.client.name.clone(),
                server: question.server.clone(),
                scope: scope.clone(),
                words: question.denial.clone(),
                note,
                at_ms: now_ms(),
            }),
        }
    }

    /// Pauses a session, for which nobody said yes late any more; `false` where it was paused.
    pub fn pause(&self, session: &str) -> bool {
        let paused = self.stops.pause(session);
        self.missed.end_session(session);
        paused
    }

    /// The place of a question that waits for the answer to another one.
    ///
    /// # Errors
    /// [`NotShowable`], as for a question that is put.
    pub(super) fn waits(&self, question: &Question) -> Result<WaitingQuestion, NotShowable> {
        self.by_session.enter(question)
    }

    /// Asks, until there is an answer, the deadline passes, it is stopped or `settled` completes.
    pub async fn ask(
        &self,
        question: Question,
        scope: &DenialScope,
        settled: impl Future<Output = ()>,
    ) -> QuestionOutcome {
        let question = Question { notice: self.notice.clone(), ..question };
        let waits = match self.by_session.enter(&question) {
            Ok(waits) => waits,
            Err(why) => return QuestionOutcome::Unavailable(why.to_string()),
        };
        let (answer, answered) = oneshot::channel();
        let (working, mut works) = mpsc::channel(1);
        let (deny, mut denied) = oneshot::channel();
        let (deadline, session) = (question.deadline, question.session.clone());
        let mut shown = Shown::new(self, &question, waits, deny);
        let offers = question.offers.clone();
        self.consent.ask(question, Slot { answer, working });
        let mut ends = Instant::now() + deadline;
        let last = Instant::now() + LONGEST;
        let stopped = self.stops.stopped(&session, scope);
        tokio::pin!(answered, settled, stopped);
        let outcome = loop {
            tokio::select! {
                biased;
                // Before an answer, which may have come at the same moment.
                stop = &mut stopped => {
                    shown.why = Some(Withdrawn::Stopped);
                    break QuestionOutcome::Stopped(stop);
                }
                Ok(note) = &mut denied => {
                    shown.why = Some(Withdrawn::Stopped);
                    break QuestionOutcome::Denied { note, reach: DenialReach::Call };
                }
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
    /// Why it is to be taken away; nothing when its asker already did.
    why: Option<Withdrawn>,
    _waits: WaitingQuestion,
}

impl<'a> Shown<'a> {
    fn new(
        broker: &'a Broker,
        question: &Question,
        waits: WaitingQuestion,
        deny: oneshot::Sender<Option<String>>,
    ) -> Self {
        let shown = PutQuestion { question: Arc::new(question.clone()), since_ms: now_ms() };
        broker.lock_put().push(Put { shown, deny: Some(deny) });
        broker.open.send_modify(|n| *n += 1);
        Self { broker, id: question.id.clone(), why: Some(Withdrawn::Cancelled), _waits: waits }
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.broker.lock_put().retain(|put| put.shown.question.id != self.id);
        self.broker.open.send_modify(|n| *n = n.saturating_sub(1));
        if let Some(why) = self.why {
            self.broker.consent.withdraw(&self.id, why);
        }
    }
}

fn understood(answer: Answer, offers: &[super::Offer]) -> QuestionOutcome {
    match answer {
        Answer::Deny { note, reach } => QuestionOutcome::Denied { note, reach },
        Answer::Unavailable { why } => QuestionOutcome::Unavailable(why),
        Answer::Allow { offer, lifetime } => {
            let offered = offers.get(offer).is_some_and(|o| o.lifetimes.contains(&lifetime));
            if offered { QuestionOutcome::Allowed { offer, lifetime } } else { QuestionOutcome::Closed }
        }
    }
}

#[cfg(test)]
mod tests;
