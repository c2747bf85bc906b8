//! On real terminals: a pair of which the kernel holds the middle.

mod drawing;
mod noes;
mod person;
mod together;

use super::super::tests::question;
use super::super::{Consequence, Piece, Preview, Verb};
use super::*;
use person::{BOUND, Person};
use rustix::termios::{LocalModes, tcgetattr};
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::oneshot::{self};

fn slot() -> (Slot, oneshot::Receiver<Answer>) {
    let (answer, answered) = oneshot::channel();
    (Slot { answer, working: tokio::sync::mpsc::channel(1).0 }, answered)
}

fn said(answer: oneshot::Receiver<Answer>) -> Answer {
    ended(answer).expect("its slot was dropped")
}

/// The answer to a question that is over; nothing when its slot was dropped.
fn ended(mut answer: oneshot::Receiver<Answer>) -> Option<Answer> {
    let deadline = Instant::now() + BOUND;
    loop {
        match answer.try_recv() {
            Ok(answer) => return Some(answer),
            Err(TryRecvError::Closed) => return None,
            Err(TryRecvError::Empty) => assert!(Instant::now() < deadline, "the question is kept"),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

const ONCE: Answer = Answer::Allow { offer: 0, lifetime: Lifetime::Once };

/// A read of a file, asked for by another name.
fn of_file(id: &str, path: &str, asked_for: &str) -> Question {
    Question { consequences: vec![read(path, asked_for)], ..question(id) }
}

fn read(path: &str, asked_for: &str) -> Consequence {
    Consequence {
        note: Some("3 bytes".into()),
        asked_for: Some(asked_for.into()),
        ..Consequence::new(Verb::Read, vec![Piece::Path(path.into())])
    }
}

/// The rows of a terminal that goes on in the next where a line is too wide.
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

/// Every row with one of these words has our mark before it.
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
    let person = Person::at(80);
    for (line, expected) in
        [("1\n", ONCE), ("\n", NO), ("2\n", NO), ("0\n", NO), ("y\n", NO), ("1x\n", NO), ("\u{4}", NO)]
    {
        let answer = person.is_asked(question("q"));
        person.sees(PROMPT);
        person.types(line);
        assert_eq!(said(answer), expected, "{line:?}");
    }
}

#[test]
fn a_number_counts_once_all_that_is_sent_was_shown_to_its_end() {
    let person = Person::at(80);
    let hidden = format!("{} DROP TABLE customers", "x".repeat(10_000));
    let asked = || Question {
        with: vec![("query".into(), hidden.clone())],
        arguments: vec![("query".into(), hidden.clone())],
        ..question("q")
    };
    let answer = person.is_asked(asked());
    assert!(!person.sees(PROMPT).contains("DROP TABLE"));
    // Neither by itself, nor after details that were left before their end.
    person.types("1\n");
    person.sees(PROMPT);
    person.types("d\n");
    person.sees("q: back. ");
    person.types("q\n");
    person.sees("NOT ALL IS SHOWN");
    person.sees(PROMPT);
    person.types("1\n");
    person.sees(PROMPT);
    person.types("d\n");
    person.sees("q: back. ");
    person.types("e\n");
    assert!(person.sees(" Enter: back. ").contains("DROP TABLE customers"));
    person.types("\n");
    assert!(!person.sees(PROMPT).contains("NOT ALL IS"));
    person.types("1\n");
    assert_eq!(said(answer), ONCE);
    // What is not shown can be denied at once.
    let answer = person.is_asked(asked());
    person.sees(PROMPT);
    person.types("\n");
    assert_eq!(said(answer), NO);
}

#[test]
fn foreign_text_makes_no_line_that_looks_like_ours() {
    for columns in [36_u16, 40, 80, 132] {
        let person = Person::at(columns);
        let width = usize::from(columns);
        // As wide as the terminal: each further line would be one of ours.
        let lines = [
            "A program wants to READ:",
            " READ       | ~/notes.txt",
            " there      | 3 bytes",
            " Your answer: 1",
        ];
        let forged: String = lines.iter().map(|line| format!("FOE {line:<width$}")).collect();
        let mut asked = of_file("q", "/home/u/passwords.txt", &format!("/x/{forged}"));
        let object = ["FOE main", "http://x\" to \"http://y"].map(|text| Piece::Foreign(text.into()));
        let [what, to] = object;
        let push =
            Consequence { verb: Verb::Push, object: vec![what, Piece::Ours(" to "), to], ..read("", "") };
        asked.consequences.insert(0, push);
        asked.consequences.push(Consequence { verb: Verb::Forget, ..read("FOE", "") });
        asked.with = vec![(forged.clone(), forged.replace("FOE", "\nFOE"))];
        asked.also = vec![forged.clone()];
        asked.client.name = forged.clone();
        asked.client.says_it_is = Some(forged.replace(' ', "\n"));
        asked.arguments = vec![(forged.clone(), forged.replace("FOE", "\nFOE\u{4e00}\t"))];
        asked.preview = Some(Preview::Content(forged.replace(' ', "\n")));
        asked.reason = forged.replace(' ', "\u{4e00}");
        asked.offers[0].sentence = forged.clone();
        let answer = person.is_asked(asked.clone());
        let shown = person.sees(PROMPT);
        is_marked(&shown, width, &["FOE", "notes.txt", "Your answer: 1"]);
        assert!(shown.contains(" DELETE     | FOE"), "{shown}");
        assert!(shown.contains("passwords.txt") && shown.contains("A program wants to PUSH:"), "{shown}");
        person.types("d\n");
        let mut all = String::new();
        while !all.ends_with("Enter: back. ") {
            all.push_str(&person.sees("back. "));
            person.types("\n");
        }
        is_marked(&all, width, &["FOE", "notes.txt", "Your answer: 1"]);
        // Its question stands there again, and is answered as one.
        person.sees(PROMPT);
        person.types("\n");
        assert_eq!(said(answer), NO);
    }
}

#[test]
fn what_was_typed_before_the_question_stood_there_counts_for_nothing() {
    let person = Person::at(80);
    // As it is drawn.
    let asked = Instant::now();
    let answer = person.is_asked(question("q"));
    person.sees(PROMPT);
    assert!(asked.elapsed() >= Duration::from_millis(450), "{:?}", asked.elapsed());
    person.types("\n");
    assert_eq!(said(answer), NO);
    // Before, whole and not; and in the half second, until it is quiet.
    person.types("1\n1");
    let answer = person.is_asked(question("q"));
    person.sees("Anything else denies.");
    let mut last = Instant::now();
    for typed in ["1", "\n", "1\n", "1"].repeat(3) {
        std::thread::sleep(Duration::from_millis(60));
        last = Instant::now();
        person.types(typed);
    }
    let shown = person.sees(PROMPT);
    assert!(last.elapsed() >= Duration::from_millis(450), "{:?}", last.elapsed());
    assert!(!shown.contains('1'), "{shown:?}");
    person.types("\n");
    assert_eq!(said(answer), NO);
    // And what comes then does.
    let answer = person.is_asked(question("q"));
    person.sees(PROMPT);
    person.types("1\n");
    assert_eq!(said(answer), ONCE);
}

#[test]
fn a_question_that_is_over_is_withdrawn_and_the_next_one_drawn() {
    let person = Person::at(80);
    let first = person.is_asked(of_file("first", "/home/u/first.txt", "first"));
    person.sees(PROMPT);
    let second = person.is_asked(of_file("second", "/home/u/second.txt", "second"));
    person.types("1");
    person.terminal.withdraw("first", Withdrawn::Cancelled);
    // Taken from the screen, and said in its place.
    person.sees("\u{1b}[J A question is over: its call was cancelled.");
    assert_eq!(ended(first), None);
    let shown = person.sees(PROMPT);
    assert!(shown.contains("/home/u/second.txt") && !shown.contains("first"), "{shown}");
    // The answer that was begun is no part of this one.
    person.types("\n");
    assert_eq!(said(second), NO);
}

#[test]
fn what_waits_unseen_is_dropped_when_it_is_over() {
    let person = Person::at(80);
    let drawn = person.is_asked(question("drawn"));
    person.sees(PROMPT);
    let waiting: Vec<_> = (0..20).map(|n| person.is_asked(question(&n.to_string()))).collect();
    for n in 0..20 {
        person.terminal.withdraw(&n.to_string(), Withdrawn::Cancelled);
    }
    // While the first one still stands there.
    for answer in waiting {
        assert_eq!(ended(answer), None);
    }
    person.types("1\n");
    assert_eq!(said(drawn), ONCE);
}

#[test]
fn on_another_size_it_is_drawn_anew_and_nothing_typed_before_counts() {
    let person = Person::at(80);
    let answer = person.is_asked(of_file("q", &format!("/home/u/{}/x.txt", "y".repeat(70)), "q"));
    person.sees(PROMPT);
    person.types("1");
    person.resizes(50);
    person.sees("\u{1b}[2J");
    let shown = person.sees(PROMPT);
    assert!(
        shown.contains(" READ       | yyyy") && rows(&shown, 50).len() == shown.lines().count(),
        "{shown}"
    );
    person.types("\n");
    assert_eq!(said(answer), NO);
}

#[test]
fn a_terminal_that_is_too_narrow_shows_no_question_and_takes_no_yes() {
    let person = Person::at(20);
    let answer = person.is_asked(question("q"));
    let shown = person.sees(PROMPT);
    assert!(shown.contains("narrower than 36") && !shown.contains("claude"), "{shown}");
    person.types("1\n");
    assert_eq!(said(answer), NO);
    let answer = person.is_asked(question("q"));
    person.sees(PROMPT);
    person.resizes(80);
    person.sees("answer 1");
    person.sees(PROMPT);
    person.types("1\n");
    assert_eq!(said(answer), ONCE);
}

#[test]
fn the_terminal_gets_its_modes_back() {
    let modes = |person: &Person| {
        let modes = tcgetattr(&person.user).unwrap().local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    };
    let person = Person::at(80);
    assert!(modes(&person));
    let deadline = Instant::now() + BOUND;
    // Until it is seen within the half second.
    let _answer = loop {
        let answer = person.is_asked(question("q"));
        person.sees("Anything else denies.");
        if !modes(&person) {
            break answer;
        }
        assert!(Instant::now() < deadline, "what is typed is shown in the half second");
        person.sees(PROMPT);
        person.types("\n");
        said(answer);
    };
    // As at the end of the program.
    person.terminal.tty.restore();
    assert!(modes(&person));
    person.sees(PROMPT);
    assert!(modes(&person));
}

/// Both ends of two pipes, of which the terminal has the others.
fn piped() -> (std::io::PipeWriter, std::io::PipeReader, Terminal) {
    let (input, hands) = std::io::pipe().unwrap();
    let (eyes, output) = std::io::pipe().unwrap();
    (hands, eyes, Terminal::new(input.into(), output.into()).unwrap())
}

#[test]
fn without_a_terminal_lines_are_answers_as_well_and_their_end_is_none() {
    let (mut hands, mut eyes, terminal) = piped();
    hands.write_all(b"1\n").unwrap();
    let (slot, answer) = slot();
    terminal.ask(question("q"), slot);
    let (mut seen, mut piece) = (String::new(), [0; 4096]);
    while !seen.ends_with(PROMPT) {
        let n = eyes.read(&mut piece).unwrap();
        seen.push_str(&String::from_utf8_lossy(&piece[..n]));
    }
    hands.write_all(b"\n").unwrap();
    assert_eq!(said(answer), NO, "what was written before counts for nothing");
    drop(hands);
    let (slot, answer) = self::slot();
    terminal.ask(question("q"), slot);
    assert!(matches!(said(answer), Answer::Unavailable { why } if why.contains("was closed")));
}
