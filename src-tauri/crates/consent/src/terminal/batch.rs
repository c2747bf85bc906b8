//! Several calls of one agent, allowed together on a terminal.
//!
//! - INVARIANT: a yes is for the calls that were shown, all of them whole and to the last line, each of them once. What came
//!   meanwhile is asked about by itself; what is over by then is not allowed.
//! - Each question has its own answer: it is judged and put on record as if it had been answered alone.

use super::inbox::Inbox;
use super::tty::{Instead, Size, Tty};
use super::{Answer, Lifetime, PROMPT, Question, Slot, leaf_through, rows};

/// A yes to the first offer of a question, which is its call alone.
const ONCE: Answer = Answer::Allow { offer: 0, lifetime: Lifetime::Once };

/// The calls of one agent that wait, the one that is drawn first.
pub(super) struct Batch(Vec<Question>);

impl Batch {
    /// The calls that wait together with this one; nothing where it is alone.
    pub(super) fn around(question: &Question, inbox: &Inbox) -> Option<Self> {
        let mut batch = vec![question.clone()];
        for other in inbox.waiting(|other| other.joins(std::iter::once(question))) {
            if other.joins(batch.iter()) {
                batch.push(other);
            }
        }
        (batch.len() > 1).then_some(Self(batch))
    }

    /// The line that tells of it.
    pub(super) fn hint(&self, width: usize) -> Vec<String> {
        let more = self.0.len() - 1;
        rows::wrapped(
            &format!("{more} more of this agent wait. Type b to see all {} together.", more + 1),
            width,
        )
    }

    /// Shows all of them, and gives the answer to the first where all were allowed.
    pub(super) fn answered(
        &self,
        size: Size,
        tty: &Tty,
        inbox: &Inbox,
        slot: &Slot,
    ) -> Result<Option<Answer>, Instead> {
        if !leaf_through(&rows::batch(&self.0, size.columns), size, tty, inbox, slot)? {
            return Ok(None);
        }
        let yes = format!("all {}", self.0.len());
        let words = format!(
            "Type \"{yes}\" to allow each of these {} calls once; anything else goes back.",
            self.0.len()
        );
        tty.clear()?;
        tty.draw(&rows::wrapped(&words, size.columns))?;
        tty.hush(inbox, size)?;
        tty.write(PROMPT)?;
        if tty.line(inbox, size)?.trim() != yes {
            return Ok(None);
        }
        for other in self.0.iter().skip(1) {
            if let Some(slot) = inbox.take(&other.id) {
                slot.answer(ONCE);
            }
        }
        Ok(Some(ONCE))
    }
}
