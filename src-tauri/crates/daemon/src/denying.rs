//! Denies every question of a session without showing it.

use ironcurtain_consent::{Answer, AnswerSlot, Consent, Question, WithdrawalReason};
use ironcurtain_protocol::PromptLocation;

/// Front end that denies every question for this reason.
pub(crate) struct DenyAllQuestions(pub(crate) &'static str);

impl Consent for DenyAllQuestions {
    fn ask(&self, _: Question, slot: AnswerSlot) {
        slot.answer(Answer::Unavailable { why: self.0.to_owned() });
    }

    fn withdraw(&self, _: &str, _: WithdrawalReason) {}

    fn prompt_location(&self) -> PromptLocation {
        PromptLocation::Nobody
    }
}
