//! Questions that nobody answered in time: they outlive their calls for a while, and a yes that comes late is for the
//! agent's identical retry.
//!
//! - INVARIANT: a late yes serves one call of the same session, whose question would be the same in every word, for
//!   arguments that are equal to the byte and for the same things on the disk; and only while it has not expired, and the person
//!   has not said no to the same call since.
//! - Bounded in number and in age. What is forgotten is asked about.

use super::{DenialScope, DeniedKey, Question, QuestionKey, Stop};
use ironcurtain_audit::Entry;
use ironcurtain_audit::clock::millis;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The number of questions that are kept. Of the agent that has most of them, the oldest goes first.
const MOST: usize = 50;

/// The time for which a question is kept after its call was answered, and a late yes after it was given.
const KEPT: Duration = Duration::from_secs(15 * 60);

/// A question with all that makes it the same as another, and what its answer is for.
#[derive(Debug, Clone)]
pub struct Inquiry {
    /// The question.
    pub question: Question,
    /// The entry that puts it on record.
    pub entry: Entry,
    /// Its identity.
    pub identity: QuestionKey,
    /// The call, for remembering a no.
    pub call: DeniedKey,
    /// The scope of a no for longer.
    pub scope: DenialScope,
}

/// A question that nobody answered in time.
#[derive(Debug, Clone)]
pub struct MissedQuestion {
    /// The question, as it was put.
    pub inquiry: Inquiry,
    /// The state that it is in.
    pub state: MissedState,
    /// The moment until which it is kept, in milliseconds since the machine was started.
    pub until_boot_ms: u64,
}

/// The state of a question that nobody answered in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissedState {
    /// It is asked again when the agent calls again.
    Open,
    /// It is before the person again.
    Shown,
    /// The person said yes: the same call passes once.
    Allowed,
}

/// Why a question is not put to the person again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissedError {
    /// It is not kept.
    #[error("there is no unanswered question `{0}`; it was asked again meanwhile, or it is too old")]
    Unknown(String),
    /// It is before the person already, or was answered.
    #[error("the question `{0}` is shown already, or was answered")]
    NotOpen(String),
    /// Nobody is asked about what is stopped.
    #[error("nobody is asked: {0}")]
    Stopped(Stop),
}

/// The questions that nobody answered in time, the oldest first.
#[derive(Debug, Clone, Default)]
pub struct MissedQuestions {
    kept: Arc<Mutex<Vec<MissedQuestion>>>,
    changed: Arc<Notify>,
}

impl MissedQuestions {
    /// The questions that are kept now.
    #[must_use]
    pub fn list(&self, now_boot_ms: u64) -> Vec<MissedQuestion> {
        self.lock(now_boot_ms).clone()
    }

    /// Keeps a question; an older one of the same identity is forgotten for it.
    pub(super) fn keep(&self, inquiry: Inquiry, now_boot_ms: u64) {
        let mut all = self.lock(now_boot_ms);
        all.retain(|one| one.inquiry.identity != inquiry.identity);
        if all.len() >= MOST {
            let at = first_to_go(&all);
            all.remove(at);
        }
        let until_boot_ms = now_boot_ms.saturating_add(millis(KEPT));
        all.push(MissedQuestion { inquiry, state: MissedState::Open, until_boot_ms });
        drop(all);
        self.changed.notify_waiters();
    }

    /// Takes the late yes to a question, which is used up with that.
    pub(super) fn take_yes(&self, identity: QuestionKey, now_boot_ms: u64) -> Option<Inquiry> {
        let mut all = self.lock(now_boot_ms);
        let is_it =
            |one: &MissedQuestion| one.state == MissedState::Allowed && one.inquiry.identity == identity;
        let at = all.iter().position(is_it)?;
        Some(all.remove(at).inquiry)
    }

    /// Shows a question to the person again.
    pub(super) fn show(&self, id: &str, now_boot_ms: u64) -> Result<Inquiry, MissedError> {
        let mut all = self.lock(now_boot_ms);
        let found = all.iter_mut().find(|one| one.inquiry.question.id == id);
        let found = found.ok_or_else(|| MissedError::Unknown(id.to_owned()))?;
        if found.state != MissedState::Open {
            return Err(MissedError::NotOpen(id.to_owned()));
        }
        found.state = MissedState::Shown;
        Ok(found.inquiry.clone())
    }

    /// The person did not answer this time either.
    pub(super) fn hide(&self, id: &str, now_boot_ms: u64) {
        self.lock(now_boot_ms)
            .iter_mut()
            .filter(|one| one.is_shown(id))
            .for_each(|one| one.state = MissedState::Open);
    }

