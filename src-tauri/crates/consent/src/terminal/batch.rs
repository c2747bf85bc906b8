//! Lets the user allow several calls by one agent together on a terminal.
//!
//! - INVARIANT: a batch allows each of its calls once, and only calls that were shown in full, to the last line.
//!   Questions that arrive after the batch was built are asked separately, and closed questions are skipped.
//! - Each question gets its own answer and is judged and recorded like any other question.

use super::inbox::Inbox;
use super::tty::{NoInput, Size, Tty};
use super::{Answer, AnswerSlot, Lifetime, PROMPT, Question, rows, show_pages};

/// Answer that allows a question's first offer once.
const ONCE: Answer = Answer::Allow { offer: 0, lifetime: Lifetime::Once };

/// Pending calls by one agent. The first call is the question on the screen.
pub(super) struct Batch(Vec<Question>);

impl Batch {
    /// Returns this call and all pending calls that can be allowed with it, or `None` if there are none.
    pub(super) fn for_question(question: &Question, inbox: &Inbox) -> Option<Self> {
        let mut batch = vec![question.clone()];
        for other in inbox.pending(|other| other.joins(std::iter::once(question))) {
            if other.joins(batch.iter()) {
                batch.push(other);
            }
        }
        (batch.len() > 1).then_some(Self(batch))
    }

    /// Returns the lines that offer the batch to the user.
    pub(super) fn hint(&self, width: usize) -> Vec<String> {
        let more = self.0.len() - 1;
        rows::wrapped(
            &format!(
                "{more} more questions of this agent are pending. Type b to see all {} together.",
                more + 1
            ),
            width,
        )
    }

    /// Shows all calls and asks for one answer. Returns the answer to the first call if the user allowed all calls.
    pub(super) fn ask(
        &self,
        size: Size,
        tty: &Tty,
        inbox: &Inbox,
        slot: &AnswerSlot,
    ) -> Result<Option<Answer>, NoInput> {
        if !show_pages(&rows::batch(&self.0, size.columns), size, tty, inbox, slot)? {
            return Ok(None);
        }
        let yes = format!("all {}", self.0.len());
        let words = format!(
            "Type \"{yes}\" to allow each of these {} calls once; anything else goes back.",
            self.0.len()
        );
        tty.clear()?;
        tty.draw(&rows::wrapped(&words, size.columns))?;
        tty.wait_until_quiet(inbox, size)?;
        tty.write(PROMPT)?;
        if tty.line(inbox, size)?.trim() != yes {
            return Ok(None);
        }
        for other in self.0.iter().skip(1) {
            if let Some(slot) = inbox.take_slot(&other.id) {
                slot.answer(ONCE);
            }
        }
        Ok(Some(ONCE))
    }
}
