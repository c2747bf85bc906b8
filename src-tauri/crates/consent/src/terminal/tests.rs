//! Tests the terminal front end on pseudoterminals.

mod batches;
mod denials;
mod drawing;
mod user;

use super::super::tests::question;
use super::super::{Consequence, Preview, TextPart, Verb};
use super::*;
use rustix::termios::{LocalModes, tcgetattr};
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use tokio::sync::oneshot::{self, error::TryRecvError};
use user::{SimulatedUser, TIMEOUT};

fn slot() -> (AnswerSlot, oneshot::Receiver<Answer>) {
    let (answer, answered) = oneshot::channel();
    (AnswerSlot { answer, activity: tokio::sync::mpsc::channel(1).0 }, answered)
}

fn answer_of(answer: oneshot::Receiver<Answer>) -> Answer {
    ended(answer).expect("its slot was dropped")
}

/// Waits for the answer. Returns `None` if the slot was dropped without an answer.
fn ended(mut answer: oneshot::Receiver<Answer>) -> Option<Answer> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match answer.try_recv() {
            Ok(answer) => return Some(answer),
            Err(TryRecvError::Closed) => return None,
            Err(TryRecvError::Empty) => assert!(Instant::now() < deadline, "the question is still open"),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

const ONCE: Answer = Answer::Allow { offer: 0, lifetime: Lifetime::Once };

/// Returns a question about reading a file that the agent refers to by a different path.
fn of_file(id: &str, path: &str, asked_for: &str) -> Question {
    Question { consequences: vec![read(path, asked_for)], ..question(id) }
}

fn read(path: &str, asked_for: &str) -> Consequence {
    Consequence {
        note: Some("3 bytes".into()),
        asked_for: Some(asked_for.into()),
        ..Consequence::new(Verb::Read, vec![TextPart::Path(path.into())])
    }
}

/// Returns the rows that a terminal of this width displays, with long lines wrapped.
fn rows(text: &str, columns: usize) -> Vec<String> {
    let broken = |line: &str| {
        let mut rows = vec![String::new()];
        let mut used = 0;
        for c in line.chars() {
            let wide = if c.is_ascii() { 1 } else { 2 };
            if used + wide > columns {
                rows.push(String::new());
                used = 0;
            }
            used += wide;
            rows.last_mut().unwrap().push(c);
        }
        rows
    };
    text.lines().flat_map(broken).collect()
}

/// Asserts that IronCurtain's mark precedes each of these words in its row.
#[track_caller]
fn is_marked(text: &str, columns: usize, words: &[&str]) {
    let rows = rows(text, columns);
    let foreign: Vec<&String> =
        rows.iter().filter(|row| words.iter().any(|word| row.contains(word))).collect();
    assert!(!foreign.is_empty(), "{text}");
    assert!(foreign.iter().all(|row| row.chars().skip(11).take(3).eq(" | ".chars())), "{foreign:#?}");
}

#[test]
fn only_the_number_of_an_answer_allows() {
    let user = SimulatedUser::at(80);
    for (line, expected) in [
        ("1\n", ONCE),
        ("\n", DENY),
        ("2\n", DENY),
        ("0\n", DENY),
        ("y\n", DENY),
        ("1x\n", DENY),
        ("\u{4}", DENY),
    ] {
        let answer = user.is_asked(question("q"));
        user.sees(PROMPT);
        user.types(line);
        assert_eq!(answer_of(answer), expected, "{line:?}");
    }
}

#[test]
fn a_number_allows_only_after_everything_sent_was_shown() {
    let user = SimulatedUser::at(80);
    let hidden = format!("{} DROP TABLE customers", "x".repeat(10_000));
    let asked = || Question {
        with: vec![("query".into(), hidden.clone())],
        arguments: vec![("query".into(), hidden.clone())],
        ..question("q")
    };
    let answer = user.is_asked(asked());
    assert!(!user.sees(PROMPT).contains("DROP TABLE"));
    // The number is rejected before the user has read the details, and after the user left them early.
    user.types("1\n");
    user.sees(PROMPT);
    user.types("d\n");
    user.sees("q: back. ");
    user.types("q\n");
    user.sees("NOT ALL IS SHOWN");
    user.sees(PROMPT);
    user.types("1\n");
    user.sees(PROMPT);
    user.types("d\n");
    user.sees("q: back. ");
    user.types("e\n");
    assert!(user.sees(" Enter: back. ").contains("DROP TABLE customers"));
    user.types("\n");
    assert!(!user.sees(PROMPT).contains("NOT ALL IS"));
    user.types("1\n");
    assert_eq!(answer_of(answer), ONCE);
    // A denial does not require reading the details.
    let answer = user.is_asked(asked());
    user.sees(PROMPT);
    user.types("\n");
    assert_eq!(answer_of(answer), DENY);
}

#[test]
fn foreign_text_cannot_imitate_our_lines() {
    for columns in [36_u16, 40, 80, 132] {
        let user = SimulatedUser::at(columns);
        let width = usize::from(columns);
        // The lines are as wide as the terminal. If they wrapped, a row could look like IronCurtain's own.
        let lines = [
            "A program wants to READ:",
            " READ       | ~/notes.txt",
            " there      | 3 bytes",
            " Your answer: 1",
        ];
        let forged: String = lines.iter().map(|line| format!("FOE {line:<width$}")).collect();
        let mut asked = of_file("q", "/home/u/passwords.txt", &format!("/x/{forged}"));
        let object = ["FOE main", "http://x\" to \"http://y"].map(|text| TextPart::Untrusted(text.into()));
        let [what, to] = object;
        let push =
            Consequence { verb: Verb::Push, object: vec![what, TextPart::Fixed(" to "), to], ..read("", "") };
        asked.consequences.insert(0, push);
        asked.consequences.push(Consequence { verb: Verb::Forget, ..read("FOE", "") });
        asked.with = vec![(forged.clone(), forged.replace("FOE", "\nFOE"))];
        asked.also = vec![forged.clone()];
        asked.client.name = forged.clone();
        asked.client.claimed_name = Some(forged.replace(' ', "\n"));
        asked.arguments = vec![(forged.clone(), forged.replace("FOE", "\nFOE\u{4e00}\t"))];
        asked.preview = Some(Preview::Content(forged.replace(' ', "\n")));
        asked.reason = forged.replace(' ', "\u{4e00}");
        asked.offers[0].sentence = forged.clone();
        let answer = user.is_asked(asked.clone());
        let shown = user.sees(PROMPT);
        is_marked(&shown, width, &["FOE", "notes.txt", "Your answer: 1"]);
        assert!(shown.contains(" DELETE     | FOE"), "{shown}");
        assert!(shown.contains("passwords.txt") && shown.contains("A program wants to PUSH:"), "{shown}");
        user.types("d\n");
        let mut all = String::new();
        while !all.ends_with("Enter: back. ") {
            all.push_str(&user.sees("back. "));
            user.types("\n");
        }
        is_marked(&all, width, &["FOE", "notes.txt", "Your answer: 1"]);
        // The terminal shows the question again.
        user.sees(PROMPT);
        user.types("\n");
        assert_eq!(answer_of(answer), DENY);
    }
}

#[test]
fn input_before_the_question_is_drawn_is_discarded() {
    let user = SimulatedUser::at(80);
    // The prompt appears only after half a second.
    let asked = Instant::now();
    let answer = user.is_asked(question("q"));
    user.sees(PROMPT);
    assert!(asked.elapsed() >= Duration::from_millis(450), "{:?}", asked.elapsed());
    user.types("\n");
    assert_eq!(answer_of(answer), DENY);
    // This input, with and without a line end, arrives before the question or in its first half second.
    user.types("1\n1");
    let answer = user.is_asked(question("q"));
    user.sees("Anything else denies.");
    let mut last = Instant::now();
    for typed in ["1", "\n", "1\n", "1"].repeat(3) {
        std::thread::sleep(Duration::from_millis(60));
        last = Instant::now();
        user.types(typed);
    }
    let shown = user.sees(PROMPT);
    assert!(last.elapsed() >= Duration::from_millis(450), "{:?}", last.elapsed());
    assert!(!shown.contains('1'), "{shown:?}");
    user.types("\n");
    assert_eq!(answer_of(answer), DENY);
    // Input after the prompt is used.
    let answer = user.is_asked(question("q"));
    user.sees(PROMPT);
    user.types("1\n");
    assert_eq!(answer_of(answer), ONCE);
}

#[test]
fn a_withdrawn_question_is_replaced_by_the_next() {
    let user = SimulatedUser::at(80);
    let first = user.is_asked(of_file("first", "/home/u/first.txt", "first"));
    user.sees(PROMPT);
    let second = user.is_asked(of_file("second", "/home/u/second.txt", "second"));
    user.types("1");
    user.terminal.withdraw("first", WithdrawalReason::Cancelled);
    // A message replaces the erased question.
    user.sees("\u{1b}[J Question closed: its call was cancelled.");
    assert_eq!(ended(first), None);
    let shown = user.sees(PROMPT);
    assert!(shown.contains("/home/u/second.txt") && !shown.contains("first"), "{shown}");
    // The partly typed answer was discarded.
    user.types("\n");
    assert_eq!(answer_of(second), DENY);
}

#[test]
fn a_hidden_pending_question_is_dropped_when_withdrawn() {
    let user = SimulatedUser::at(80);
    let drawn = user.is_asked(question("drawn"));
    user.sees(PROMPT);
    let waiting: Vec<_> = (0..20).map(|n| user.is_asked(question(&n.to_string()))).collect();
    for n in 0..20 {
        user.terminal.withdraw(&n.to_string(), WithdrawalReason::Cancelled);
    }
    // The first question remains on the screen.
    for answer in waiting {
        assert_eq!(ended(answer), None);
    }
    user.types("1\n");
    assert_eq!(answer_of(drawn), ONCE);
}

#[test]
fn a_resize_redraws_and_discards_input() {
    let user = SimulatedUser::at(80);
    let answer = user.is_asked(of_file("q", &format!("/home/u/{}/x.txt", "y".repeat(70)), "q"));
    user.sees(PROMPT);
    user.types("1");
    user.resizes(50);
    user.sees("\u{1b}[2J");
    let shown = user.sees(PROMPT);
    assert!(
        shown.contains(" READ       | yyyy") && rows(&shown, 50).len() == shown.lines().count(),
        "{shown}"
    );
    user.types("\n");
    assert_eq!(answer_of(answer), DENY);
}

#[test]
fn a_too_narrow_terminal_shows_and_allows_nothing() {
    let user = SimulatedUser::at(20);
    let answer = user.is_asked(question("q"));
    let shown = user.sees(PROMPT);
    assert!(shown.contains("narrower than 36") && !shown.contains("claude"), "{shown}");
    user.types("1\n");
    assert_eq!(answer_of(answer), DENY);
    let answer = user.is_asked(question("q"));
    user.sees(PROMPT);
    user.resizes(80);
    user.sees("answer 1");
    user.sees(PROMPT);
    user.types("1\n");
    assert_eq!(answer_of(answer), ONCE);
}

#[test]
fn the_terminal_modes_are_restored() {
    let modes = |user: &SimulatedUser| {
        let modes = tcgetattr(&user.tty).unwrap().local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    };
    let user = SimulatedUser::at(80);
    assert!(modes(&user));
    let deadline = Instant::now() + TIMEOUT;
    // Retries until the check sees the changed terminal modes, which last only half a second.
    let _answer = loop {
        let answer = user.is_asked(question("q"));
        user.sees("Anything else denies.");
        if !modes(&user) {
            break answer;
        }
        assert!(Instant::now() < deadline, "echo is still on in the half second");
        user.sees(PROMPT);
        user.types("\n");
        answer_of(answer);
    };
    // Restores the modes, as on exit.
    user.terminal.tty.restore();
    assert!(modes(&user));
    user.sees(PROMPT);
    assert!(modes(&user));
}

/// Creates a terminal on two pipes. Returns the other end of each pipe and the terminal.
fn piped() -> (std::io::PipeWriter, std::io::PipeReader, Terminal) {
    let (input, keyboard) = std::io::pipe().unwrap();
    let (screen, output) = std::io::pipe().unwrap();
    (keyboard, screen, Terminal::new(input.into(), output.into()).unwrap())
}

#[test]
fn pipes_work_and_their_end_is_not_an_answer() {
    let (mut keyboard, mut screen, terminal) = piped();
    keyboard.write_all(b"1\n").unwrap();
    let (slot, answer) = slot();
    terminal.ask(question("q"), slot);
    let (mut seen, mut piece) = (String::new(), [0; 4096]);
    while !seen.ends_with(PROMPT) {
        let n = screen.read(&mut piece).unwrap();
        seen.push_str(&String::from_utf8_lossy(&piece[..n]));
    }
    keyboard.write_all(b"\n").unwrap();
    assert_eq!(answer_of(answer), DENY, "earlier input does not count");
    drop(keyboard);
    let (slot, answer) = self::slot();
    terminal.ask(question("q"), slot);
    assert!(matches!(answer_of(answer), Answer::Unavailable { why } if why.contains("was closed")));
}
