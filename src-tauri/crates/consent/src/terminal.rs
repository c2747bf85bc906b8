//! Asks the user on a terminal, or denies every question if there is no terminal. Used on machines without a display.
//!
//! - To allow, the user types the number of an answer at least half a second after the question appeared or changed.
//!   Any other answer denies. If the question does not fit on the screen, the user must first read the details to the
//!   end.
//! - Text from the agent follows a mark and is cut so that the terminal never wraps it: see [`rows`].

mod batch;
mod inbox;
mod quote;
mod rows;
mod tty;

use super::{Answer, AnswerSlot, Consent, DenialReach, Lifetime, Offer, Question, WithdrawalReason};
use batch::Batch;
use inbox::{Inbox, NextItem, Outbox};
use ironcurtain_protocol::PromptLocation;
pub use quote::wrap_text;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tty::{NoInput, Size, Tty};

/// Answer that denies only this call.
const DENY: Answer = Answer::Deny { note: None, reach: DenialReach::Call };

/// Prompt for the user's input.
const PROMPT: &str = " Your answer: ";

/// Front end on a terminal. Any answer other than one of the numbers denies the question, as does end of input.
#[derive(Debug)]
pub struct Terminal {
    questions: Outbox,
    tty: Arc<Tty>,
}

/// Front end that denies every question because no user can be asked.
#[derive(Debug)]
pub struct NoFrontEnd;

impl Terminal {
    /// Spawns a thread that asks the user through these descriptors. The thread exits when this value is dropped.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be spawned.
    pub fn new(input: OwnedFd, output: OwnedFd) -> std::io::Result<Self> {
        let (questions, inbox) = inbox::channel()?;
        let tty = Arc::new(Tty::new(input.into(), output.into()));
        let asks = Arc::clone(&tty);
        std::thread::Builder::new().name("terminal".to_owned()).spawn(move || serve(&asks, &inbox))?;
        Ok(Self { questions, tty })
    }
}

impl Consent for Terminal {
    fn prompt_location(&self) -> PromptLocation {
        PromptLocation::Terminal
    }

    fn ask(&self, question: Question, slot: AnswerSlot) {
        self.questions.push(question, slot);
    }

    fn withdraw(&self, question: &str, why: WithdrawalReason) {
        self.questions.withdraw(question, why);
    }

    fn notify(&self, notice: &str) {
        self.questions.notify(notice);
    }
}

impl Drop for Terminal {
    // Restores the terminal here, because the process may exit before the thread does.
    fn drop(&mut self) {
        self.tty.restore();
    }
}

impl Consent for NoFrontEnd {
    fn ask(&self, _: Question, slot: AnswerSlot) {
        let why = "IronCurtain runs without a display, so it cannot ask you; run `ironcurtain attach` on your \
                   desktop, or start the app";
        slot.answer(Answer::Unavailable { why: why.to_owned() });
    }

    fn withdraw(&self, _: &str, _: WithdrawalReason) {}

    fn prompt_location(&self) -> PromptLocation {
        PromptLocation::Nobody
    }
}

fn serve(tty: &Tty, inbox: &Inbox) {
    while let Some(next) = inbox.next() {
        let (question, slot) = match next {
            NextItem::Question(question, slot) => (*question, slot),
            NextItem::Notice(notice) => {
                let lines = rows::notice(&notice, tty.size().columns);
                // A failure is ignored: the next question detects that the terminal is closed.
                let _ = tty.write(&format!("\n{}\n", lines.join("\n")));
                continue;
            }
        };
        let answer = match ask_question(tty, inbox, &question, &slot) {
            Ok(answer) => answer,
            Err(NoInput::QuestionClosed) => {
                show_withdrawal(tty, inbox.close_reason());
                continue;
            }
            // `asked` handles resizes itself, so only a closed terminal leads here.
            Err(NoInput::EndOfInput | NoInput::Resized) => {
                let why = "the terminal for questions was closed; restart IronCurtain";
                Answer::Unavailable { why: why.to_owned() }
            }
        };
        let message = if matches!(answer, Answer::Allow { .. }) { "Allowed." } else { "Denied." };
        let message =
            if slot.is_closed() { "The question was already closed. Nothing was allowed." } else { message };
        // A failure is ignored: the next question detects that the terminal is closed.
        let _ = tty.write(&format!(" {message}\n\n"));
        slot.answer(answer);
    }
}

/// Asks until the user answers or the question is closed. Redraws the question after each resize.
fn ask_question(tty: &Tty, inbox: &Inbox, question: &Question, slot: &AnswerSlot) -> Result<Answer, NoInput> {
    let choices = choices(question);
    let mut size = tty.size();
    loop {
        match ask_at_size(size, tty, inbox, question, (slot, &choices)) {
            Err(NoInput::Resized) => {
                size = tty.size();
                tty.clear()?;
            }
            answered => return answered,
        }
    }
}

