//! A scripted user who answers questions from a list.

use ironcurtain_consent::{
    Answer, AnswerSlot, Consent, DenialReach, Lifetime, Question, Reach, TextPart, WithdrawalReason,
};
use ironcurtain_policy::HostConnection;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns the path in each line of a question, or the first path if a line contains two.
pub fn paths(question: &Question) -> Vec<&str> {
    question.consequences.iter().filter_map(|line| line.object.iter().find_map(path)).collect()
}

fn path(piece: &TextPart) -> Option<&str> {
    match piece {
        TextPart::Path(text) => Some(text),
        TextPart::Fixed(_) | TextPart::Untrusted(_) => None,
    }
}

/// The user's reaction to the next question.
pub enum Next {
    /// Allows the offer with this extent and lifetime.
    Allow(Reach, Lifetime),
    /// Allows the first extent in this list that is offered, for the session if possible, otherwise once.
    AllowFirst(Vec<Reach>),
    Deny,
    /// Denies the question with this extent and note.
    DenyMore(DenialReach, Option<String>),
    /// Closes the dialog without an answer.
    Close,
    /// Does not answer.
    Ignore,
    /// Calls the closure, and then reacts as the second field says.
    After(Box<dyn FnOnce(&Question) + Send>, Box<Next>),
}

/// Front end that takes its answers from a list in order, and denies when the list is empty.
#[derive(Default)]
pub struct ScriptedUser {
    next: Mutex<VecDeque<Next>>,
    asked: Mutex<Vec<Question>>,
    ignored: Mutex<Vec<(String, AnswerSlot)>>,
    withdrawn: Mutex<Vec<WithdrawalReason>>,
    told: Mutex<Vec<String>>,
    calls_alone: AtomicBool,
    denies_hosts: AtomicBool,
}

impl ScriptedUser {
    /// Denies all later questions that were not raised by a call, such as those about a workspace, without counting
    /// them.
    pub fn deny_other_questions(&self) {
        self.calls_alone.store(true, Ordering::Relaxed);
    }

    /// Denies all later questions of runs about hosts, without counting them.
    pub fn deny_hosts(&self) {
        self.denies_hosts.store(true, Ordering::Relaxed);
    }

    pub fn will(&self, next: Next) {
        self.next.lock().unwrap().push_back(next);
    }

    /// Discards the unused answers.
    pub fn forget(&self) {
        self.next.lock().unwrap().clear();
    }

    /// Returns the questions asked since the last call of this function.
    pub fn asked(&self) -> Vec<Question> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// Returns the number of questions asked since the last call of [`Self::asked`].
    pub fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Answers the oldest unanswered question.
    pub fn answer_late(&self, answer: Answer) {
        self.ignored.lock().unwrap().remove(0).1.answer(answer);
    }

    /// Answers the unanswered question with this id.
    pub fn answer_ignored(&self, id: &str, answer: Answer) {
        let mut ignored = self.ignored.lock().unwrap();
        let at = ignored.iter().position(|(question, _)| question == id).unwrap();
        ignored.remove(at).1.answer(answer);
    }

    /// Returns all notices sent to the user.
    pub fn notices(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }

    pub fn withdrawn(&self) -> Vec<WithdrawalReason> {
        self.withdrawn.lock().unwrap().clone()
    }
}

impl Consent for ScriptedUser {
    fn ask(&self, question: Question, slot: AnswerSlot) {
        let is_host = question.tool.as_deref() == Some(HostConnection::NAME);
        if self.calls_alone.load(Ordering::Relaxed) && question.tool.is_none()
            || self.denies_hosts.load(Ordering::Relaxed) && is_host
        {
            return slot.answer(Answer::Deny { note: None, reach: DenialReach::Call });
        }
        let mut next = self.next.lock().unwrap().pop_front().unwrap_or(Next::Deny);
        while let Next::After(first, then) = next {
            first(&question);
            next = *then;
        }
        let answer = match next {
            Next::Allow(reach, lifetime) => {
                let offer = question.offers.iter().position(|o| o.reach == reach).unwrap_or(usize::MAX);
                Some(Answer::Allow { offer, lifetime })
            }
            Next::AllowFirst(reaches) => {
                let at = |reach: &Reach| question.offers.iter().position(|offer| offer.reach == *reach);
                let offer = reaches.iter().find_map(at).unwrap_or(usize::MAX);
                let stands =
                    question.offers.get(offer).is_some_and(|o| o.lifetimes.contains(&Lifetime::Session));
                let lifetime = if stands { Lifetime::Session } else { Lifetime::Once };
                Some(Answer::Allow { offer, lifetime })
            }
            Next::Deny => Some(Answer::Deny { note: None, reach: DenialReach::Call }),
            Next::DenyMore(reach, note) => Some(Answer::Deny { note, reach }),
            Next::Close | Next::After(..) => None,
            Next::Ignore => {
                self.ignored.lock().unwrap().push((question.id.clone(), slot));
                self.asked.lock().unwrap().push(question);
                return;
            }
        };
        self.asked.lock().unwrap().push(question);
        match answer {
            Some(answer) => slot.answer(answer),
            None => drop(slot),
        }
    }

    fn withdraw(&self, _: &str, why: WithdrawalReason) {
        self.withdrawn.lock().unwrap().push(why);
    }

    fn notify(&self, notice: &str) {
        self.told.lock().unwrap().push(notice.to_owned());
    }
}
