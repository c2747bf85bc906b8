//! Merges identical questions: the user answers one, and the other calls wait for that answer.
//!
//! - Questions are identical if they show the same text in the same session, their calls are byte-identical and the
//!   files on disk are unchanged.
//! - INVARIANT: an approval applies only to the call that asked. The calls that waited are judged again and may
//!   require approval themselves. A denial applies to all of them.

use super::{NotApproved, Question};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// SHA-256 hash that identifies a question regardless of its id and deadline.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuestionKey([u8; 32]);

impl QuestionKey {
    /// Returns the key of a question. The facts distinguish questions with the same text.
    #[must_use]
    pub fn of(question: &Question, facts: &[String]) -> Self {
        let same = Question { id: String::new(), deadline: Duration::ZERO, ..question.clone() };
        // If serialization fails, the id makes the key unique.
        let shown = serde_json::to_string(&same).unwrap_or_else(|_| question.id.clone());
        Self(hash(std::iter::once(&shown).chain(facts)))
    }

    /// Returns a key that no other question has, so that the question is never merged.
    #[must_use]
    pub fn unique(question: &Question) -> Self {
        Self::of(question, std::slice::from_ref(&question.id))
    }
}

impl fmt::Debug for QuestionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QuestionKey").finish_non_exhaustive()
    }
}

/// Hashes the strings and their lengths. Because of the lengths, moving characters from one string to the next changes
/// the hash.
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
    closed: watch::Receiver<Option<NotApproved>>,
}

/// Role of a call among the calls with an identical question.
#[derive(Debug)]
pub(super) enum QuestionRole {
    /// This call is the first one and asks the user.
    Asks(AskGuard),
    /// The call waits because an identical question is pending.
    Waits {
        /// Id of the pending question.
        question: String,
        /// Completes when that question is closed.
        closed: QuestionClosed,
    },
}

/// Guard for the call that asks the user on behalf of all identical calls. Dropping it causes the waiting calls to be
/// judged again.
#[derive(Debug)]
pub struct AskGuard {
    all: IdenticalQuestions,
    key: QuestionKey,
    closed: watch::Sender<Option<NotApproved>>,
}

/// Receiver that is notified when another call's question is closed.
#[derive(Debug)]
pub(super) struct QuestionClosed(watch::Receiver<Option<NotApproved>>);

impl IdenticalQuestions {
    /// Registers a call under the question's key and returns the call's role. The first call for a key is registered
    /// with `id`.
    pub(super) fn register(&self, key: QuestionKey, id: &str) -> QuestionRole {
        let mut all = self.lock();
        if let Some(asked) = all.get(&key) {
            return QuestionRole::Waits {
                question: asked.id.clone(),
                closed: QuestionClosed(asked.closed.clone()),
            };
        }
        let (closed, end) = watch::channel(None);
        all.insert(key, AskedQuestion { id: id.to_owned(), closed: end });
        QuestionRole::Asks(AskGuard { all: self.clone(), key, closed })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QuestionKey, AskedQuestion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AskGuard {
    /// Denies all calls that are waiting for this question.
    pub(super) fn deny_waiting(&self, why: &NotApproved) {
        self.closed.send_replace(Some(why.clone()));
    }
}

impl Drop for AskGuard {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}

impl QuestionClosed {
    /// Waits until the question is closed. Returns its denial, or `None` if the call must be judged again.
    pub(super) async fn wait_for_denial(&mut self) -> Option<NotApproved> {
        // A dropped sender means that the question ended without a denial.
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
        assert_ne!(QuestionKey::unique(&one), QuestionKey::unique(&other));
        let all = IdenticalQuestions::default();
        let QuestionRole::Asks(_first) = all.register(QuestionKey::unique(&one), "q") else {
            panic!("it is the first")
        };
        assert!(matches!(all.register(QuestionKey::unique(&other), "r"), QuestionRole::Asks(_)));
        assert!(matches!(all.register(QuestionKey::unique(&one), "q"), QuestionRole::Waits { .. }));
    }
}
