//! Lays out a question as terminal rows: a label, a mark and text from other programs.
//!
//! - INVARIANT: text from other programs appears only after the label and the mark; all other rows contain only
//!   IronCurtain's words and numbers. No row is wider than the terminal, so the terminal never wraps one.
//! - A screen that omits part of the sent data says so and accepts no approval.
//! - Every label starts with a Latin letter, because some terminals derive a row's direction from its first letter.

use super::quote::{columns, ends, head, line, pieces};
use crate::{Consequence, Lifetime, Offer, Piece, Question, UNSANDBOXED};

/// Minimum terminal width for a question, in columns.
pub(super) const NARROWEST: usize = 36;

const LABEL: usize = 10;

/// Maximum number of rows for the preview on the first screen. The details show the rest.
const MAX_LINES: usize = 12;
const MAX_EFFECTS: usize = 20;
/// Maximum number of rows for one effect.
const LINES_PER_EFFECT: usize = 4;
const MAX_ARGUMENTS: usize = 12;
const LINES_OF_AN_ARGUMENT: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Row {
    /// IronCurtain's own text.
    Ours(String),
    /// A label, followed by text from another program.
    Foreign(String, Text),
}

/// Text from another program, and how to shorten it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    /// Only the start, on one row.
    Head(String),
    /// The start and the end, on one row.
    Ends(String),
    /// Several rows. Rows in the middle are omitted if there are too many.
    Several(String),
    /// The whole text, on as many rows as needed.
    All(String),
    /// The start, on at most this many rows.
    Lines(String, usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Screen {
    pub(super) lines: Vec<String>,
    /// `true` if the screen shows everything that the call would send.
    pub(super) is_whole: bool,
}

/// Returns the first screen of a question. `was_read` is `true` if the user has read the details to the end.
pub(super) fn question(
    question: &Question,
    choices: &[(usize, &Offer, Lifetime)],
    width: usize,
    was_read: bool,
) -> Screen {
    // The longest text comes first, so that the effects are directly above the answers.
    let mut rows = preview(question, MAX_LINES);
    rows.extend(question.host.iter().map(|host| foreign("machine", host, Text::All)));
    rows.extend(who(question));
    rows.extend(how(question));
    rows.extend(effects(question, MAX_EFFECTS));
    rows.extend(
        question.with.iter().take(MAX_ARGUMENTS).map(|argument| with(argument, LINES_OF_AN_ARGUMENT)),
    );
    rows.extend(left_out(question.with.len(), MAX_ARGUMENTS, "arguments"));
    let is_whole = question.with.len() <= MAX_ARGUMENTS
        && question.consequences.len() <= MAX_EFFECTS
        && sent(question).iter().all(|row| !is_cut(row, width));
    rows.extend(question.also.iter().map(|also| foreign("also", also, Text::All)));
    let mut last = None;
    for (n, (at, offer, lifetime)) in choices.iter().enumerate() {
        if last != Some(*at) {
            rows.push(Row::Foreign("if allowed".to_owned(), Text::All(line(&offer.sentence))));
            last = Some(*at);
        }
        let label = format!("answer {}", n + 1);
        rows.push(Row::Foreign(label, Text::Head(format!("{}, {}", lifetime.words(), line(&offer.label)))));
    }
    let session = format!("denies {} until this session ends", question.denial);
    rows.push(foreign("answer s", &session, Text::All));
    rows.push(Row::Ours(
        "a denies this and the agent's other pending questions. p denies and pauses the agent. n with a text denies and sends \
         the agent your text."
            .to_owned(),
    ));
    rows.extend(question.notice.iter().map(|notice| foreign("WARNING", notice, Text::All)));
    rows.extend(worst(question));
    let words = if is_whole || was_read {
        "Type an answer's number to allow, or d for all details. Anything else denies."
    } else {
        "NOT ALL IS SHOWN: to allow, first type d and read to the end. Anything else denies."
    };
    rows.push(Row::Ours(words.to_owned()));
    Screen { lines: drawn(rows, width), is_whole }
}

/// Returns the rows of the first screen that show the sent data.
fn sent(question: &Question) -> Vec<Row> {
    let mut rows = preview(question, MAX_LINES);
    rows.extend(effects(question, MAX_EFFECTS));
    rows.extend(question.with.iter().map(|argument| with(argument, LINES_OF_AN_ARGUMENT)));
    rows
}

/// Returns `true` if the row shows only part of its text at this width.
fn is_cut(row: &Row, width: usize) -> bool {
    let room = room(width);
    match row {
        Row::Ours(_) | Row::Foreign(_, Text::All(_)) => false,
        Row::Foreign(_, Text::Head(text) | Text::Ends(text)) => columns(text) > room,
        Row::Foreign(_, Text::Several(text)) => columns(text) > room * LINES_PER_EFFECT,
        Row::Foreign(_, Text::Lines(text, most)) => pieces(text, room).len() > *most,
    }
}

/// Returns an argument's row, shortened to at most `most` terminal rows.
fn with((name, value): &(String, String), most: usize) -> Row {
    Row::Foreign("with".to_owned(), Text::Lines(format!("{} = {value}", line(name)), most))
}

/// Returns the details of a question without omissions.
pub(super) fn details(question: &Question, width: usize) -> Vec<String> {
    let mut rows = effects(question, usize::MAX);
    rows.extend(question.also.iter().map(|also| foreign("also", also, Text::All)));
    rows.extend(question.offers.iter().map(|offer| foreign("if allowed", &offer.sentence, Text::All)));
    rows.extend(who(question));
    rows.extend(how(question));
    rows.push(foreign("command", &question.server_command, Text::All));
    rows.push(foreign("session", &question.session, Text::All));
    for process in &question.client.chain {
        let exe = process.exe.as_deref().unwrap_or("its file could not be read");
        rows.push(foreign("process", &format!("{} {} {exe}", process.pid, process.name), Text::All));
    }
    for (name, value) in &question.arguments {
        rows.push(foreign("argument", name, Text::All));
        rows.push(Row::Foreign("value".to_owned(), Text::All(value.clone())));
    }
    rows.extend(preview(question, usize::MAX));
    drawn(whole(rows), width)
}

/// Returns several questions from one agent without omissions, each with the effect of allowing it once.
pub(super) fn batch(questions: &[Question], width: usize) -> Vec<String> {
    let mut rows: Vec<Row> = questions.first().map(who).unwrap_or_default();
    for (n, question) in questions.iter().enumerate() {
        rows.push(Row::Ours(format!("Call {} of {}:", n + 1, questions.len())));
        rows.extend(how(question));
        rows.extend(effects(question, usize::MAX));
        rows.extend(question.with.iter().map(|argument| with(argument, usize::MAX)));
        rows.extend(preview(question, usize::MAX));
        rows.extend(question.also.iter().map(|also| foreign("also", also, Text::All)));
        rows.extend(question.offers.first().map(|offer| foreign("if allowed", &offer.sentence, Text::All)));
    }
    drawn(whole(rows), width)
}

/// Returns the rows with shortened texts replaced by the full texts.
fn whole(rows: Vec<Row>) -> Vec<Row> {
    let whole = |row| match row {
        Row::Foreign(label, Text::Head(text) | Text::Ends(text) | Text::Several(text)) => {
            Row::Foreign(label, Text::All(text))
        }
        whole @ (Row::Ours(_) | Row::Foreign(_, Text::All(_) | Text::Lines(..))) => whole,
    };
    rows.into_iter().map(whole).collect()
}

/// Returns the rows for at most `most` effects of the call, worst first.
fn effects(question: &Question, most: usize) -> Vec<Row> {
    let worst = question.consequences.iter().take(1);
    let who = if question.has_server() { "A program" } else { "Another desktop" };
    let mut rows: Vec<Row> = worst
        .map(|worst| Row::Ours(format!("{who} wants to {}:", worst.verb.word().to_uppercase())))
        .collect();
    rows.extend(question.consequences.iter().take(most).flat_map(effect));
    rows.extend(left_out(question.consequences.len(), most, "effects"));
    rows
}

/// Returns rows that repeat the worst effect if there are several effects, because its first row may have scrolled off
/// the screen.
fn worst(question: &Question) -> Vec<Row> {
    match question.consequences.as_slice() {
        [worst, _, ..] => {
            let (all, verb) = (question.consequences.len(), worst.verb.word().to_uppercase());
            let words = format!("The most serious of these {all} effects: {verb}");
            vec![Row::Ours(words), foreign("worst", &object(&worst.object), Text::Ends)]
        }
        [] | [_] => Vec::new(),
    }
}

fn effect(effect: &Consequence) -> Vec<Row> {
    let words = effect.verb.word().to_uppercase();
    let mut rows = Vec::new();
    let label = match words.split_once(' ') {
        None => &words,
        Some((first, _)) => {
            rows.push(Row::Ours(format!("{words}:")));
            first
        }
    };
    rows.push(foreign(label, &object(&effect.object), Text::Several));
    rows.extend(effect.note.iter().map(|note| foreign("note", note, Text::Several)));
    rows.extend(effect.asked_for.iter().map(|asked| foreign("asked as", asked, Text::Several)));
    rows.extend(
        effect.out_of.iter().map(|folder| foreign("LINK OUT", &format!("of {folder}"), Text::Several)),
    );
    if effect.allowed {
        rows.push(Row::Ours("  (already allowed)".to_owned()));
    }
    rows
}

/// Joins an effect's pieces. Quotes text from other programs so that it cannot be mistaken for IronCurtain's.
fn object(pieces: &[Piece]) -> String {
    let quoted = |text: &str| match pieces {
        [_] => text.to_owned(),
        _ => format!("\"{}\"", text.replace('"', "\\\"")),
    };
    let one = |piece: &Piece| match piece {
        Piece::Ours(words) => (*words).to_owned(),
        Piece::Path(text) | Piece::Foreign(text) => quoted(text),
    };
    pieces.iter().map(one).collect()
}

fn who(question: &Question) -> Vec<Row> {
    let client = &question.client;
    let mut rows = vec![foreign("program", &client.name, Text::Head)];
    match &client.exe {
        Some(exe) => rows.push(foreign("file", exe, Text::Ends)),
        None if !question.has_server() => {}
        None => rows.push(Row::Ours("Unknown program: its file could not be read.".to_owned())),
    }
    let parents: Vec<&str> = client.chain.iter().skip(1).take(2).map(|process| &*process.name).collect();
    if !parents.is_empty() {
        rows.push(foreign("started by", &parents.join(" in "), Text::Head));
    }
    rows.extend(client.cwd.iter().map(|cwd| foreign("in", cwd, Text::Ends)));
    rows.extend(client.says_it_is.iter().map(|claim| foreign("says it is", claim, Text::Head)));
    rows.extend(client.label.iter().map(|label| foreign("own label", label, Text::Head)));
    rows
}

fn how(question: &Question) -> Vec<Row> {
    let server = question.has_server().then(|| foreign("server", &question.server, Text::Head));
    let mut rows: Vec<Row> = server.into_iter().collect();
    rows.extend(question.tool.iter().map(|tool| foreign("tool", tool, Text::Head)));
    rows.push(foreign("why", &question.reason, Text::Head));
    rows.push(foreign("rule", &question.rule, Text::Head));
    if question.remote {
        rows.push(Row::Ours(
            "This server is REMOTE and not sandboxed. It sees what is sent to it, but not your files."
                .to_owned(),
        ));
    } else if !question.sandboxed && question.has_server() {
        rows.push(Row::Ours(UNSANDBOXED.to_owned()));
    }
    rows
}

fn preview(question: &Question, most: usize) -> Vec<Row> {
    let Some(preview) = &question.preview else { return Vec::new() };
    let text = Text::Lines(preview.text().to_owned(), most);
    vec![Row::Ours(format!("{}:", preview.title())), Row::Foreign("text".to_owned(), text)]
}

fn left_out(all: usize, most: usize, what: &str) -> Option<Row> {
    let more = all.saturating_sub(most);
    (more > 0).then(|| Row::Ours(format!("... and {more} more {what}, not shown; d shows all of it.")))
}

fn foreign(label: &str, text: &str, how: impl Fn(String) -> Text) -> Row {
    Row::Foreign(label.to_owned(), how(line(text)))
}

/// Returns the number of columns that remain after a label.
fn room(width: usize) -> usize {
    width.saturating_sub(LABEL + 4)
}

fn drawn(rows: Vec<Row>, width: usize) -> Vec<String> {
    let room = room(width);
    let mut lines = Vec::new();
    for row in rows {
        let (label, texts, left_out) = match row {
            Row::Ours(words) => {
                lines.extend(wrapped(&words, width));
                continue;
            }
            Row::Foreign(label, Text::Head(text)) => (label, vec![head(&text, room)], 0),
            Row::Foreign(label, Text::Ends(text)) => (label, vec![ends(&text, room)], 0),
            Row::Foreign(label, Text::Several(text)) => {
                (label, pieces(&ends(&text, room * LINES_PER_EFFECT), room), 0)
            }
            Row::Foreign(label, Text::All(text)) => (label, pieces(&text, room), 0),
            Row::Foreign(label, Text::Lines(text, most)) => {
                let mut all = pieces(&text, room);
                let more = all.len().saturating_sub(most);
                all.truncate(most);
                (label, all, more)
            }
        };
        lines.extend(texts.iter().map(|text| format!(" {label:<LABEL$.LABEL$} | {text}")));
        if left_out > 0 {
            lines
                .extend(wrapped(&format!("... {left_out} more lines, not shown; d shows all of it."), width));
        }
    }
    lines
}

/// Returns the lines of a message that requires no answer.
pub(super) fn notice(text: &str, width: usize) -> Vec<String> {
    drawn(vec![foreign("notice", text, Text::All)], width.max(NARROWEST))
}

/// Returns the lines that replace a question on a terminal that is too narrow.
pub(super) fn too_narrow(width: usize) -> Vec<String> {
    let words = format!(
        "A question is pending, and this terminal is narrower than {NARROWEST} columns. Widen it to see the question, or press Enter to deny."
    );
    wrapped(&words, width)
}

/// Wraps IronCurtain's own text at spaces.
pub(super) fn wrapped(words: &str, width: usize) -> Vec<String> {
    let indent = words.len() - words.trim_start().len();
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(last) if columns(last) + 1 + columns(word) <= width => {
                last.push(' ');
                last.push_str(word);
            }
            Some(_) | None => lines.push(format!("{}{word}", " ".repeat(1 + indent))),
        }
    }
    lines
}
