//! Asks the user questions and enforces their deadlines.
//!
//! - Dropping the future returned by [`Broker::ask`] withdraws the question.
//! - A stop ([`Stops`]) immediately closes all questions to which it applies and overrides their answers.
//! - A question that cannot be shown ([`WaitingQuestions`]) is denied immediately, with a reason.
//! - A call is allowed only by an answer that names one of the question's offers and one of that offer's lifetimes.
//!   [`Broker::deny`] can only deny. Every question has its own outcome.

use super::identical::IdenticalQuestions;
use super::missed::{Inquiry, MissedQuestions};
use super::rate::{DeniedCalls, MAX_LISTED, QuestionLimits, QuestionRate};
use super::showable::{NotShowable, WaitingQuestion, WaitingQuestions};
use super::{
    Answer, Consent, DenialReach, DenialScope, Lifetime, Question, SessionDenial, Slot, Stop, Stops,
    Withdrawn,
};
use ironcurtain_audit::EscalationResult;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_protocol::AskedOn;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// Maximum time that a question stays open, even if the user remains active in the dialog.
const MAX_DURATION: Duration = Duration::from_secs(30 * 60);

/// Outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionOutcome {
    /// The user allowed the call.
    Allowed {
        /// Index into the question's offers.
        offer: usize,
        /// Chosen lifetime of the permission.
        lifetime: Lifetime,
    },
    /// The user denied the call.
    Denied {
        /// The user's note for the agent, if any.
        note: Option<String>,
        /// Additional calls to which the denial applies.
        reach: DenialReach,
    },
    /// A stop (a lockdown, a paused session or a session-long denial) denied the call.
    Stopped(Stop),
    /// The user could not be asked, for this reason.
    Unavailable(String),
    /// The user closed the dialog without an answer.
    Closed,
    /// The question's deadline passed.
    TimedOut,
    /// The question became unnecessary, for example because of a new grant. The caller must judge the call again.
    Settled,
}

impl QuestionOutcome {
    /// Converts the outcome to the form that the audit log stores.
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

/// Service that shows all questions of the trusted process and tracks the open questions.
#[derive(Clone)]
pub struct Broker {
    consent: Arc<dyn Consent>,
    /// Front ends that replace `consent` for individual sessions, keyed by session id.
    elsewhere: Arc<Mutex<HashMap<String, Arc<dyn Consent>>>>,
    /// Warning added to each question, if any.
    notice: Option<String>,
    open: watch::Sender<usize>,
    questions: Arc<Mutex<Vec<OnScreen>>>,
    by_session: WaitingQuestions,
    stops: Stops,
    missed: MissedQuestions,
    pub(super) identical: IdenticalQuestions,
    pub(super) rate: Arc<QuestionRate>,
    pub(super) denied: Arc<DeniedCalls>,
}

/// An open question and the channel that denies it. The value sent is an optional note for the agent.
#[derive(Debug)]
struct OnScreen {
    shown: OpenQuestion,
    deny: Option<oneshot::Sender<Option<String>>>,
}

/// Snapshot of an open question, for lists.
#[derive(Debug, Clone)]
pub struct OpenQuestion {
    /// The question.
    pub question: Arc<Question>,
    /// Time at which the question was shown, in milliseconds since the Unix epoch.
    pub since_ms: u64,
}

impl Broker {
    /// Creates a broker that asks through `consent` and adds `notice` to each question.
    #[must_use]
    pub fn new(consent: Arc<dyn Consent>, stops: Stops, notice: Option<String>) -> Self {
        Self {
            consent,
            elsewhere: Arc::default(),
            notice,
            open: watch::Sender::new(0),
            questions: Arc::default(),
            by_session: WaitingQuestions::default(),
            stops,
            missed: MissedQuestions::default(),
            identical: IdenticalQuestions::default(),
            rate: Arc::default(),
            denied: Arc::default(),
        }
    }

    /// Returns `true` if this process can ask a user.
    #[must_use]
    pub fn can_ask(&self) -> bool {
        self.asked_on() != AskedOn::Nobody
    }

