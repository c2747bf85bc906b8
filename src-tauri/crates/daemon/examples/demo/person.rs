//! Simulated user with scripted answers.

use crate::AnswerAll;
use ironcurtain_consent::{
    Answer, AnswerSlot, Consent, DenialReach, Lifetime, Question, Reach, WithdrawalReason,
};
use std::sync::{Mutex, PoisonError};

/// Simulated user who answers every question automatically.
pub struct ScriptedUser {
    answer: AnswerAll,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked: usize,
    /// Slots of questions that are left unanswered. Dropping a slot would deny its question.
    ignored: Vec<AnswerSlot>,
}

impl ScriptedUser {
    pub fn new(answer: AnswerAll) -> Self {
        Self { answer, state: Mutex::default() }
    }
}

impl Consent for ScriptedUser {
    fn ask(&self, question: Question, slot: AnswerSlot) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.asked += 1;
        let allow = |reach, lifetime| {
            let offer = question.offers.iter().position(|o| o.reach == reach);
            offer.map(|offer| Answer::Allow { offer, lifetime })
        };
        let answer = match (self.answer, state.asked) {
            (AnswerAll::Allow, 1) => allow(Reach::Paths, Lifetime::Once),
            (AnswerAll::Allow, 2) => allow(Reach::Folders, Lifetime::Session),
            (AnswerAll::Allow | AnswerAll::Deny, _) => None,
            (AnswerAll::Timeout, _) => return state.ignored.push(slot),
        };
        slot.answer(answer.unwrap_or(Answer::Deny { note: None, reach: DenialReach::Call }));
    }

    fn withdraw(&self, _: &str, _: WithdrawalReason) {}
}
