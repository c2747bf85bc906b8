//! What one question looks like, as a plain value. The dialog draws it and adds nothing.
//!
//! - Pure: a function of the question and the person's home directory.
//! - Every text in it is plain and has no control character left.

mod details;
mod facts;

use super::text;
use ironcurtain_daemon::consent::{Item, Lifetime, Preview, Question, Target, Verb};
use std::path::Path;
use std::time::Duration;

/// Longest preview and longest details that are shown.
const BLOCK_CHARS: usize = 60_000;
/// Longest path that is shown beside the others; the details have more of it.
const PATH_CHARS: usize = 4_096;
/// Longest whole address that is shown beside its host; the details have more of it.
const ADDRESS_CHARS: usize = 400;

/// One question, ready to draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConsentView {
    /// Question id.
    pub(crate) id: String,
    /// "Claude Code wants to **write** a file".
    pub(crate) headline: Vec<Span>,
    /// Every path, in full.
    pub(crate) paths: Vec<PathLine>,
    /// Who, How, Why.
    pub(crate) facts: Vec<Fact>,
    /// What would be written.
    pub(crate) preview: Option<PreviewView>,
    /// Everything known, one fact a line.
    pub(crate) details: String,
    /// What can be allowed, the narrowest first.
    pub(crate) choices: Vec<Choice>,
    /// How long the question waits.
    pub(crate) deadline: Duration,
}

/// A piece of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// How a piece of text stands out. Every tone but `Plain` is also told by its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// One path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathLine {
    /// The path: the last two names strong.
    pub(crate) path: Vec<Span>,
    /// What is there now, or would be.
    pub(crate) note: String,
    /// What the agent asked for, when it is another name of it.
    pub(crate) asked_for: Option<String>,
}

/// One labelled row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) label: &'static str,
    pub(crate) lines: Vec<Vec<Span>>,
}

/// What would be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PreviewView {
    pub(crate) title: &'static str,
    pub(crate) text: String,
    /// Whether lines begin with `+` and `-`.
    pub(crate) diff: bool,
}

/// One thing that can be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) label: String,
    pub(crate) sentence: String,
    pub(crate) lifetimes: Vec<Lifetime>,
}

impl ConsentView {
    /// Draws up a question.
    pub(crate) fn new(question: &Question, home: &Path) -> Self {
        Self {
            id: question.id.clone(),
            headline: headline(question),
            paths: paths(question, home),
            facts: facts::facts(question, home),
            preview: question.preview.as_ref().map(preview),
            details: details::details(question),
            choices: question
                .offers
                .iter()
                .map(|offer| Choice {
                    label: text::line(&offer.label),
                    sentence: text::line(&offer.sentence),
                    lifetimes: offer.lifetimes.clone(),
                })
                .collect(),
            deadline: question.deadline,
        }
    }

    /// The headline without its emphasis.
    pub(crate) fn sentence(&self) -> String {
        plain(&self.headline)
    }

