//! Asks the user questions and enforces their deadlines.
//!
//! - Dropping the future returned by [`Broker::ask`] withdraws the question.
//! - A stop ([`Stops`]) immediately closes all questions to which it applies and overrides their answers.
//! - A question that cannot be shown ([`WaitingQuestions`]) is denied immediately, with a reason.
//! - A call is allowed only by an answer that names one of the question's offers and one of that offer's lifetimes.
//!   [`Broker::deny`] can only deny. Every question has its own outcome.

use super::expired_questions::{ExpiredQuestions, Inquiry};
use super::identical::IdenticalQuestions;
use super::rate::{DeniedCalls, MAX_LISTED, QuestionLimits, QuestionRate};
use super::showable::{NotShowable, WaitingQuestion, WaitingQuestions};
use super::{
    Answer, AnswerSlot, Consent, DenialReach, DenialScope, Lifetime, Question, SessionDenial, Stop, Stops,
    WithdrawalReason,
};
use ironcurtain_audit::EscalationResult;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_protocol::PromptLocation;
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
    /// The user could not be asked. Contains the reason.
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
    pub fn audit_result(&self) -> EscalationResult {
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
    session_front_ends: Arc<Mutex<HashMap<String, Arc<dyn Consent>>>>,
    /// Warning added to each question, if any.
    notice: Option<String>,
    open: watch::Sender<usize>,
    questions: Arc<Mutex<Vec<PendingDenial>>>,
    waiting: WaitingQuestions,
    stops: Stops,
    expired: ExpiredQuestions,
    pub(super) identical: IdenticalQuestions,
    pub(super) rate: Arc<QuestionRate>,
    pub(super) denied: Arc<DeniedCalls>,
}

