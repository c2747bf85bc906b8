//! The content of one question's dialog, as a plain value. The dialog draws it and adds nothing.
//!
//! - Pure: a function of the question and the person's home directory.
//! - Every text in it is plain and has no control character left.

mod details;
mod facts;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "several calls are answered together in the native dialog alone")
)]
mod together;

pub(crate) use together::CallView;

use super::text;
use ironcurtain_daemon::consent::{Consequence, Lifetime, Piece, Preview, Question, Reach, Verb, visible};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Longest preview and longest details that are shown.
const BLOCK_CHARS: usize = 120_000;
/// Longest path or text in a line; the details have more of it.
const TEXT_CHARS: usize = 4_096;
/// Longest name that the agent used for what is in a line; the details have more of it.
const ASKED_CHARS: usize = 400;
/// Longest object in the headline; the line below has all of it.
const HEADLINE_CHARS: usize = 80;
/// The band of a server without a sandbox.
const NOT_SANDBOXED: &str =
    "\u{26a0} NOT SANDBOXED: this server can do anything that you can, whatever you allow here.";

/// The band of a server that runs elsewhere.
const REMOTE: &str =
    "\u{26a0} REMOTE, cannot be sandboxed: it sees what it is sent, and no file of yours by itself.";

/// One question, ready to draw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConsentView {
    /// Question id.
    pub(crate) id: String,
    /// "Claude Code wants to **write** tax/summary.md".
    pub(crate) headline: Vec<Span>,
    /// "Claude Code wants to write a file or folder", for those who see it from afar: no names of things.
    pub(crate) kind: String,
    /// The warning across the dialog, when the server is not sandboxed, or runs elsewhere.
    pub(crate) band: Option<&'static str>,
    /// Everything that would be done, the worst first.
    pub(crate) lines: Vec<LineView>,
    /// Arguments that no line tells.
    pub(crate) with: Vec<LineView>,
    /// Consequences of a yes beyond the lines.
    pub(crate) also: Vec<String>,
    /// Who, How, Why.
    pub(crate) facts: Vec<Fact>,
    /// The text that would be written.
    pub(crate) preview: Option<PreviewView>,
    /// Everything known, one fact a line.
    pub(crate) details: String,
    /// The choices that can be allowed, the narrowest first.
    pub(crate) choices: Vec<Choice>,
    /// The calls of a batch; none where it is one question.
    #[serde(skip)]
    pub(crate) calls: Vec<CallView>,
    /// The calls that a no for the rest of the session is for.
    pub(crate) denial: String,
    /// The time for which the question waits.
    #[serde(skip)]
    pub(crate) deadline: Duration,
}

/// A piece of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// The emphasis of a piece of text. Every tone but `Plain` is also told by its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tone {
    /// Proved and ordinary.
    Plain,
    /// The thing to look at.
    Strong,
    /// Only claimed, or of less weight.
    Quiet,
    /// Wrong.
    Danger,
}

/// One line: something that would be done, or an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LineView {
    /// The verb, what it is done to (of a path the last two names strong), and what is there now.
    pub(crate) words: Vec<Span>,
    /// The name that the agent used, when it is another.
    pub(crate) asked_for: Option<String>,
}

/// One labelled row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fact {
    pub(crate) label: &'static str,
    pub(crate) lines: Vec<Vec<Span>>,
}

/// A preview of the text that would be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreviewView {
    pub(crate) title: &'static str,
    pub(crate) text: String,
    /// Lines begin with `+` and `-`.
    pub(crate) diff: bool,
}

/// One thing that can be allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Choice {
    pub(crate) label: String,
    pub(crate) sentence: String,
    pub(crate) lifetimes: Vec<Lifetime>,
    /// It opens one file of a sandboxed server's to be read, and nothing else.
    pub(crate) reads_one_file: bool,
}

