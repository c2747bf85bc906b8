//! Lays out a question as terminal rows: a label, a mark and text from other programs.
//!
//! - INVARIANT: text from other programs appears only after the label and the mark; all other rows contain only
//!   IronCurtain's words and numbers. No row is wider than the terminal, so the terminal never wraps one.
//! - A screen that omits part of the sent data says so and accepts no approval.
//! - Every label starts with a Latin letter, because some terminals derive a row's direction from its first letter.

use super::quote::{columns, head, line, shorten_middle, wrap_text};
use crate::{Consequence, Lifetime, Offer, Question, TextPart, UNSANDBOXED};

/// Minimum terminal width for a question, in columns.
pub(super) const MIN_WIDTH: usize = 36;

const LABEL_WIDTH: usize = 10;

/// Maximum number of rows for the preview on the first screen. The details show the rest.
const MAX_LINES: usize = 12;
const MAX_EFFECTS: usize = 20;
/// Maximum number of rows for one effect.
const LINES_PER_EFFECT: usize = 4;
const MAX_ARGUMENTS: usize = 12;
const LINES_PER_ARGUMENT: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Row {
    /// IronCurtain's own text.
    Fixed(String),
    /// A label, followed by text from another program.
    Untrusted(String, Text),
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
    rows.extend(question.host.iter().map(|host| untrusted("machine", host, Text::All)));
    rows.extend(client_rows(question));
    rows.extend(server_rows(question));
    rows.extend(effects(question, MAX_EFFECTS));
    rows.extend(
        question.with.iter().take(MAX_ARGUMENTS).map(|argument| argument_row(argument, LINES_PER_ARGUMENT)),
    );
    rows.extend(omitted_row(question.with.len(), MAX_ARGUMENTS, "arguments"));
    let is_whole = question.with.len() <= MAX_ARGUMENTS
        && question.consequences.len() <= MAX_EFFECTS
        && sent(question).iter().all(|row| !is_cut(row, width));
    rows.extend(question.also.iter().map(|also| untrusted("also", also, Text::All)));
    let mut last = None;
    for (n, (at, offer, lifetime)) in choices.iter().enumerate() {
        if last != Some(*at) {
            rows.push(Row::Untrusted("if allowed".to_owned(), Text::All(line(&offer.sentence))));
            last = Some(*at);
        }
        let label = format!("answer {}", n + 1);
        rows.push(Row::Untrusted(label, Text::Head(format!("{}, {}", lifetime.label(), line(&offer.label)))));
    }
    let session = format!("denies {} until this session ends", question.denial);
    rows.push(untrusted("answer s", &session, Text::All));
    rows.push(Row::Fixed(
        "a denies this and the agent's other pending questions. p denies and pauses the agent. n with a text denies and sends \
         the agent your text."
            .to_owned(),
    ));
    rows.extend(question.notice.iter().map(|notice| untrusted("WARNING", notice, Text::All)));
    rows.extend(worst(question));
    let words = if is_whole || was_read {
        "Type an answer's number to allow, or d for all details. Anything else denies."
    } else {
        "NOT ALL IS SHOWN: to allow, first type d and read to the end. Anything else denies."
    };
    rows.push(Row::Fixed(words.to_owned()));
    Screen { lines: render(rows, width), is_whole }
}

/// Returns the rows of the first screen that show the sent data.
fn sent(question: &Question) -> Vec<Row> {
    let mut rows = preview(question, MAX_LINES);
    rows.extend(effects(question, MAX_EFFECTS));
    rows.extend(question.with.iter().map(|argument| argument_row(argument, LINES_PER_ARGUMENT)));
    rows
}

/// Returns `true` if the row shows only part of its text at this width.
fn is_cut(row: &Row, width: usize) -> bool {
    let content_width = content_width(width);
    match row {
        Row::Fixed(_) | Row::Untrusted(_, Text::All(_)) => false,
        Row::Untrusted(_, Text::Head(text) | Text::Ends(text)) => columns(text) > content_width,
        Row::Untrusted(_, Text::Several(text)) => columns(text) > content_width * LINES_PER_EFFECT,
        Row::Untrusted(_, Text::Lines(text, limit)) => wrap_text(text, content_width).len() > *limit,
    }
}

/// Returns an argument's row, shortened to at most `limit` terminal rows.
fn argument_row((name, value): &(String, String), limit: usize) -> Row {
    Row::Untrusted("with".to_owned(), Text::Lines(format!("{} = {value}", line(name)), limit))
}