/// An open question and the channel that denies it. The value sent is an optional note for the agent.
#[derive(Debug)]
struct PendingDenial {
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
            session_front_ends: Arc::default(),
            notice,
            open: watch::Sender::new(0),
            questions: Arc::default(),
            waiting: WaitingQuestions::default(),
            stops,
            expired: ExpiredQuestions::default(),
            identical: IdenticalQuestions::default(),
            rate: Arc::default(),
            denied: Arc::default(),
        }
    }

    /// Returns `true` if this process can ask a user.
    #[must_use]
    pub fn can_ask(&self) -> bool {
        self.prompt_location() != PromptLocation::Nobody
    }

    /// Returns the kind of front end that asks the user.
    #[must_use]
    pub fn prompt_location(&self) -> PromptLocation {
        self.consent.prompt_location()
    }

    /// Uses a different front end for this session's questions until [`Self::end_session`] is called.
    pub fn set_session_front_end(&self, session: &str, consent: Arc<dyn Consent>) {
        self.lock_front_ends().insert(session.to_owned(), consent);
    }

    fn lock_front_ends(&self) -> MutexGuard<'_, HashMap<String, Arc<dyn Consent>>> {
        self.session_front_ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn consent_for(&self, session: &str) -> Arc<dyn Consent> {
        self.lock_front_ends().get(session).unwrap_or(&self.consent).clone()
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
    pub(super) fn can_join_batch(&self, question: &Question) -> bool {
        let open = self.lock_open();
        let of_agent =
            || open.iter().map(|open| &*open.shown.question).filter(|open| open.is_of_same_agent(question));
        of_agent().count() < MAX_LISTED
            && of_agent().any(|open| open.server != question.server && question.joins(std::iter::once(open)))
    }

    /// Denies the open questions that `is_selected` selects and returns their ids. `note` is sent to the agent.
    pub fn deny(&self, is_selected: impl Fn(&Question) -> bool, note: Option<&str>) -> Vec<String> {
        let mut open = self.lock_open();
        let selected = open.iter_mut().filter(|open| is_selected(&open.shown.question));
        let denied = selected.filter_map(|open| {
            let is_sent = open.deny.take()?.send(note.map(str::to_owned)).is_ok();
            is_sent.then(|| open.shown.question.id.clone())
        });
        denied.collect()
    }

    fn lock_open(&self) -> MutexGuard<'_, Vec<PendingDenial>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the active stops.
    #[must_use]
    pub fn stops(&self) -> &Stops {
        &self.stops
    }

    /// Returns the questions that expired unanswered.
    #[must_use]
    pub fn expired_questions(&self) -> &ExpiredQuestions {
        &self.expired
    }

    /// Shows the user a message that requires no answer.
    pub fn notify(&self, notice: &str) {
        self.consent.notify(notice);
    }

    /// Removes a closed session's denials, stops, expired questions and front end.
    pub fn end_session(&self, session: &str) {
        self.stops.end_session(session);
        self.expired.end_session(session);
        self.lock_front_ends().remove(session);
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
        self.expired.drop_denied(*call);
        self.denied.remember(*call, note.clone(), Instant::now(), limits.denial_duration);
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
        self.expired.end_session(session);
        paused
    }

    /// Registers a call that is waiting for the answer to an identical question.
    ///
    /// # Errors
    /// Returns [`NotShowable`] if the question cannot be shown.
    pub(super) fn register_waiting(&self, question: &Question) -> Result<WaitingQuestion, NotShowable> {
        self.waiting.register(question)
    }

    /// Asks the user. Returns when the user answers, the deadline passes, a stop applies, or `settled` completes.
    pub async fn ask(
        &self,
        question: Question,
        scope: &DenialScope,
        settled: impl Future<Output = ()>,
    ) -> QuestionOutcome {
        self.ask_with_location(question, scope, settled, || {}).await.0
    }

    /// Like [`ask`](Self::ask). Also returns whether the answer came from the session's own front end
    /// ([`set_session_front_end`](Self::set_session_front_end)). Calls `on_activity` whenever the user is active in the dialog.
    pub(super) async fn ask_with_location(
        &self,
        question: Question,
        scope: &DenialScope,
        settled: impl Future<Output = ()>,
        on_activity: impl Fn(),
    ) -> (QuestionOutcome, bool) {
        let question = Question { notice: self.notice.clone(), ..question };
        let registration = match self.waiting.register(&question) {
            Ok(registration) => registration,
            Err(why) => return (QuestionOutcome::Unavailable(why.to_string()), false),
        };
        let (answer, answered) = oneshot::channel();
        let (activity, mut works) = mpsc::channel(1);
        let (deny, mut denied) = oneshot::channel();
        let (deadline, session) = (question.deadline, question.session.clone());
        let mut shown = OpenQuestionGuard::new(self, &question, registration, deny);
        let is_elsewhere = !Arc::ptr_eq(&shown.consent, &self.consent);
        let mut is_answered = false;
        let offers = question.offers.clone();
        shown.consent.ask(question, AnswerSlot { answer, activity });
        let mut ends = Instant::now() + deadline;
        let last = Instant::now() + MAX_DURATION;
        let stopped = self.stops.stopped(&session, scope);
        tokio::pin!(answered, settled, stopped);
        let outcome = loop {
            tokio::select! {
                biased;
                // A stop wins over an answer that arrives at the same moment.
                stop = &mut stopped => {
                    shown.why = Some(WithdrawalReason::Stopped);
                    break QuestionOutcome::Stopped(stop);
                }
                Ok(note) = &mut denied => {
                    shown.why = Some(WithdrawalReason::Stopped);
                    break QuestionOutcome::Denied { note, reach: DenialReach::Call };
                }
                answer = &mut answered => {
                    shown.why = None;
                    is_answered = answer.is_ok();
                    break answer.map_or(QuestionOutcome::Closed, |answer| to_outcome(answer, &offers));
                }
                () = &mut settled => {
                    shown.why = Some(WithdrawalReason::Settled);
                    break QuestionOutcome::Settled;
                }
                Some(()) = works.recv() => {
                    ends = (Instant::now() + deadline).min(last);
                    on_activity();
                }
                () = tokio::time::sleep_until(ends) => {
                    shown.why = Some(WithdrawalReason::Deadline);
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
struct OpenQuestionGuard<'a> {
    broker: &'a Broker,
    consent: Arc<dyn Consent>,
    id: String,
    /// Withdrawal reason to report to the front end on drop; `None` if the front end has already closed the question.
    why: Option<WithdrawalReason>,
    _registration: WaitingQuestion,
}

impl<'a> OpenQuestionGuard<'a> {
    fn new(
        broker: &'a Broker,
        question: &Question,
        registration: WaitingQuestion,
        deny: oneshot::Sender<Option<String>>,
    ) -> Self {
        let shown = OpenQuestion { question: Arc::new(question.clone()), since_ms: now_ms() };
        broker.lock_open().push(PendingDenial { shown, deny: Some(deny) });
        broker.open.send_modify(|n| *n += 1);
        Self {
            broker,
            consent: broker.consent_for(&question.session),
            id: question.id.clone(),
            why: Some(WithdrawalReason::Cancelled),
            _registration: registration,
        }
    }
}

impl Drop for OpenQuestionGuard<'_> {
    fn drop(&mut self) {
        self.broker.lock_open().retain(|open| open.shown.question.id != self.id);
        self.broker.open.send_modify(|n| *n = n.saturating_sub(1));
        if let Some(why) = self.why {
            self.consent.withdraw(&self.id, why);
        }
    }
}

fn to_outcome(answer: Answer, offers: &[super::Offer]) -> QuestionOutcome {
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