fn ask_at_size(
    size: Size,
    tty: &Tty,
    inbox: &Inbox,
    question: &Question,
    (slot, choices): (&AnswerSlot, &[(usize, &Offer, Lifetime)]),
) -> Result<Answer, NoInput> {
    let mut was_read = false;
    loop {
        let batch = Batch::for_question(question, inbox);
        if size.columns < rows::MIN_WIDTH {
            tty.draw(&rows::too_narrow(size.columns))?;
        } else {
            let mut screen = rows::question(question, choices, size.columns, was_read);
            was_read |= screen.is_whole;
            screen.lines.extend(batch.iter().flat_map(|batch| batch.hint(size.columns)));
            tty.draw(&screen.lines)?;
        }
        tty.wait_until_quiet(inbox, size)?;
        tty.write(PROMPT)?;
        let line = tty.line(inbox, size)?;
        if size.columns < rows::MIN_WIDTH {
            return Ok(DENY);
        }
        match (line.trim(), batch) {
            ("d", _) => {
                slot.report_activity();
                was_read |= show_pages(&rows::details(question, size.columns), size, tty, inbox, slot)?;
            }
            ("b", Some(batch)) => {
                slot.report_activity();
                if let Some(answer) = batch.ask(size, tty, inbox, slot)? {
                    return Ok(answer);
                }
            }
            (typed, _) => {
                let answer = parse_answer(typed, choices);
                // The user has not seen the whole text, so an approval is rejected and the question is asked again.
                if was_read || !matches!(answer, Answer::Allow { .. }) {
                    return Ok(answer);
                }
                slot.report_activity();
            }
        }
        tty.clear()?;
    }
}

/// Shows lines page by page, or all remaining lines at once if the user requests it. Returns `true` if the last line
/// was shown.
fn show_pages(
    lines: &[String],
    size: Size,
    tty: &Tty,
    inbox: &Inbox,
    slot: &AnswerSlot,
) -> Result<bool, NoInput> {
    let of_a_screen = size.rows.saturating_sub(3).max(1);
    let mut rest = lines;
    loop {
        let (screen, below) = rest.split_at(rest.len().min(of_a_screen));
        tty.clear()?;
        tty.draw(screen)?;
        if below.is_empty() {
            break;
        }
        tty.write(" Enter: more. e: all the rest. q: back. ")?;
        match tty.line(inbox, size)?.trim() {
            "q" => return Ok(false),
            "e" => {
                tty.draw(below)?;
                break;
            }
            _ => rest = below,
        }
        slot.report_activity();
    }
    tty.write(" Enter: back. ")?;
    let is_left = tty.line(inbox, size)?.trim() == "q";
    slot.report_activity();
    Ok(!is_left)
}

/// Replaces the question on the screen with the reason it was closed.
fn show_withdrawal(tty: &Tty, why: WithdrawalReason) {
    let why = match why {
        WithdrawalReason::Deadline => "it was not answered in time",
        WithdrawalReason::Cancelled => "its call was cancelled",
        WithdrawalReason::SessionEnded => "its session was closed",
        WithdrawalReason::Settled => "another answer settled it",
        WithdrawalReason::Stopped => "you stopped it",
    };
    let words = rows::wrapped(&format!("Question closed: {why}."), tty.size().columns);
    // A failure is ignored: the next question detects that the terminal is closed.
    let _ = tty.erase().and_then(|()| tty.write(&format!("{}\n\n", words.join("\n"))));
}

/// Returns one choice for each lifetime of each offer. The screen numbers the choices from 1.
fn choices(question: &Question) -> Vec<(usize, &Offer, Lifetime)> {
    let with_lifetimes = |(n, offer): (usize, &'_ Offer)| {
        offer.lifetimes.iter().map(|lifetime| (n, *lifetime)).collect::<Vec<_>>()
    };
    let numbered = question.offers.iter().enumerate().flat_map(with_lifetimes);
    numbered.filter_map(|(n, lifetime)| Some((n, question.offers.get(n)?, lifetime))).collect()
}

fn parse_answer(typed: &str, choices: &[(usize, &Offer, Lifetime)]) -> Answer {
    let reach = match typed {
        "a" => DenialReach::Waiting,
        "s" => DenialReach::Session,
        "p" => DenialReach::Pause,
        _ => DenialReach::Call,
    };
    let note = typed.strip_prefix("n ").map(str::trim).filter(|note| !note.is_empty());
    let chosen = typed.parse::<usize>().ok().and_then(|n| choices.get(n.checked_sub(1)?));
    match chosen {
        Some((offer, _, lifetime)) => Answer::Allow { offer: *offer, lifetime: *lifetime },
        None => Answer::Deny { note: note.map(str::to_owned), reach },
    }
}

#[cfg(test)]
mod tests;
