//! Front end that asks the user through an attached desktop. If no desktop is attached, it uses the daemon's own front
//! end.
//!
//! - INVARIANT: a question that was sent to a desktop is answered over the same connection, or denied when that
//!   connection ends.

use crate::desktop_pairing::DesktopPairing;
use crate::rate_limiter::RateLimiter;
use ironcurtain_consent::{Answer, AnswerSlot, Consent, Question, WithdrawalReason};
use ironcurtain_protocol::PromptLocation;
use ironcurtain_remote::{
    AnswerRefused, FromRemote, MAX_MESSAGE_BYTES, PeerKey, QuestionDigest, SentQuestions,
};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Maximum number of messages to the desktop that are waiting to be sent.
const MAX_QUEUED: usize = 256;

/// Maximum length of a question's JSON in bytes. The difference leaves ample space for the rest of the message.
const MAX_QUESTION_BYTES: usize = MAX_MESSAGE_BYTES - 64 * 1024;

/// Maximum number of questions from a remote machine that are handled without delay. Each question is recorded, even if
/// it exceeds the question limits.
const MAX_PROMPT_QUESTIONS: u32 = 1_000;

/// Denial reason for questions that are pending when the connection ends.
pub const DESKTOP_LOST: &str = "the connection to the desktop that answers questions was lost";

/// Front end that asks the user through the attached desktop, if any.
pub struct DesktopConsent {
    fallback: Arc<dyn Consent>,
    attached: Mutex<Option<AttachedDesktop>>,
    /// Pairing that is waiting for this machine's user.
    pub pairing: DesktopPairing,
}

/// Attached desktop.
struct AttachedDesktop {
    key: PeerKey,
    outgoing: mpsc::Sender<FromRemote>,
    pending: SentQuestions<AnswerSlot>,
    /// Cancelled when the same desktop connects again. Identifies the connection.
    replaced: CancellationToken,
}

/// Connection to the attached desktop. Dropping it denies the desktop's pending questions.
pub struct Attachment {
    consent: Arc<DesktopConsent>,
    key: PeerKey,
    /// Messages for the desktop.
    pub outgoing: mpsc::Receiver<FromRemote>,
    /// Cancelled when the same desktop connects again.
    pub replaced: CancellationToken,
}

/// Error returned if another desktop is attached.
#[derive(Debug, thiserror::Error)]
#[error("another desktop is attached")]
pub struct OtherDesktop;

impl DesktopConsent {
    /// Creates the front end. `base` is used while no desktop is attached.
    #[must_use]
    pub fn new(fallback: Arc<dyn Consent>) -> Self {
        Self { fallback, attached: Mutex::default(), pairing: DesktopPairing::default() }
    }

    /// Returns `true` if the daemon cannot ask the user itself and therefore needs a desktop.
    #[must_use]
    pub fn needs_desktop(&self) -> bool {
        self.fallback.prompt_location() == PromptLocation::Nobody
    }

    /// Returns `true` if a desktop is attached.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.attached().is_some()
    }

    /// Returns the key of the attached desktop, or `None` if no desktop is attached.
    #[must_use]
    pub fn attached(&self) -> Option<PeerKey> {
        self.lock().as_ref().map(|attached| attached.key)
    }

    /// Sends questions to this desktop from now on. Replaces an earlier connection from the same desktop.
    ///
    /// # Errors
    /// Returns [`OtherDesktop`] if another desktop is attached.
    pub fn attach(self: &Arc<Self>, key: PeerKey) -> Result<Attachment, OtherDesktop> {
        let mut attached = self.lock();
        match attached.take() {
            Some(other) if other.key != key => {
                *attached = Some(other);
                return Err(OtherDesktop);
            }
            Some(before) => before.end(),
            None => {}
        }
        let ((send, outgoing), replaced) = (mpsc::channel(MAX_QUEUED), CancellationToken::new());
        *attached = Some(AttachedDesktop {
            key,
            outgoing: send,
            pending: SentQuestions::default(),
            replaced: replaced.clone(),
        });
        Ok(Attachment { consent: self.clone(), key, outgoing, replaced })
    }

    fn lock(&self) -> MutexGuard<'_, Option<AttachedDesktop>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attachment {
    /// Forwards the desktop's answer to a question.
    ///
    /// # Errors
    /// Returns [`AnswerRefused`] if the answer is late, repeated or for a different call.
    pub fn answer(
        &self,
        id: &str,
        digest: &QuestionDigest,
        answer: Option<Answer>,
    ) -> Result<(), AnswerRefused> {
        let slot = self.with(|attached| attached.pending.accept(id, digest, Instant::now()));
        let slot = slot.unwrap_or_else(|| Err(AnswerRefused::NotPending(id.to_owned())))?;
        match answer {
            Some(answer) => slot.answer(answer),
            None => drop(slot),
        }
        Ok(())
    }

    /// Restarts the deadline of a question.
    pub fn extend_deadline(&self, id: &str) {
        self.with(|attached| attached.pending.extend(id, Instant::now()).map(AnswerSlot::report_activity));
    }

    /// Accesses the attached desktop, unless another connection replaced this one.
    fn with<T>(&self, action: impl FnOnce(&mut AttachedDesktop) -> T) -> Option<T> {
        let mut attached = self.consent.lock();
        let is_current = !self.replaced.is_cancelled();
        attached.as_mut().filter(|attached| is_current && attached.key == self.key).map(action)
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut attached = self.consent.lock();
        if !self.replaced.is_cancelled()
            && let Some(attached) = attached.take()
        {
            attached.end();
        }
    }
}