    /// The person said yes: it serves the next identical call. Only a question that is still shown can be allowed.
    pub(super) fn allow(&self, id: &str, now_boot_ms: u64) -> bool {
        let mut all = self.lock(now_boot_ms);
        let Some(one) = all.iter_mut().find(|one| one.is_shown(id)) else { return false };
        one.state = MissedState::Allowed;
        one.until_boot_ms = now_boot_ms.saturating_add(millis(KEPT));
        true
    }

    /// Forgets a question; a yes to it is taken back.
    pub fn forget(&self, id: &str) -> bool {
        self.remove(|one| one.inquiry.question.id == id)
    }

    /// The person said no to a call: in whichever spelling and session it was asked about before, no yes to it is left.
    pub(super) fn is_denied(&self, call: DeniedKey) {
        self.remove(|one| one.inquiry.call == call);
    }

    /// Forgets a question that is put again.
    pub(super) fn is_put(&self, identity: QuestionKey) {
        self.remove(|one| one.inquiry.identity == identity);
    }

    /// Forgets those of a session.
    pub fn end_session(&self, session: &str) {
        self.remove(|one| one.inquiry.question.session == session);
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        self.remove(|_| true);
    }

    /// Completes when a question that was shown again is shown no longer, because it is kept no longer.
    pub(super) async fn gone(&self, id: &str) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let is_kept = self.kept().iter().any(|one| one.inquiry.question.id == id);
            if !is_kept {
                return;
            }
            changed.await;
        }
    }

    fn remove(&self, which: impl Fn(&MissedQuestion) -> bool) -> bool {
        let mut all = self.kept();
        let before = all.len();
        all.retain(|one| !which(one));
        let removed = all.len() < before;
        drop(all);
        if removed {
            self.changed.notify_waiters();
        }
        removed
    }

    /// Those that have not expired.
    fn lock(&self, now_boot_ms: u64) -> MutexGuard<'_, Vec<MissedQuestion>> {
        let mut all = self.kept();
        all.retain(|one| now_boot_ms < one.until_boot_ms);
        all
    }

    fn kept(&self) -> MutexGuard<'_, Vec<MissedQuestion>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of the oldest one that is open, of the agent that has most of those: whoever asks on and on forgets its own.
fn first_to_go(all: &[MissedQuestion]) -> usize {
    let open = || all.iter().enumerate().filter(|(_, one)| one.state == MissedState::Open);
    let of_agent = |one: &MissedQuestion| {
        let question = &one.inquiry.question;
        open().filter(|(_, other)| other.inquiry.question.is_of_same_agent(question)).count()
    };
    // Of several that are equal, the last is taken.
    open().rev().max_by_key(|(_, one)| of_agent(one)).map_or(0, |(at, _)| at)
}

impl MissedQuestion {
    fn is_shown(&self, id: &str) -> bool {
        self.state == MissedState::Shown && self.inquiry.question.id == id
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{question, scope};
    use super::*;
    use ironcurtain_audit::Event;
    use ironcurtain_protocol::ProcessView;

    /// The question of an agent that is this process.
    fn inquiry(id: &str, agent: u32) -> Inquiry {
        let mut question = Question { session: format!("session of {agent}"), ..question(id) };
        question.client.chain = vec![ProcessView { pid: agent, exe: None, name: "agent".into() }];
        Inquiry {
            entry: Entry::new(Event::Question, "a question"),
            identity: QuestionKey::alone(&question),
            call: DeniedKey([0; 32]),
            scope: scope(),
            question,
        }
    }

    #[test]
    fn an_agent_that_asks_on_and_on_pushes_out_its_own_questions_and_not_another_s() {
        let missed = MissedQuestions::default();
        missed.keep(inquiry("quiet", 1), 0);
        missed.keep(inquiry("answered", 2), 0);
        missed.show("answered", 0).unwrap();
        assert!(missed.allow("answered", 0));
        for n in 0..2 * MOST {
            missed.keep(inquiry(&n.to_string(), 2), 0);
        }
        let kept: Vec<String> = missed.list(0).iter().map(|one| one.inquiry.question.id.clone()).collect();
        let newest = (MOST + 2..2 * MOST).map(|n| n.to_string());
        let expected: Vec<String> =
            ["quiet".to_owned(), "answered".to_owned()].into_iter().chain(newest).collect();
        assert_eq!(kept, expected);
    }
}