impl ConsentView {
    /// Draws up a question.
    pub(crate) fn new(question: &Question, home: &Path) -> Self {
        Self {
            id: question.id.clone(),
            headline: headline(question, home),
            kind: kind(question),
            band: band(question),
            lines: question.consequences.iter().map(|consequence| line(consequence, home)).collect(),
            with: {
                let limit = if question.says_it_whole() { usize::MAX } else { ASKED_CHARS };
                question.with.iter().map(|(name, value)| argument(name, value, limit)).collect()
            },
            also: question.also.iter().map(|sentence| text::isolated(&text::line(sentence))).collect(),
            facts: facts::facts(question, home),
            preview: question.preview.as_ref().map(preview),
            details: details::details(question),
            choices: question
                .offers
                .iter()
                .map(|offer| Choice {
                    label: text::isolated(&text::line(&offer.label)),
                    sentence: text::isolated(&text::line(&offer.sentence)),
                    lifetimes: offer.lifetimes.clone(),
                    reads_one_file: offer.reach == Reach::Paths && reads_one_file(question),
                })
                .collect(),
            calls: Vec::new(),
            denial: text::isolated(&text::clip(&text::line(&question.denial), HEADLINE_CHARS)),
            deadline: question.deadline,
        }
    }

    /// The headline without its emphasis.
    pub(crate) fn sentence(&self) -> String {
        plain(&self.headline)
    }

    /// The effect of Allow, in one sentence. Empty for a choice that is not there.
    pub(crate) fn outcome(&self, choice: usize, lifetime: Lifetime) -> String {
        let Some(choice) = self.choices.get(choice) else { return String::new() };
        let sentence = choice.sentence.trim_end_matches('.');
        let length = match lifetime {
            Lifetime::Once => ", once",
            Lifetime::Session => " until this session ends",
            Lifetime::QuarterHour => " for 15 minutes",
            Lifetime::Hour => " for 1 hour",
            Lifetime::Always => " until you take it back",
        };
        let beyond = if self.band == Some(NOT_SANDBOXED) { ", and anything else that you can" } else { "" };
        format!("{sentence}{length}{beyond}.")
    }
}

fn band(question: &Question) -> Option<&'static str> {
    match (question.remote, question.sandboxed) {
        (true, _) => Some(REMOTE),
        (false, false) => Some(NOT_SANDBOXED),
        (false, true) => None,
    }
}

/// The words on the Allow button; `_` marks its key.
pub(crate) fn allow_words(lifetime: Lifetime) -> &'static str {
    match lifetime {
        Lifetime::Once => "_Allow once",
        Lifetime::Session => "_Allow for this session",
        Lifetime::QuarterHour => "_Allow for 15 minutes",
        Lifetime::Hour => "_Allow for 1 hour",
        Lifetime::Always => "_Allow always",
    }
}

/// The text of some spans.
pub(crate) fn plain(spans: &[Span]) -> String {
    spans.iter().map(|span| span.text.as_str()).collect()
}

/// A piece of text in a tone. The line that begins with it reads from left to right.
pub(crate) fn span(text: impl Into<String>, tone: Tone) -> Span {
    Span { text: text::isolated(&text.into()), tone }
}

/// "Claude Code wants to **push** main to https://evil.example/x and 1 other thing": the worst that it would do.
fn headline(question: &Question, home: &Path) -> Vec<Span> {
    let mut spans =
        vec![span(text::name(&question.client.name), Tone::Strong), span(" wants to ", Tone::Plain)];
    let Some((worst, others)) = question.consequences.split_first() else { return spans };
    spans.extend([span(worst.verb.word(), Tone::Strong), span(" ", Tone::Plain)]);
    spans.extend(worst.object.iter().map(|piece| match piece {
        Piece::Ours(words) => span(*words, Tone::Plain),
        Piece::Path(path) => span(text::tail(&text::last_names(path, home), HEADLINE_CHARS), Tone::Strong),
        Piece::Foreign(said) => span(quoted(said, HEADLINE_CHARS), Tone::Strong),
    }));
    let more = match others.len() {
        0 => return spans,
        n if others.iter().all(|other| other.verb == worst.verb) => format!(" and {n} more"),
        1 => " and 1 other thing".to_owned(),
        n => format!(" and {n} other things"),
    };
    spans.push(span(more, Tone::Plain));
    spans
}