    /// Returns the kind of front end that asks the user.
    #[must_use]
    pub fn asked_on(&self) -> AskedOn {
        self.consent.asked_on()
    }

    /// Uses a different front end for this session's questions until [`Self::end_session`] is called.
    pub fn ask_elsewhere(&self, session: &str, consent: Arc<dyn Consent>) {
        self.lock_elsewhere().insert(session.to_owned(), consent);
    }

    fn lock_elsewhere(&self) -> MutexGuard<'_, HashMap<String, Arc<dyn Consent>>> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn consent_for(&self, session: &str) -> Arc<dyn Consent> {
        self.lock_elsewhere().get(session).unwrap_or(&self.consent).clone()
    }

    /// Returns a receiver for the number of open questions.
    #[must_use]
    pub fn open(&self) -> watch::Receiver<usize> {
        self.open.subscribe()
    }

    /// Returns the open questions, oldest first.
    #[must_use]
    pub fn open_questions(&self) -> Vec<OpenQuestion> {
        self.lock_open().iter().map(|open| open.shown.clone()).collect()
    }

    /// Returns `true` if this question can be listed and answered together with an open question from the same agent
    /// about a different server.
    pub(super) fn joins_list(&self, question: &Question) -> bool {
        let open = self.lock_open();
        let of_agent =
            || open.iter().map(|open| &*open.shown.question).filter(|open| open.is_of_same_agent(question));
        of_agent().count() < MAX_LISTED
            && of_agent().any(|open| open.server != question.server && question.joins(std::iter::once(open)))
    }

    /// Denies the open questions that `is_meant` selects, and returns their ids. `note` is sent to the agent.
    pub fn deny(&self, is_meant: impl Fn(&Question) -> bool, note: Option<&str>) -> Vec<String> {
        let mut open = self.lock_open();
        let meant = open.iter_mut().filter(|open| is_meant(&open.shown.question));
        let denied = meant.filter_map(|open| {
            let is_sent = open.deny.take()?.send(note.map(str::to_owned)).is_ok();
            is_sent.then(|| open.shown.question.id.clone())
        });
        denied.collect()
    }

    fn lock_open(&self) -> MutexGuard<'_, Vec<OnScreen>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the active stops.
    #[must_use]
    pub fn stops(&self) -> &Stops {
        &self.stops
    }

    /// Returns the questions that expired unanswered.
    #[must_use]
    pub fn missed(&self) -> &MissedQuestions {
        &self.missed
    }

    /// Shows the user a message that requires no answer.
    pub fn notify(&self, notice: &str) {
        self.consent.notify(notice);
    }

    /// Removes a closed session's denials, stops, expired questions and front end.
    pub fn end_session(&self, session: &str) {
        self.stops.end_session(session);
        self.missed.end_session(session);
        self.lock_elsewhere().remove(session);
    }

    /// Remembers a denial, and applies it to the other calls that the user chose to deny with it.
    pub(super) fn apply_denial(
        &self,
        inquiry: &Inquiry,
        note: Option<String>,
        reach: DenialReach,
        limits: QuestionLimits,
    ) {
        let Inquiry { question, call, scope, .. } = inquiry;
        self.missed.drop_denied(*call);
        self.denied.note(*call, note.clone(), Instant::now(), limits.denial_holds);
        match reach {
            DenialReach::Call => {}
            DenialReach::Waiting => {
                self.deny(|other| other.is_of_same_agent(question), note.as_deref());
            }
            DenialReach::Pause => {
                self.pause(&question.session);
            }
            DenialReach::Session => {
                self.stops.deny(SessionDenial::of(question, scope.clone(), note));
            }
        }
    }

    /// Pauses a session and discards its late approvals. Returns `false` if the session was already paused.
    pub fn pause(&self, session: &str) -> bool {
        let paused = self.stops.pause(session);
        self.missed.end_session(session);
        paused
    }

