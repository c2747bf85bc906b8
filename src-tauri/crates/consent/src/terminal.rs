//! Asking on a terminal, and not asking at all: for machines without a display.
//!
//! - Only the number of an answer allows, typed after the question stood there, unchanged, for half a second. Everything
//!   else denies. Where not all of it fits on the screen, a number counts once the details were read to their end.
//! - What is not ours stands behind a mark, on lines that the terminal never breaks: see [`rows`].

mod batch;
mod inbox;
mod quote;
mod rows;
mod tty;

use super::{Answer, Consent, DenialReach, Lifetime, Offer, Question, Slot, Withdrawn};
use batch::Batch;
use inbox::{Inbox, Next, Outbox};
use ironcurtain_protocol::AskedOn;
pub use quote::pieces;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tty::{Instead, Size, Tty};

/// A plain no.
const NO: Answer = Answer::Deny { note: None, reach: DenialReach::Call };

/// The prompt before an answer.
const PROMPT: &str = " Your answer: ";

/// Asks on a terminal. Anything but the number of an answer denies; so does the end of the input.
#[derive(Debug)]
pub struct Terminal {
    questions: Outbox,
    tty: Arc<Tty>,
}

/// Denies everything that would have to be asked.
#[derive(Debug)]
pub struct NobodyToAsk;

impl Terminal {
    /// Asks through these. The thread that does ends with it.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn new(input: OwnedFd, output: OwnedFd) -> std::io::Result<Self> {
        let (questions, inbox) = inbox::boxes()?;
        let tty = Arc::new(Tty::new(input.into(), output.into()));
        let asks = Arc::clone(&tty);
        std::thread::Builder::new().name("terminal".to_owned()).spawn(move || serve(&asks, &inbox))?;
        Ok(Self { questions, tty })
    }
}

impl Consent for Terminal {
    fn asked_on(&self) -> AskedOn {
        AskedOn::Terminal
    }

    fn ask(&self, question: Question, slot: Slot) {
        self.questions.put(question, slot);
    }

    fn withdraw(&self, question: &str, why: Withdrawn) {
        self.questions.take_back(question, why);
    }

    fn tell(&self, notice: &str) {
        self.questions.tell(notice);
    }
}

impl Drop for Terminal {
    /// The program may end before the thread does.
    fn drop(&mut self) {
        self.tty.restore();
    }
}

impl Consent for NobodyToAsk {
    fn ask(&self, _: Question, slot: Slot) {
        let why = "IronCurtain runs without a display, so nobody can be asked; start its app to be asked";
        slot.answer(Answer::Unavailable { why: why.to_owned() });
    }

    fn withdraw(&self, _: &str, _: Withdrawn) {}

    fn asked_on(&self) -> AskedOn {
        AskedOn::Nobody
    }
}

fn serve(tty: &Tty, inbox: &Inbox) {
    while let Some(next) = inbox.next() {
        let (question, slot) = match next {
            Next::Question(question, slot) => (*question, slot),
            Next::Notice(notice) => {
                let lines = rows::notice(&notice, tty.size().columns);
                // Whether it can still be read is seen at the next question.
                let _ = tty.write(&format!("\n{}\n", lines.join("\n")));
                continue;
            }
        };
        let answer = match asked(tty, inbox, &question, &slot) {
            Ok(answer) => answer,
            Err(Instead::Over) => {
                say_over(tty, inbox.why_over());
                continue;
            }
            // The size is seen to there.
            Err(Instead::Gone | Instead::Resized) => {
                let why = "the terminal that questions are asked on is gone; start IronCurtain again";
                Answer::Unavailable { why: why.to_owned() }
            }
        };
        let said = if matches!(answer, Answer::Allow { .. }) { "Allowed." } else { "Denied." };
        let said = if slot.is_over() { "It was over already; nothing was allowed." } else { said };
        slot.answer(answer);
        // Whether it can still be read is seen at the next question.
        let _ = tty.write(&format!(" {said}\n\n"));
    }
}

