//! Remembers questions that expired without an answer. A late approval allows the agent to repeat the call once.
//!
//! - INVARIANT: a late approval allows one call, in the same session, with an identical question, byte-identical
//!   arguments and unchanged files on disk. The approval ends when it expires or when the user denies the same call.
//! - The number and age of remembered questions are limited. If a question was forgotten, a repeated call simply asks
//!   it again.

use super::{DenialScope, DeniedKey, Question, QuestionKey, Stop};
use ironcurtain_audit::Entry;
use ironcurtain_audit::clock::millis;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Maximum number of remembered questions. Beyond this limit, the oldest question of the agent with the most questions
/// is removed.
const MAX_COUNT: usize = 50;

/// Duration for which an expired question is remembered and a late approval is valid: 15 minutes.
const RETENTION: Duration = Duration::from_secs(15 * 60);

/// A question with its audit entry and the keys that identify its call.
#[derive(Debug, Clone)]
pub struct Inquiry {
    /// The question.
    pub question: Question,
    /// Audit entry that recorded the question.
    pub entry: Entry,
    /// Key that identical questions share.
    pub identity: QuestionKey,
    /// Key under which a denial of the call is remembered.
    pub call: DeniedKey,
    /// Calls to which a session-long denial would apply.
    pub scope: DenialScope,
}

/// A question that expired without an answer.
#[derive(Debug, Clone)]
pub struct ExpiredQuestion {
    /// The question and its keys.
    pub inquiry: Inquiry,
    /// State of the question after it expired.
    pub state: ExpiredState,
    /// Time at which the question is forgotten, in milliseconds since boot.
    pub until_boot_ms: u64,
}

/// State of a question that expired without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpiredState {
    /// Not answered. A repeated call asks the user again.
    Open,
    /// Shown to the user again.
    Shown,
    /// Allowed late. The next identical call does not prompt the user.
    Allowed,
}

/// Reason an expired question is not shown again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpiredQuestionError {
    /// The question never existed, was forgotten, or was asked again.
    #[error("no unanswered question `{0}`; it was asked again or has expired")]
    Unknown(String),
    /// The question is already on the screen or was already answered.
    #[error("the question `{0}` is already shown or answered")]
    NotOpen(String),
    /// A stop denies the call, so the user cannot allow it.
    #[error("the question cannot be asked: {0}")]
    Stopped(Stop),
}

/// Questions that expired without an answer, oldest first.
#[derive(Debug, Clone, Default)]
pub struct ExpiredQuestions {
    questions: Arc<Mutex<Vec<ExpiredQuestion>>>,
    changed: Arc<Notify>,
}

impl ExpiredQuestions {
    /// Returns the remembered questions.
    #[must_use]
    pub fn list(&self, now_boot_ms: u64) -> Vec<ExpiredQuestion> {
        self.lock(now_boot_ms).clone()
    }

    /// Remembers a question, replacing an identical one.
    pub(super) fn add(&self, inquiry: Inquiry, now_boot_ms: u64) {
        let mut all = self.lock(now_boot_ms);
        all.retain(|one| one.inquiry.identity != inquiry.identity);
        if all.len() >= MAX_COUNT {
            let at = index_to_evict(&all);
            all.remove(at);
        }
        let until_boot_ms = now_boot_ms.saturating_add(millis(RETENTION));
        all.push(ExpiredQuestion { inquiry, state: ExpiredState::Open, until_boot_ms });
        drop(all);
        self.changed.notify_waiters();
    }

    /// Consumes the late approval of a question with this key, if there is one.
    pub(super) fn take_approval(&self, identity: QuestionKey, now_boot_ms: u64) -> Option<Inquiry> {
        let mut all = self.lock(now_boot_ms);
        let is_approved =
            |one: &ExpiredQuestion| one.state == ExpiredState::Allowed && one.inquiry.identity == identity;
        let at = all.iter().position(is_approved)?;
        Some(all.remove(at).inquiry)
    }

    /// Marks a question as shown again, and returns it.
    pub(super) fn show(&self, id: &str, now_boot_ms: u64) -> Result<Inquiry, ExpiredQuestionError> {
        let mut all = self.lock(now_boot_ms);
        let found = all.iter_mut().find(|one| one.inquiry.question.id == id);
        let found = found.ok_or_else(|| ExpiredQuestionError::Unknown(id.to_owned()))?;
        if found.state != ExpiredState::Open {
            return Err(ExpiredQuestionError::NotOpen(id.to_owned()));
        }
        found.state = ExpiredState::Shown;
        Ok(found.inquiry.clone())
    }

    /// Marks a question that was shown again as open.
    pub(super) fn reopen(&self, id: &str, now_boot_ms: u64) {
        self.lock(now_boot_ms)
            .iter_mut()
            .filter(|one| one.is_shown(id))
            .for_each(|one| one.state = ExpiredState::Open);
    }

