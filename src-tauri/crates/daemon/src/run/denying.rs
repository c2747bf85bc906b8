//! Denies every question about an agent's calls in a run that was started with `--deny`.

use ironcurtain_consent::{Answer, AnswerSlot, Consent, Question, WithdrawalReason};
use ironcurtain_protocol::PromptLocation;

/// Front end that denies every question.
pub(crate) struct DenyAllQuestions;

impl Consent for DenyAllQuestions {
    fn ask(&self, _: Question, slot: AnswerSlot) {
        slot.answer(Answer::Unavailable { why: "the run was started with `--deny`".to_owned() });
    }

    fn withdraw(&self, _: &str, _: WithdrawalReason) {}

    fn prompt_location(&self) -> PromptLocation {
        PromptLocation::Nobody
    }
}
