//! Asking on a terminal, and not asking at all: for machines without a display.

use super::{Answer, Consent, Lifetime, Preview, Question, Slot, Target, Withdrawn, visible};
use std::io::{BufRead, Write};
use std::sync::mpsc;

/// The most columns of a line that would be written: with its mark, 36, which the narrowest of terminals have.
const WIDEST: usize = 36 - 4;

/// The most lines of a preview: about half of a screen of 24, since the question has to stay on it.
const MOST_LINES: usize = 12;

/// Asks on a terminal. Anything but the number of an offer denies; so does the end of the input.
#[derive(Debug)]
pub struct Terminal(mpsc::Sender<(Question, Slot)>);

/// Denies everything that would have to be asked.
#[derive(Debug)]
pub struct NobodyToAsk;

impl Terminal {
    /// Asks through these. The thread that does ends with the program.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn new(
        input: impl BufRead + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> std::io::Result<Self> {
        let (send, questions) = mpsc::channel();
        std::thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(move || ask_all(&questions, input, output))?;
        Ok(Self(send))
    }
}

impl Consent for Terminal {
    fn ask(&self, question: Question, slot: Slot) {
        // Without the thread the slot is dropped, which denies.
        let _ = self.0.send((question, slot));
    }

    /// The line stays on the terminal; an answer to it is ignored.
    fn withdraw(&self, _: &str, _: Withdrawn) {}
}

impl Consent for NobodyToAsk {
    fn ask(&self, _: Question, slot: Slot) {
        let why = "IronCurtain runs without a display, so nobody can be asked; start its app to be asked";
        slot.answer(Answer::Unavailable { why: why.to_owned() });
    }

    fn withdraw(&self, _: &str, _: Withdrawn) {}
}

fn ask_all(questions: &mpsc::Receiver<(Question, Slot)>, mut input: impl BufRead, mut output: impl Write) {
    while let Ok((question, slot)) = questions.recv() {
        if slot.is_over() {
            continue;
        }
        let choices = choices(&question);
        if write!(output, "{}", text(&question, &choices)).and_then(|()| output.flush()).is_err() {
            return;
        }
        let mut line = String::new();
        if !matches!(input.read_line(&mut line), Ok(n) if n > 0) {
            return;
        }
        let chosen = line.trim().parse::<usize>().ok().and_then(|n| choices.get(n.checked_sub(1)?));
        let (answer, said) = match chosen {
            Some(&(offer, lifetime)) => (Answer::Allow { offer, lifetime }, "Allowed."),
            None => (Answer::Deny { note: None }, "Denied."),
        };
        let said = if slot.is_over() { "It was over already; nothing was allowed." } else { said };
        slot.answer(answer);
        if writeln!(output, "  {said}\n").is_err() {
            return;
        }
    }
}

/// Every offer with every lifetime, in the order they are numbered from 1.
fn choices(question: &Question) -> Vec<(usize, Lifetime)> {
    let with_lifetimes = |(n, offer): (usize, &super::Offer)| {
        offer.lifetimes.iter().map(move |lifetime| (n, *lifetime)).collect::<Vec<_>>()
    };
    question.offers.iter().enumerate().flat_map(with_lifetimes).collect()
}

fn text(question: &Question, choices: &[(usize, Lifetime)]) -> String {
    // First, so that nothing stands between what is asked about and the answer.
    let mut text =
        question.preview.as_ref().map(|preview| format!("\n{}", previewed(preview))).unwrap_or_default();
    text.push_str(&format!("\n{} wants to {}:\n", question.client.name, question.verb.word().to_uppercase()));
    for item in &question.items {
        let there = match item.target {
            Target::Missing => "new".to_owned(),
            Target::File(bytes) => format!("{bytes} bytes"),
            Target::Folder => "folder".to_owned(),
            Target::Special => "not a regular file".to_owned(),
        };
        text.push_str(&format!("  {}  ({there})\n", item.path));
        if let Some(asked) = &item.asked_for {
            text.push_str(&format!("      asked for as {asked}\n"));
        }
    }
    if let Some(host) = &question.host {
        text.push_str(&format!("  {}  (host)\n", host.target));
        if let Some(address) = &host.address {
            text.push_str(&format!("      whole address {address}\n"));
        }
    }
    let sandboxed = if question.sandboxed { "sandboxed" } else { "NOT SANDBOXED" };
    let tool = question.tool.as_ref().map(|tool| format!(", {tool}")).unwrap_or_default();
    text.push_str(&format!("  How   {} server{tool}, {sandboxed}\n", question.server));
    text.push_str(&format!("  Why   {}\n", question.reason));
    for (n, (offer, lifetime)) in choices.iter().enumerate() {
        if let Some(offer) = question.offers.get(*offer) {
            text.push_str(&format!("  {:>2}  Allow {}, {}\n", n + 1, offer.label, lifetime.words()));
        }
    }
    text.push_str("  Enter denies. Your answer: ");
    text
}

