//! Identical questions: one is asked, and the others wait for its answer.
//!
//! - Questions are identical if they show the same text in the same session, for byte-identical calls and unchanged
//!   files on disk.
//! - INVARIANT: an approval applies only to the call that was asked about. Calls that waited are judged again and may
//!   prompt again; a denial applies to all.

use super::{NotApproved, Question};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Identity of a question, which ignores its id and its deadline.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuestionKey([u8; 32]);

impl QuestionKey {
    /// Returns the key of a question, with facts that distinguish it from questions with the same text.
    #[must_use]
    pub fn of(question: &Question, facts: &[String]) -> Self {
        let same = Question { id: String::new(), deadline: Duration::ZERO, ..question.clone() };
        // A question that cannot be serialized is unique.
        let shown = serde_json::to_string(&same).unwrap_or_else(|_| question.id.clone());
        Self(hash(std::iter::once(&shown).chain(facts)))
    }

    /// Returns a unique key, so that the question is never merged with another.
    #[must_use]
    pub fn alone(question: &Question) -> Self {
        Self::of(question, std::slice::from_ref(&question.id))
    }
}

impl fmt::Debug for QuestionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QuestionKey").finish_non_exhaustive()
    }
}

/// Hashes several texts, each with its length, so that moving text across a boundary changes the hash.
pub(super) fn hash<'a>(texts: impl Iterator<Item = &'a String>) -> [u8; 32] {
    let mut all = Sha256::new();
    for text in texts {
        all.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        all.update(text.as_bytes());
    }
    all.finalize().into()
}

/// Pending questions, by key.
#[derive(Debug, Clone, Default)]
pub(super) struct IdenticalQuestions(Arc<Mutex<HashMap<QuestionKey, AskedQuestion>>>);

#[derive(Debug)]
struct AskedQuestion {
    id: String,
    over: watch::Receiver<Option<NotApproved>>,
}

/// Role of a call among identical ones.
#[derive(Debug)]
pub(super) enum Turn {
    /// The first call, which asks the user.
    Asks(AskedFirst),
    /// An identical question is already pending.
    Waits {
        /// Id of that question.
        question: String,
        /// Completes when that question ends.
        over: QuestionEnd,
    },
}

/// The first of several identical questions. When dropped, the waiting calls are judged again.
#[derive(Debug)]
pub struct AskedFirst {
    all: IdenticalQuestions,
    key: QuestionKey,
    over: watch::Sender<Option<NotApproved>>,
}

/// Receiver for the end of another call's question.
#[derive(Debug)]
pub(super) struct QuestionEnd(watch::Receiver<Option<NotApproved>>);

impl IdenticalQuestions {
    /// Registers a question, under this id if it is the first of its kind.
    pub(super) fn enter(&self, key: QuestionKey, id: &str) -> Turn {
        let mut all = self.lock();
        if let Some(put) = all.get(&key) {
            return Turn::Waits { question: put.id.clone(), over: QuestionEnd(put.over.clone()) };
        }
        let (over, end) = watch::channel(None);
        all.insert(key, AskedQuestion { id: id.to_owned(), over: end });
        Turn::Asks(AskedFirst { all: self.clone(), key, over })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QuestionKey, AskedQuestion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AskedFirst {
    /// Denies all calls that wait for this question.
    pub(super) fn refuse(&self, why: &NotApproved) {
        self.over.send_replace(Some(why.clone()));
    }
}

impl Drop for AskedFirst {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}

impl QuestionEnd {
    /// Waits for the end. Returns a denial that applies to all, or `None` if each call is judged again.
    pub(super) async fn refusal(&mut self) -> Option<NotApproved> {
        // A dropped sender means that there was no denial.
        let _ = self.0.wait_for(Option::is_some).await;
        self.0.borrow().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::question;
    use super::*;

    #[test]
    fn a_unique_key_equals_no_other() {
        let (one, other) = (question("q"), question("r"));
        assert_eq!(QuestionKey::of(&one, &[]), QuestionKey::of(&other, &[]), "both show the same text");
        assert_ne!(QuestionKey::alone(&one), QuestionKey::alone(&other));
        let all = IdenticalQuestions::default();
        let Turn::Asks(_first) = all.enter(QuestionKey::alone(&one), "q") else { panic!("it is the first") };
        assert!(matches!(all.enter(QuestionKey::alone(&other), "r"), Turn::Asks(_)));
        assert!(matches!(all.enter(QuestionKey::alone(&one), "q"), Turn::Waits { .. }));
    }
}