impl AttachedDesktop {
    fn end(mut self) {
        self.replaced.cancel();
        self.pending
            .drain()
            .for_each(|slot| slot.answer(Answer::Unavailable { why: DESKTOP_LOST.to_owned() }));
    }

    fn ask(&mut self, question: &Question, slot: AnswerSlot) {
        let unavailable = |why: &str| Answer::Unavailable { why: why.to_owned() };
        let text = match to_raw_value(question) {
            Ok(text) if text.get().len() <= MAX_QUESTION_BYTES => text,
            Ok(_) => return slot.answer(unavailable("the question is too long for the attached desktop")),
            Err(problem) => return slot.answer(unavailable(&problem.to_string())),
        };
        let (id, digest) = (question.id.clone(), QuestionDigest::of(text.get()));
        if self.send_question(id.clone(), text).is_err() {
            return slot.answer(unavailable("the attached desktop does not read its questions"));
        }
        self.pending.add(id, digest, (Instant::now(), question.deadline), slot);
    }

    fn send_question(&self, id: String, question: Box<RawValue>) -> Result<(), ()> {
        self.outgoing.try_send(FromRemote::Question { id, question }).map_err(|_| ())
    }
}

impl Consent for DesktopConsent {
    fn ask(&self, question: Question, slot: AnswerSlot) {
        if let Some(attached) = self.lock().as_mut() {
            return attached.ask(&question, slot);
        }
        // The lock is not held here, because `base` may query the state of this front end.
        self.fallback.ask(question, slot);
    }

    fn withdraw(&self, question: &str, why: WithdrawalReason) {
        if let Some(attached) = self.lock().as_mut()
            && attached.pending.remove(question).is_some()
        {
            // If the queue is full, the desktop's dialog stays open until its own deadline, and any answer is refused.
            let _ = attached.outgoing.try_send(FromRemote::Withdraw { id: question.to_owned() });
            return;
        }
        self.fallback.withdraw(question, why);
    }

    fn notify(&self, notice: &str) {
        if let Some(attached) = self.lock().as_ref() {
            // If the queue is full, the notice is dropped.
            return drop(attached.outgoing.try_send(FromRemote::Notice { text: notice.to_owned() }));
        }
        self.fallback.notify(notice);
    }

    fn prompt_location(&self) -> PromptLocation {
        if self.is_attached() { PromptLocation::Desktop } else { self.fallback.prompt_location() }
    }
}

/// Remote machines whose questions are shown on this computer, by name.
#[derive(Debug, Default)]
pub struct AttachedHosts(Mutex<HashMap<String, HostState>>);

#[derive(Debug)]
struct HostState {
    /// Key of the machine, or `None` if the machine is not attached.
    attached: Option<PeerKey>,
    /// Not reset by a new connection, because the machine can reconnect at any time.
    pace: Arc<RateLimiter>,
}

/// Entry for an attached remote machine. Dropping it detaches the machine.
#[derive(Debug)]
pub struct AttachedHost {
    all: Arc<AttachedHosts>,
    name: String,
    /// Rate limiter for the machine's questions.
    pub pace: Arc<RateLimiter>,
}

/// Error for a remote machine that is already attached.
#[derive(Debug, thiserror::Error)]
#[error("this machine is already attached as {name}")]
pub struct AlreadyAttached {
    /// Name under which the machine is attached.
    pub name: String,
}

impl AttachedHosts {
    /// Adds a remote machine.
    ///
    /// # Errors
    /// Returns [`AlreadyAttached`] if this name or key is already attached.
    pub fn attach(self: &Arc<Self>, name: &str, key: PeerKey) -> Result<AttachedHost, AlreadyAttached> {
        let mut all = self.lock();
        let is_same = |(other, state): &(&String, &HostState)| {
            state.attached.is_some_and(|attached| attached == key || *other == name)
        };
        if let Some((other, _)) = all.iter().find(is_same) {
            return Err(AlreadyAttached { name: other.clone() });
        }
        let new = || HostState { attached: None, pace: Arc::new(RateLimiter::new(MAX_PROMPT_QUESTIONS)) };
        let state = all.entry(name.to_owned()).or_insert_with(new);
        state.attached = Some(key);
        Ok(AttachedHost { all: self.clone(), name: name.to_owned(), pace: state.pace.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HostState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AttachedHost {
    fn drop(&mut self) {
        if let Some(state) = self.all.lock().get_mut(&self.name) {
            state.attached = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_remote::ChannelKey;

    #[test]
    fn a_remote_machine_attaches_once_and_keeps_its_rate() {
        let [key, other] = [1, 2].map(|seed| ChannelKey::from_seed(&[seed; 32]).unwrap().public());
        let all = Arc::new(AttachedHosts::default());
        let first = all.attach("devbox", key).unwrap();
        assert_eq!(all.attach("me@devbox", key).unwrap_err().name, "devbox");
        assert_eq!(all.attach("devbox", other).unwrap_err().name, "devbox");
        let second = all.attach("other", other).unwrap();
        assert!(!Arc::ptr_eq(&first.pace, &second.pace));
        let pace = first.pace.clone();
        drop(first);
        assert!(Arc::ptr_eq(&all.attach("devbox", key).unwrap().pace, &pace));
        assert!(all.attach("me@devbox", key).is_ok());
    }
}