/// The start of what would be written, each line behind a mark, so that none can be taken for one of ours: also not where
/// a narrow terminal would go on in the next line. How much is left out is said, without the mark.
fn previewed(preview: &Preview) -> String {
    let (title, content) = match preview {
        Preview::Content(content) => ("What it would write", content),
        Preview::Diff(diff) => ("What it would change", diff),
    };
    let content = visible::lines(content);
    let mut lines = content.lines().flat_map(pieces);
    let shown: String = lines.by_ref().take(MOST_LINES).map(|piece| format!("  | {piece}\n")).collect();
    let left_out = match lines.count() {
        0 => String::new(),
        1 => "  ... 1 more line, not shown\n".to_owned(),
        more => format!("  ... {more} more lines, not shown\n"),
    };
    format!("  {title}:\n{shown}{left_out}")
}

/// A line in pieces that are not wider than [`WIDEST`]; an empty one is one piece.
fn pieces(line: &str) -> Vec<String> {
    let (mut pieces, mut piece, mut width) = (Vec::new(), String::new(), 0);
    for c in line.chars() {
        // Wider than most are, and never narrower.
        let columns = match c {
            '\t' => 8,
            ' '..='~' => 1,
            _ => 2,
        };
        if width + columns > WIDEST {
            pieces.push(std::mem::take(&mut piece));
            width = 0;
        }
        piece.push(c);
        width += columns;
    }
    pieces.push(piece);
    pieces
}

#[cfg(test)]
mod tests {
    use super::super::{Broker, Outcome, tests::question};
    use super::*;
    use std::io::Cursor;
    use std::sync::Arc;

    async fn said(input: &'static str) -> Outcome {
        let terminal = Terminal::new(Cursor::new(input), std::io::sink()).unwrap();
        Broker::new(Arc::new(terminal)).ask(question("q"), std::future::pending()).await
    }

    #[tokio::test]
    async fn only_the_number_of_an_offer_allows() {
        assert_eq!(said("1\n").await, Outcome::Allowed { offer: 0, lifetime: Lifetime::Once });
        for no in ["\n", "2\n", "0\n", "y\n", "1x\n", "-1\n"] {
            assert_eq!(said(no).await, Outcome::Denied(None), "{no:?}");
        }
        assert_eq!(said("").await, Outcome::Closed);
    }

    #[tokio::test]
    async fn a_question_that_is_over_is_not_asked() {
        let (slot, over) = slot();
        drop(over);
        let (slot_two, answer) = self::slot();
        let (send, questions) = mpsc::channel();
        send.send((question("one"), slot)).unwrap();
        send.send((question("two"), slot_two)).unwrap();
        drop(send);
        ask_all(&questions, Cursor::new("1\n"), std::io::sink());
        assert_eq!(answer.await.unwrap(), Answer::Allow { offer: 0, lifetime: Lifetime::Once });
    }

    fn slot() -> (Slot, tokio::sync::oneshot::Receiver<Answer>) {
        let (answer, answered) = tokio::sync::oneshot::channel();
        (Slot { answer, working: tokio::sync::mpsc::channel(1).0 }, answered)
    }

    #[test]
    fn what_would_be_written_is_shown_and_cannot_pass_for_a_line_of_ours() {
        let shown = |preview| text(&Question { preview, ..question("q") }, &[]);
        assert!(!shown(None).contains("What it would"));
        let content =
            format!("one\n   1  Allow all, always\n\x1b[2J\u{202e}\n\n{}   1  Allow", " ".repeat(WIDEST));
        let said = shown(Some(Preview::Content(content)));
        let wide = format!("  | {}\n", " ".repeat(32));
        let expected = [
            "\n  What it would write:\n  | one\n  |    1  Allow all, always\n  | \\u{1b}[2J\\u{202e}\n  | \n",
            &wide,
            "  |    1  Allow\n\n",
        ];
        assert!(said.starts_with(&expected.concat()), "{said}");
        let said = shown(Some(Preview::Diff("-old\n+new".into())));
        assert!(said.starts_with("\n  What it would change:\n  | -old\n  | +new\n\n"), "{said}");
    }

    #[test]
    fn a_long_preview_leaves_the_question_next_to_its_answer_and_says_what_is_left_out() {
        let asked = |preview| text(&Question { preview, ..question("q") }, &[(0, Lifetime::Once)]);
        let plain = asked(None);
        let preview = |lines: usize| {
            let said = asked(Some(Preview::Content("   1  Allow\n".repeat(lines))));
            assert!(said.ends_with(&plain), "{said}");
            said.strip_suffix(&plain).unwrap().lines().skip(2).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(preview(12), ["  |    1  Allow"; 12]);
        for (lines, left_out) in
            [(13, "  ... 1 more line, not shown"), (500, "  ... 488 more lines, not shown")]
        {
            let shown = preview(lines);
            assert_eq!(shown.split_last().unwrap(), (&left_out.to_owned(), &preview(12)[..]));
        }
        let said = asked(Some(Preview::Content("x".repeat(WIDEST * 14))));
        assert!(said.contains("  ... 2 more lines, not shown\n"), "{said}");
        assert!(said.lines().take(15).all(|line| line.chars().count() <= 36), "{said}");
    }

    #[tokio::test]
    async fn with_nobody_to_ask_the_agent_is_told_so() {
        let outcome = Broker::new(Arc::new(NobodyToAsk)).ask(question("q"), std::future::pending()).await;
        assert!(matches!(outcome, Outcome::Unavailable(why) if why.contains("without a display")));
    }
}