/// Returns `true` if the call reads one file and does nothing else.
fn reads_one_file(question: &Question) -> bool {
    let [only] = question.consequences.as_slice() else { return false };
    let one_path = matches!(only.object.as_slice(), [Piece::Path(_)]);
    // A folder has no size.
    let has_a_size = only.note.as_deref().is_some_and(|note| note.starts_with(|c: char| c.is_ascii_digit()));
    question.sandboxed && only.verb == Verb::Read && one_path && has_a_size && question.also.is_empty()
}

fn kind(question: &Question) -> String {
    let client = text::name(&question.client.name);
    let Some(worst) = question.consequences.first() else { return text::isolated(&format!("{client} asks")) };
    let thing = match (worst.verb, worst.object.first()) {
        (Verb::Reach | Verb::Fetch, _) => "an address",
        (Verb::List, _) => "a folder",
        (_, Some(Piece::Path(_))) => "a file or folder",
        (_, _) => "something",
    };
    text::isolated(&format!("{client} wants to {} {thing}", worst.verb.word()))
}

fn line(consequence: &Consequence, home: &Path) -> LineView {
    let mut words = vec![span(consequence.verb.word(), Tone::Strong), span(" ", Tone::Plain)];
    let mut through = "asked for as";
    for piece in &consequence.object {
        match piece {
            Piece::Ours(text) => words.push(span(*text, Tone::Plain)),
            Piece::Foreign(said) => words.push(span(quoted(said, TEXT_CHARS), Tone::Strong)),
            Piece::Path(path) => {
                through = "reached through";
                let (lead, strong) = text::path_parts(path, home);
                words.push(span(text::clip(&lead, TEXT_CHARS), Tone::Quiet));
                words.push(span(text::tail(&strong, TEXT_CHARS), Tone::Strong));
            }
        }
    }
    let allowed = consequence.allowed.then(|| "allowed already".to_owned());
    let notes: Vec<String> = consequence.note.iter().map(|note| text::line(note)).chain(allowed).collect();
    if !notes.is_empty() {
        words.push(span(format!(" ({})", notes.join(", ")), Tone::Quiet));
    }
    LineView {
        words,
        asked_for: consequence
            .asked_for
            .as_ref()
            .map(|asked| text::clip(&text::short_path(asked, home), ASKED_CHARS))
            .map(|asked| text::isolated(&format!("{through} {asked}"))),
    }
}

/// A text of the agent's within a line of ours.
fn quoted(said: &str, limit: usize) -> String {
    visible::quoted(&text::clip(&text::line(said), limit))
}

fn argument(name: &str, value: &str, limit: usize) -> LineView {
    let line = |line: &str| format!("\n\u{2502} {}", text::line(line));
    // Each line of several begins with our mark: none of its own can be taken for one of ours.
    let value = if value.contains('\n') {
        value.split_terminator('\n').map(line).collect()
    } else {
        text::line(value)
    };
    let words = vec![
        span("with ", Tone::Plain),
        span(text::name(name), Tone::Strong),
        span(": ", Tone::Plain),
        span(text::clip(&value, limit), Tone::Plain),
    ];
    LineView { words, asked_for: None }
}

fn preview(preview: &Preview) -> PreviewView {
    match preview {
        Preview::Content(content) => {
            PreviewView { title: "What it would write", text: text::block(content, BLOCK_CHARS), diff: false }
        }
        Preview::Diff(diff) => {
            let text = text::signs_first(&text::block(diff, BLOCK_CHARS));
            PreviewView { title: "What it would change", text, diff: true }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
