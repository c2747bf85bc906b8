//! Denies every question about an agent's calls in a run that was started with `--deny`.

use ironcurtain_consent::{Answer, Consent, Question, Slot, Withdrawn};
use ironcurtain_protocol::AskedOn;

/// Front end that denies every question.
pub(crate) struct DenyingRun;

impl Consent for DenyingRun {
    fn ask(&self, _: Question, slot: Slot) {
        slot.answer(Answer::Unavailable { why: "the run was started with `--deny`".to_owned() });
    }

    fn withdraw(&self, _: &str, _: Withdrawn) {}

    fn asked_on(&self) -> AskedOn {
        AskedOn::Nobody
    }
}