/// Returns the details of a question without omissions.
pub(super) fn details(question: &Question, width: usize) -> Vec<String> {
    let mut rows = effects(question, usize::MAX);
    rows.extend(question.also.iter().map(|also| untrusted("also", also, Text::All)));
    rows.extend(question.offers.iter().map(|offer| untrusted("if allowed", &offer.sentence, Text::All)));
    rows.extend(client_rows(question));
    rows.extend(server_rows(question));
    rows.push(untrusted("command", &question.server_command, Text::All));
    rows.push(untrusted("session", &question.session, Text::All));
    for process in &question.client.chain {
        let exe = process.exe.as_deref().unwrap_or("its file could not be read");
        rows.push(untrusted("process", &format!("{} {} {exe}", process.pid, process.name), Text::All));
    }
    for (name, value) in &question.arguments {
        rows.push(untrusted("argument", name, Text::All));
        rows.push(Row::Untrusted("value".to_owned(), Text::All(value.clone())));
    }
    rows.extend(preview(question, usize::MAX));
    render(unshortened(rows), width)
}

/// Returns several questions from one agent without omissions, each with the effect of allowing it once.
pub(super) fn batch(questions: &[Question], width: usize) -> Vec<String> {
    let mut rows: Vec<Row> = questions.first().map(client_rows).unwrap_or_default();
    for (n, question) in questions.iter().enumerate() {
        rows.push(Row::Fixed(format!("Call {} of {}:", n + 1, questions.len())));
        rows.extend(server_rows(question));
        rows.extend(effects(question, usize::MAX));
        rows.extend(question.with.iter().map(|argument| argument_row(argument, usize::MAX)));
        rows.extend(preview(question, usize::MAX));
        rows.extend(question.also.iter().map(|also| untrusted("also", also, Text::All)));
        rows.extend(question.offers.first().map(|offer| untrusted("if allowed", &offer.sentence, Text::All)));
    }
    render(unshortened(rows), width)
}

/// Returns the rows with shortened strings replaced by the full strings.
fn unshortened(rows: Vec<Row>) -> Vec<Row> {
    let unshortened = |row| match row {
        Row::Untrusted(label, Text::Head(text) | Text::Ends(text) | Text::Several(text)) => {
            Row::Untrusted(label, Text::All(text))
        }
        unshortened @ (Row::Fixed(_) | Row::Untrusted(_, Text::All(_) | Text::Lines(..))) => unshortened,
    };
    rows.into_iter().map(unshortened).collect()
}

/// Returns the rows for at most `limit` effects of the call, worst first.
fn effects(question: &Question, limit: usize) -> Vec<Row> {
    let worst = question.consequences.iter().take(1);
    let client_rows = if question.has_server() { "A program" } else { "Another desktop" };
    let mut rows: Vec<Row> = worst
        .map(|worst| Row::Fixed(format!("{client_rows} wants to {}:", worst.verb.word().to_uppercase())))
        .collect();
    rows.extend(question.consequences.iter().take(limit).flat_map(effect));
    rows.extend(omitted_row(question.consequences.len(), limit, "effects"));
    rows
}

/// Returns rows that repeat the worst effect if there are several effects, because its first row may have scrolled off
/// the screen.
fn worst(question: &Question) -> Vec<Row> {
    match question.consequences.as_slice() {
        [worst, _, ..] => {
            let (all, verb) = (question.consequences.len(), worst.verb.word().to_uppercase());
            let words = format!("The most serious of these {all} effects: {verb}");
            vec![Row::Fixed(words), untrusted("worst", &object(&worst.object), Text::Ends)]
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
            rows.push(Row::Fixed(format!("{words}:")));
            first
        }
    };
    rows.push(untrusted(label, &object(&effect.object), Text::Several));
    rows.extend(effect.note.iter().map(|note| untrusted("note", note, Text::Several)));
    rows.extend(effect.asked_for.iter().map(|asked| untrusted("asked as", asked, Text::Several)));
    rows.extend(
        effect.out_of.iter().map(|folder| untrusted("LINK OUT", &format!("of {folder}"), Text::Several)),
    );
    if effect.allowed {
        rows.push(Row::Fixed("  (already allowed)".to_owned()));
    }
    rows
}

/// Joins an effect's pieces. Quotes text from other programs so that it cannot be mistaken for IronCurtain's.
fn object(wrap: &[TextPart]) -> String {
    let quoted = |text: &str| match wrap {
        [_] => text.to_owned(),
        _ => format!("\"{}\"", text.replace('"', "\\\"")),
    };
    let one = |piece: &TextPart| match piece {
        TextPart::Fixed(words) => (*words).to_owned(),
        TextPart::Path(text) | TextPart::Untrusted(text) => quoted(text),
    };
    wrap.iter().map(one).collect()
}

