//! Questions that a remote machine sent to the desktop, and the validation of their answers.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Maximum time during which a question can be answered, even if the user remains active in the dialog.
const MAX_DURATION: Duration = Duration::from_secs(30 * 60);

/// SHA-256 of a question as it was sent, as base64url. It covers every argument of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionDigest(String);

impl QuestionDigest {
    /// Returns the digest of a question's JSON.
    #[must_use]
    pub fn of(json: &str) -> Self {
        Self(URL_SAFE_NO_PAD.encode(digest(&SHA256, json.as_bytes())))
    }
}

/// Reason why an answer is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerRefused {
    /// The question was answered or withdrawn, or belongs to another connection.
    #[error("question `{0}` is not pending on this connection")]
    NotPending(String),
    /// The answer is for a different call.
    #[error("the answer to question `{0}` is for another call")]
    OtherCall(String),
    /// The question expired.
    #[error("question `{0}` expired before it was answered")]
    Expired(String),
}

/// Questions that one connection's desktop may answer. `T` receives the answer.
#[derive(Debug)]
pub struct SentQuestions<T>(HashMap<String, Pending<T>>);

#[derive(Debug)]
struct Pending<T> {
    digest: QuestionDigest,
    deadline: Duration,
    expires: Instant,
    latest_expiry: Instant,
    slot: T,
}

impl<T> Default for SentQuestions<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> SentQuestions<T> {
    /// Adds a question that expires after `deadline`.
    pub fn add(&mut self, id: String, digest: QuestionDigest, (now, deadline): (Instant, Duration), slot: T) {
        let pending =
            Pending { digest, deadline, expires: now + deadline, latest_expiry: now + MAX_DURATION, slot };
        self.0.insert(id, pending);
    }

    /// Removes a question. Returns `None` if it is not pending.
    pub fn remove(&mut self, id: &str) -> Option<T> {
        self.0.remove(id).map(|pending| pending.slot)
    }

    /// Removes all questions.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.0.drain().map(|(_, pending)| pending.slot)
    }

    /// Restarts the deadline of a question because the user is active in its dialog.
    pub fn extend(&mut self, id: &str, now: Instant) -> Option<&T> {
        let pending = self.0.get_mut(id).filter(|pending| now < pending.expires)?;
        pending.expires = (now + pending.deadline).min(pending.latest_expiry);
        Some(&pending.slot)
    }

    /// Accepts the answer to a question and removes the question.
    ///
    /// # Errors
    /// Returns [`AnswerRefused`] for a repeated, late or mismatched answer. A mismatched answer leaves the question
    /// pending.
    pub fn accept(&mut self, id: &str, digest: &QuestionDigest, now: Instant) -> Result<T, AnswerRefused> {
        let pending = self.0.get(id).ok_or_else(|| AnswerRefused::NotPending(id.to_owned()))?;
        if pending.digest != *digest {
            return Err(AnswerRefused::OtherCall(id.to_owned()));
        }
        let is_expired = now >= pending.expires;
        let slot = self.remove(id).filter(|_| !is_expired);
        slot.ok_or_else(|| AnswerRefused::Expired(id.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(45);

    fn asked(now: Instant) -> (SentQuestions<&'static str>, QuestionDigest) {
        let (mut all, digest) = (SentQuestions::default(), QuestionDigest::of("{\"path\":\"/a\"}"));
        all.add("q".to_owned(), digest.clone(), (now, DEADLINE), "slot");
        (all, digest)
    }

    #[test]
    fn an_answer_is_accepted_once() {
        let now = Instant::now();
        let (mut all, digest) = asked(now);
        assert_eq!(all.accept("q", &digest, now), Ok("slot"));
        assert_eq!(all.accept("q", &digest, now), Err(AnswerRefused::NotPending("q".to_owned())));
    }

    #[test]
    fn an_answer_to_another_question_or_call_is_refused() {
        let now = Instant::now();
        let (mut all, digest) = asked(now);
        let other = QuestionDigest::of("{\"path\":\"/b\"}");
        assert_eq!(all.accept("p", &digest, now), Err(AnswerRefused::NotPending("p".to_owned())));
        assert_eq!(all.accept("q", &other, now), Err(AnswerRefused::OtherCall("q".to_owned())));
        assert_eq!(all.accept("q", &digest, now), Ok("slot"));
    }

    #[test]
    fn a_late_answer_is_refused_and_activity_delays_the_deadline_only_so_long() {
        let now = Instant::now();
        let (mut all, digest) = asked(now);
        assert_eq!(all.accept("q", &digest, now + DEADLINE), Err(AnswerRefused::Expired("q".to_owned())));
        let (mut all, digest) = asked(now);
        let mut active = now;
        while let Some(slot) = all.extend("q", active) {
            assert_eq!(*slot, "slot");
            active += DEADLINE / 2;
        }
        assert!(active >= now + MAX_DURATION && active < now + MAX_DURATION + DEADLINE);
        assert_eq!(all.accept("q", &digest, active), Err(AnswerRefused::Expired("q".to_owned())));
    }
}