    /// What Allow will do, in one sentence. Empty for a choice that is not there.
    pub(crate) fn outcome(&self, choice: usize, lifetime: Lifetime) -> String {
        let Some(choice) = self.choices.get(choice) else { return String::new() };
        let sentence = choice.sentence.trim_end_matches('.');
        let length = match lifetime {
            Lifetime::Once => ", once.",
            Lifetime::Session => " until this session ends.",
            Lifetime::QuarterHour => " for 15 minutes.",
            Lifetime::Hour => " for 1 hour.",
            Lifetime::Always => " until you take it back.",
        };
        format!("{sentence}{length}")
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

/// A piece of text in a tone.
pub(crate) fn span(text: impl Into<String>, tone: Tone) -> Span {
    Span { text: text.into(), tone }
}

fn headline(question: &Question) -> Vec<Span> {
    let mut spans =
        vec![span(text::name(&question.client.name), Tone::Strong), span(" wants to ", Tone::Plain)];
    if question.host.is_some() {
        spans.push(span(question.verb.word(), Tone::Strong));
        spans.push(span(" a host on the network", Tone::Plain));
    } else if question.items.is_empty() {
        spans.push(span("use ", Tone::Plain));
        spans.push(span(question.tool.as_deref().map_or_else(String::new, text::name), Tone::Strong));
    } else {
        spans.push(span(question.verb.word(), Tone::Strong));
        spans.push(span(format!(" {}", things(question)), Tone::Plain));
    }
    spans
}

/// "a file", "a folder", "3 files", "2 files and a folder", ...
fn things(question: &Question) -> String {
    const WORDS: [(&str, &str); 4] = [
        ("file", "files"),
        ("new file or folder", "new files or folders"),
        ("folder", "folders"),
        ("device", "devices"),
    ];
    let new_is_file = is_content(question);
    let of = |word: &str| question.items.iter().filter(|item| thing(item, new_is_file) == word).count();
    let words: Vec<String> = WORDS
        .into_iter()
        .map(|(one, many)| (of(one), one, many))
        .filter(|(count, _, _)| *count > 0)
        .map(|(count, one, many)| if count == 1 { format!("a {one}") } else { format!("{count} {many}") })
        .collect();
    words.join(" and ")
}

fn thing(item: &Item, new_is_file: bool) -> &'static str {
    match (item.target, item.verb) {
        (Target::Missing, Verb::Write) if !new_is_file => "new file or folder",
        (Target::File(_) | Target::Missing, _) => "file",
        (Target::Folder, _) => "folder",
        (Target::Special, _) => "device",
    }
}

/// Whether what does not exist yet will be a file: content comes with it. A call without content may make a folder.
fn is_content(question: &Question) -> bool {
    question.preview.is_some()
}

fn paths(question: &Question, home: &Path) -> Vec<PathLine> {
    if let Some(host) = &question.host {
        return vec![PathLine {
            path: vec![span(text::clip(&text::line(&host.target), PATH_CHARS), Tone::Strong)],
            note: "host and port".to_owned(),
            asked_for: host
                .address
                .as_ref()
                .map(|whole| format!("whole address: {}", text::clip(&text::line(whole), ADDRESS_CHARS))),
        }];
    }
    let mixed = question.items.iter().any(|item| item.verb != question.verb);
    question
        .items
        .iter()
        .map(|item| {
            let (lead, strong) = text::path_parts(&item.path, home);
            let note = note(item, is_content(question));
            PathLine {
                path: vec![
                    span(text::clip(&lead, PATH_CHARS), Tone::Quiet),
                    span(text::clip(&strong, PATH_CHARS), Tone::Strong),
                ],
                note: if mixed { format!("{}: {note}", item.verb.word()) } else { note },
                asked_for: item.asked_for.as_ref().map(|asked| {
                    format!("reached through {}", text::clip(&text::short_path(asked, home), 400))
                }),
            }
        })
        .collect()
}

fn note(item: &Item, new_is_file: bool) -> String {
    match (item.target, item.verb) {
        (Target::Missing, Verb::Write) if new_is_file => "new file".to_owned(),
        (Target::Missing, Verb::Write) => "new".to_owned(),
        (Target::Missing, Verb::Read | Verb::Delete | Verb::Reach) => "nothing is there".to_owned(),
        (Target::File(bytes), Verb::Read | Verb::Reach) => text::size(bytes),
        (Target::File(bytes), Verb::Write) => format!("overwrites {}", text::size(bytes)),
        (Target::File(bytes), Verb::Delete) => format!("deletes {}", text::size(bytes)),
        (Target::Folder, Verb::Read | Verb::Write | Verb::Reach) => "folder".to_owned(),
        (Target::Folder, Verb::Delete) => "folder, with everything in it".to_owned(),
        (Target::Special, _) => "device, socket or pipe".to_owned(),
    }
}

fn preview(preview: &Preview) -> PreviewView {
    match preview {
        Preview::Content(content) => {
            PreviewView { title: "What it would write", text: text::block(content, BLOCK_CHARS), diff: false }
        }
        Preview::Diff(diff) => {
            PreviewView { title: "What it would change", text: text::block(diff, BLOCK_CHARS), diff: true }
        }
    }
}

#[cfg(test)]
mod tests;