    /// Allows the next identical call. Returns `false` if the question is no longer shown.
    pub(super) fn allow(&self, id: &str, now_boot_ms: u64) -> bool {
        let mut all = self.lock(now_boot_ms);
        let Some(one) = all.iter_mut().find(|one| one.is_shown(id)) else { return false };
        one.state = ExpiredState::Allowed;
        one.until_boot_ms = now_boot_ms.saturating_add(millis(RETENTION));
        true
    }

    /// Forgets a question and its late approval. Returns `false` if it was not remembered.
    pub fn forget(&self, id: &str) -> bool {
        self.remove(|one| one.inquiry.question.id == id)
    }

    /// Discards late approvals for a call that the user has denied, in any session and however its paths are spelled.
    pub(super) fn drop_denied(&self, call: DeniedKey) {
        self.remove(|one| one.inquiry.call == call);
    }

    /// Forgets an expired question because the agent's repeated call asks it again.
    pub(super) fn forget_identical(&self, identity: QuestionKey) {
        self.remove(|one| one.inquiry.identity == identity);
    }

    /// Forgets a session's questions.
    pub fn end_session(&self, session: &str) {
        self.remove(|one| one.inquiry.question.session == session);
    }

    /// Forgets all questions.
    pub fn clear(&self) {
        self.remove(|_| true);
    }

    /// Completes when the question is forgotten.
    pub(super) async fn wait_until_forgotten(&self, id: &str) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let is_remembered = self.questions().iter().any(|one| one.inquiry.question.id == id);
            if !is_remembered {
                return;
            }
            changed.await;
        }
    }

    fn remove(&self, is_selected: impl Fn(&ExpiredQuestion) -> bool) -> bool {
        let mut all = self.questions();
        let before = all.len();
        all.retain(|one| !is_selected(one));
        let removed = all.len() < before;
        drop(all);
        if removed {
            self.changed.notify_waiters();
        }
        removed
    }

    /// Locks the list and removes expired questions from it.
    fn lock(&self, now_boot_ms: u64) -> MutexGuard<'_, Vec<ExpiredQuestion>> {
        let mut all = self.questions();
        all.retain(|one| now_boot_ms < one.until_boot_ms);
        all
    }

    fn questions(&self) -> MutexGuard<'_, Vec<ExpiredQuestion>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the index of the oldest open question of the agent with the most open questions. An agent that floods the
/// list displaces only its own questions.
fn index_to_evict(all: &[ExpiredQuestion]) -> usize {
    let open = || all.iter().enumerate().filter(|(_, one)| one.state == ExpiredState::Open);
    let of_agent = |one: &ExpiredQuestion| {
        let question = &one.inquiry.question;
        open().filter(|(_, other)| other.inquiry.question.is_of_same_agent(question)).count()
    };
    // `max_by_key` returns the last of equal elements; `rev` makes it the oldest.
    open().rev().max_by_key(|(_, one)| of_agent(one)).map_or(0, |(at, _)| at)
}

impl ExpiredQuestion {
    fn is_shown(&self, id: &str) -> bool {
        self.state == ExpiredState::Shown && self.inquiry.question.id == id
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{question, scope};
    use super::*;
    use ironcurtain_audit::Event;
    use ironcurtain_protocol::ProcessView;

    /// Returns a question from the agent with this process id.
    fn inquiry(id: &str, agent: u32) -> Inquiry {
        let mut question = Question { session: format!("session of {agent}"), ..question(id) };
        question.client.chain = vec![ProcessView { pid: agent, exe: None, name: "agent".into() }];
        Inquiry {
            entry: Entry::new(Event::Question, "a question"),
            identity: QuestionKey::unique(&question),
            call: DeniedKey([0; 32]),
            scope: scope(),
            question,
        }
    }

    #[test]
    fn a_flood_of_questions_displaces_only_the_agents_own() {
        let expired = ExpiredQuestions::default();
        expired.add(inquiry("quiet", 1), 0);
        expired.add(inquiry("answered", 2), 0);
        expired.show("answered", 0).unwrap();
        assert!(expired.allow("answered", 0));
        for n in 0..2 * MAX_COUNT {
            expired.add(inquiry(&n.to_string(), 2), 0);
        }
        let questions: Vec<String> =
            expired.list(0).iter().map(|one| one.inquiry.question.id.clone()).collect();
        let newest = (MAX_COUNT + 2..2 * MAX_COUNT).map(|n| n.to_string());
        let expected: Vec<String> =
            ["quiet".to_owned(), "answered".to_owned()].into_iter().chain(newest).collect();
        assert_eq!(questions, expected);
    }
}