/// Asks until there is an answer, on a screen of whatever size.
fn asked(tty: &Tty, inbox: &Inbox, question: &Question, slot: &Slot) -> Result<Answer, Instead> {
    let choices = choices(question);
    let mut size = tty.size();
    loop {
        match asked_at(size, tty, inbox, question, (slot, &choices)) {
            Err(Instead::Resized) => {
                size = tty.size();
                tty.clear()?;
            }
            answered => return answered,
        }
    }
}

fn asked_at(
    size: Size,
    tty: &Tty,
    inbox: &Inbox,
    question: &Question,
    (slot, choices): (&Slot, &[(usize, &Offer, Lifetime)]),
) -> Result<Answer, Instead> {
    let mut was_read = false;
    loop {
        let batch = Batch::around(question, inbox);
        if size.columns < rows::NARROWEST {
            tty.draw(&rows::too_narrow(size.columns))?;
        } else {
            let mut screen = rows::question(question, choices, size.columns, was_read);
            was_read |= screen.is_whole;
            screen.lines.extend(batch.iter().flat_map(|batch| batch.hint(size.columns)));
            tty.draw(&screen.lines)?;
        }
        tty.hush(inbox, size)?;
        tty.write(PROMPT)?;
        let line = tty.line(inbox, size)?;
        if size.columns < rows::NARROWEST {
            return Ok(NO);
        }
        match (line.trim(), batch) {
            ("d", _) => {
                slot.working();
                was_read |= leaf_through(&rows::details(question, size.columns), size, tty, inbox, slot)?;
            }
            ("b", Some(batch)) => {
                slot.working();
                if let Some(answer) = batch.answered(size, tty, inbox, slot)? {
                    return Ok(answer);
                }
            }
            (said, _) => {
                let answer = understood(said, choices);
                // Asked again: nobody agrees to what was not shown.
                if was_read || !matches!(answer, Answer::Allow { .. }) {
                    return Ok(answer);
                }
                slot.working();
            }
        }
        tty.clear()?;
    }
}

/// Shows lines a screen at a time, or all the rest at once; `true` if the last of them was shown.
fn leaf_through(
    lines: &[String],
    size: Size,
    tty: &Tty,
    inbox: &Inbox,
    slot: &Slot,
) -> Result<bool, Instead> {
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
        slot.working();
    }
    tty.write(" Enter: back. ")?;
    let is_left = tty.line(inbox, size)?.trim() == "q";
    slot.working();
    Ok(!is_left)
}

/// Takes the question from the screen and says why.
fn say_over(tty: &Tty, why: Withdrawn) {
    let why = match why {
        Withdrawn::Deadline => "nobody answered in time",
        Withdrawn::Cancelled => "its call was taken back",
        Withdrawn::SessionEnded => "its session ended",
        Withdrawn::Settled => "another answer settled it",
        Withdrawn::Stopped => "you stopped it",
    };
    let words = rows::wrapped(&format!("A question is over: {why}."), tty.size().columns);
    // Whether it can still be read is seen at the next question.
    let _ = tty.take_away().and_then(|()| tty.write(&format!("{}\n\n", words.join("\n"))));
}

/// Every offer with every lifetime, in the order they are numbered from 1.
fn choices(question: &Question) -> Vec<(usize, &Offer, Lifetime)> {
    let with_lifetimes = |(n, offer): (usize, &'_ Offer)| {
        offer.lifetimes.iter().map(|lifetime| (n, *lifetime)).collect::<Vec<_>>()
    };
    let numbered = question.offers.iter().enumerate().flat_map(with_lifetimes);
    numbered.filter_map(|(n, lifetime)| Some((n, question.offers.get(n)?, lifetime))).collect()
}

fn understood(said: &str, choices: &[(usize, &Offer, Lifetime)]) -> Answer {
    let reach = match said {
        "a" => DenialReach::Waiting,
        "s" => DenialReach::Session,
        "p" => DenialReach::Pause,
        _ => DenialReach::Call,
    };
    let note = said.strip_prefix("n ").map(str::trim).filter(|note| !note.is_empty());
    let chosen = said.parse::<usize>().ok().and_then(|n| choices.get(n.checked_sub(1)?));
    match chosen {
        Some((offer, _, lifetime)) => Answer::Allow { offer: *offer, lifetime: *lifetime },
        None => Answer::Deny { note: note.map(str::to_owned), reach },
    }
}

#[cfg(test)]
mod tests;