    /// Registers a call that is waiting for the answer to an identical question.
    ///
    /// # Errors
    /// Returns [`NotShowable`] if the question cannot be shown.
    pub(super) fn register_waiting(&self, question: &Question) -> Result<WaitingQuestion, NotShowable> {
        self.by_session.enter(question)
    }

    /// Asks the user. Returns when the user answers, the deadline passes, a stop applies, or `settled` completes.
    pub async fn ask(
        &self,
        question: Question,
        scope: &DenialScope,
        settled: impl Future<Output = ()>,
    ) -> QuestionOutcome {
        self.ask_somewhere(question, scope, settled, || {}).await.0
    }

    /// Like [`ask`](Self::ask). Also returns whether the answer came from the session's own front end
    /// ([`ask_elsewhere`](Self::ask_elsewhere)). Calls `on_working` whenever the user is active in the dialog.
    pub(super) async fn ask_somewhere(
        &self,
        question: Question,
        scope: &DenialScope,
        settled: impl Future<Output = ()>,
        on_working: impl Fn(),
    ) -> (QuestionOutcome, bool) {
        let question = Question { notice: self.notice.clone(), ..question };
        let registration = match self.by_session.enter(&question) {
            Ok(registration) => registration,
            Err(why) => return (QuestionOutcome::Unavailable(why.to_string()), false),
        };
        let (answer, answered) = oneshot::channel();
        let (working, mut works) = mpsc::channel(1);
        let (deny, mut denied) = oneshot::channel();
        let (deadline, session) = (question.deadline, question.session.clone());
        let mut shown = Shown::new(self, &question, registration, deny);
        let is_elsewhere = !Arc::ptr_eq(&shown.consent, &self.consent);
        let mut is_answered = false;
        let offers = question.offers.clone();
        shown.consent.ask(question, Slot { answer, working });
        let mut ends = Instant::now() + deadline;
        let last = Instant::now() + MAX_DURATION;
        let stopped = self.stops.stopped(&session, scope);
        tokio::pin!(answered, settled, stopped);
        let outcome = loop {
            tokio::select! {
                biased;
                // A stop wins over an answer that arrives at the same moment.
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
                    is_answered = answer.is_ok();
                    break answer.map_or(QuestionOutcome::Closed, |answer| understood(answer, &offers));
                }
                () = &mut settled => {
                    shown.why = Some(Withdrawn::Settled);
                    break QuestionOutcome::Settled;
                }
                Some(()) = works.recv() => {
                    ends = (Instant::now() + deadline).min(last);
                    on_working();
                }
                () = tokio::time::sleep_until(ends) => {
                    shown.why = Some(Withdrawn::Deadline);
                    break QuestionOutcome::TimedOut;
                }
            }
        };
        drop(shown);
        let is_given = matches!(outcome, QuestionOutcome::Allowed { .. } | QuestionOutcome::Denied { .. });
        (outcome, is_elsewhere && is_answered && is_given)
    }
}

/// Guard for an open question. Dropping it withdraws the question.
struct Shown<'a> {
    broker: &'a Broker,
    consent: Arc<dyn Consent>,
    id: String,
    /// Withdrawal reason to report to the front end on drop; `None` if the front end has already closed the question.
    why: Option<Withdrawn>,
    _registration: WaitingQuestion,
}

impl<'a> Shown<'a> {
    fn new(
        broker: &'a Broker,
        question: &Question,
        registration: WaitingQuestion,
        deny: oneshot::Sender<Option<String>>,
    ) -> Self {
        let shown = OpenQuestion { question: Arc::new(question.clone()), since_ms: now_ms() };
        broker.lock_open().push(OnScreen { shown, deny: Some(deny) });
        broker.open.send_modify(|n| *n += 1);
        Self {
            broker,
            consent: broker.consent_for(&question.session),
            id: question.id.clone(),
            why: Some(Withdrawn::Cancelled),
            _registration: registration,
        }
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.broker.lock_open().retain(|open| open.shown.question.id != self.id);
        self.broker.open.send_modify(|n| *n = n.saturating_sub(1));
        if let Some(why) = self.why {
            self.consent.withdraw(&self.id, why);
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
