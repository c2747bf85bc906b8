//! Identical questions: the user is asked one of them, and the others wait for its answer.
//!
//! - Questions are identical if they show the same, in the same session, for byte-identical calls and the same files
//!   on disk.
//! - INVARIANT: allowing applies only to the call that was asked about. Calls that waited for it are judged again,
//!   and may be asked about then; a denial applies to all of them.

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
    /// Returns the key of a question, with facts that distinguish it from other questions that look the same.
    #[must_use]
    pub fn of(question: &Question, facts: &[String]) -> Self {
        let same = Question { id: String::new(), deadline: Duration::ZERO, ..question.clone() };
        // A question that cannot be serialized is unique.
        let shown = serde_json::to_string(&same).unwrap_or_else(|_| question.id.clone());
        Self(hash(std::iter::once(&shown).chain(facts)))
    }

    /// Returns a unique key: the question is asked by itself, and its answer counts for nothing else.
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
    /// It is the first, so the user is asked.
    Asks(AskedFirst),
    /// An identical question is already pending.
    Waits {
        /// Id of that question.
        question: String,
        /// Completes when that question ends.
        over: QuestionEnd,
    },
}

/// The first of several identical questions. Dropping it has the others judged again.
#[derive(Debug)]
pub struct AskedFirst {
    all: IdenticalQuestions,
    key: QuestionKey,
    over: watch::Sender<Option<NotApproved>>,
}

/// End of a question that another call asked.
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
    /// Waits for the end: a refusal that applies to all, or `None` if each is judged again.
    pub(super) async fn refusal(&mut self) -> Option<NotApproved> {
        // A dropped sender means that there was no refusal.
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
