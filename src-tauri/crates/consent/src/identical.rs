//! Identical questions: a person is asked one of them, and the others wait for its answer.
//!
//! - Two questions are identical where all that is shown is, in the same session, for calls that are equal to the byte and
//!   for the same things on the disk.
//! - INVARIANT: an answer that allows is for the call that was asked about alone. Whoever waits for it is judged again, and
//!   asked about then; a no is for all of them.

use super::{NotApproved, Question};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The identity of a question: equal where two questions are the same but for their ids and the time that they wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuestionKey([u8; 32]);

impl QuestionKey {
    /// The key of a question about something that these facts tell apart from anything else that looks like it.
    #[must_use]
    pub fn of(question: &Question, facts: &[String]) -> Self {
        let same = Question { id: String::new(), deadline: Duration::ZERO, ..question.clone() };
        // A question that cannot be written down is like no other.
        let shown = serde_json::to_string(&same).unwrap_or_else(|_| question.id.clone());
        Self(hash(std::iter::once(&shown).chain(facts)))
    }

    /// The key of a question that is like no other: each is put by itself, and a yes is for what was shown.
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

/// A hash of several texts, each with its length: what one ends with is never taken for the beginning of the next.
pub(super) fn hash<'a>(texts: impl Iterator<Item = &'a String>) -> [u8; 32] {
    let mut all = Sha256::new();
    for text in texts {
        all.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        all.update(text.as_bytes());
    }
    all.finalize().into()
}

/// The questions that are put, by their identity.
#[derive(Debug, Clone, Default)]
pub(super) struct IdenticalQuestions(Arc<Mutex<HashMap<QuestionKey, AskedQuestion>>>);

#[derive(Debug)]
struct AskedQuestion {
    id: String,
    over: watch::Receiver<Option<NotApproved>>,
}

/// The way of one call to its answer.
#[derive(Debug)]
pub(super) enum Turn {
    /// It is the first: it is asked about.
    Asks(AskedFirst),
    /// The same is asked about already.
    Waits {
        /// The id of that question.
        question: String,
        /// Its end.
        over: QuestionEnd,
    },
}

/// The first of several identical questions. Dropped, the others are judged again.
#[derive(Debug)]
pub struct AskedFirst {
    all: IdenticalQuestions,
    key: QuestionKey,
    over: watch::Sender<Option<NotApproved>>,
}

/// The end of a question that somebody else put.
#[derive(Debug)]
pub(super) struct QuestionEnd(watch::Receiver<Option<NotApproved>>);

impl IdenticalQuestions {
    /// The turn of a question, which has this id if it is the first.
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
    /// Nobody said yes, to none of them.
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
    /// Waits for the end: the refusal that is for all, or nothing where each is to be judged again.
    pub(super) async fn refusal(&mut self) -> Option<NotApproved> {
        // Without its sender it ended without a refusal.
        let _ = self.0.wait_for(Option::is_some).await;
        self.0.borrow().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::question;
    use super::*;

    #[test]
    fn a_question_that_stands_alone_is_never_another_one_s() {
        let (one, other) = (question("q"), question("r"));
        assert_eq!(QuestionKey::of(&one, &[]), QuestionKey::of(&other, &[]), "all that is shown is the same");
        assert_ne!(QuestionKey::alone(&one), QuestionKey::alone(&other));
        let all = IdenticalQuestions::default();
        let Turn::Asks(_first) = all.enter(QuestionKey::alone(&one), "q") else { panic!("it is the first") };
        assert!(matches!(all.enter(QuestionKey::alone(&other), "r"), Turn::Asks(_)));
        assert!(matches!(all.enter(QuestionKey::alone(&one), "q"), Turn::Waits { .. }));
    }
}