fn client_rows(question: &Question) -> Vec<Row> {
    let client = &question.client;
    let mut rows = vec![untrusted("program", &client.name, Text::Head)];
    match &client.exe {
        Some(exe) => rows.push(untrusted("file", exe, Text::Ends)),
        None if !question.has_server() => {}
        None => rows.push(Row::Fixed("Unknown program: its file could not be read.".to_owned())),
    }
    let parents: Vec<&str> = client.chain.iter().skip(1).take(2).map(|process| &*process.name).collect();
    if !parents.is_empty() {
        rows.push(untrusted("started by", &parents.join(" in "), Text::Head));
    }
    rows.extend(client.cwd.iter().map(|cwd| untrusted("in", cwd, Text::Ends)));
    rows.extend(client.claimed_name.iter().map(|claim| untrusted("says it is", claim, Text::Head)));
    rows.extend(client.label.iter().map(|label| untrusted("own label", label, Text::Head)));
    rows
}

fn server_rows(question: &Question) -> Vec<Row> {
    let server = question.has_server().then(|| untrusted("server", &question.server, Text::Head));
    let mut rows: Vec<Row> = server.into_iter().collect();
    rows.extend(question.tool.iter().map(|tool| untrusted("tool", tool, Text::Head)));
    rows.push(untrusted("why", &question.reason, Text::Head));
    rows.push(untrusted("rule", &question.rule, Text::Head));
    if question.remote {
        rows.push(Row::Fixed(
            "This server is REMOTE and not sandboxed. It sees what is sent to it, but not your files."
                .to_owned(),
        ));
    } else if !question.sandboxed && question.has_server() {
        rows.push(Row::Fixed(UNSANDBOXED.to_owned()));
    }
    rows
}

fn preview(question: &Question, limit: usize) -> Vec<Row> {
    let Some(preview) = &question.preview else { return Vec::new() };
    let text = Text::Lines(preview.text().to_owned(), limit);
    vec![Row::Fixed(format!("{}:", preview.title())), Row::Untrusted("text".to_owned(), text)]
}

fn omitted_row(all: usize, limit: usize, what: &str) -> Option<Row> {
    let more = all.saturating_sub(limit);
    (more > 0).then(|| Row::Fixed(format!("... and {more} more {what}, not shown; d shows all of it.")))
}

fn untrusted(label: &str, text: &str, how: impl Fn(String) -> Text) -> Row {
    Row::Untrusted(label.to_owned(), how(line(text)))
}

/// Returns the number of columns that remain after a label.
fn content_width(width: usize) -> usize {
    width.saturating_sub(LABEL_WIDTH + 4)
}

fn render(rows: Vec<Row>, width: usize) -> Vec<String> {
    let content_width = content_width(width);
    let mut lines = Vec::new();
    for row in rows {
        let (label, texts, omitted_row) = match row {
            Row::Fixed(words) => {
                lines.extend(wrapped(&words, width));
                continue;
            }
            Row::Untrusted(label, Text::Head(text)) => (label, vec![head(&text, content_width)], 0),
            Row::Untrusted(label, Text::Ends(text)) => (label, vec![shorten_middle(&text, content_width)], 0),
            Row::Untrusted(label, Text::Several(text)) => {
                (label, wrap_text(&shorten_middle(&text, content_width * LINES_PER_EFFECT), content_width), 0)
            }
            Row::Untrusted(label, Text::All(text)) => (label, wrap_text(&text, content_width), 0),
            Row::Untrusted(label, Text::Lines(text, limit)) => {
                let mut all = wrap_text(&text, content_width);
                let more = all.len().saturating_sub(limit);
                all.truncate(limit);
                (label, all, more)
            }
        };
        lines.extend(texts.iter().map(|text| format!(" {label:<LABEL_WIDTH$.LABEL_WIDTH$} | {text}")));
        if omitted_row > 0 {
            lines.extend(wrapped(
                &format!("... {omitted_row} more lines, not shown; d shows all of it."),
                width,
            ));
        }
    }
    lines
}

/// Returns the lines of a message that requires no answer.
pub(super) fn notice(text: &str, width: usize) -> Vec<String> {
    render(vec![untrusted("notice", text, Text::All)], width.max(MIN_WIDTH))
}

/// Returns the lines that replace a question on a terminal that is too narrow.
pub(super) fn too_narrow(width: usize) -> Vec<String> {
    let words = format!(
        "A question is pending, and this terminal is narrower than {MIN_WIDTH} columns. Widen it to see the question, or press Enter to deny."
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
