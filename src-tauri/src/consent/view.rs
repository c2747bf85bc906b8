//! The content of one question's dialog, as a plain value. The dialog draws it and adds nothing.
//!
//! - Pure: a function of the question and the person's home directory.
//! - INVARIANT: all that is sent is in [`ConsentView::headline`], `lines`, `with` or `preview`, or else in `rest`.
//! - Every text in it is plain and has no control character left.

mod details;
mod facts;
mod headline;
mod lines;
mod room;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "several calls are answered together in the native dialog alone")
)]
mod together;

pub(crate) use together::CallView;

use super::text;
use ironcurtain_consent::{Lifetime, Piece, Preview, Question, Reach, Verb};
use ironcurtain_visible as visible;
use room::Rest;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Longest words on what a no is for.
const DENIAL_CHARS: usize = 80;
/// The band of a server without a sandbox.
const NOT_SANDBOXED: &str = "\u{26a0} NOT SANDBOXED";
/// The effect of that, whatever the answer is.
const ANYTHING: &str = " This server is not sandboxed: it can already do anything you can.";

/// The band of a server that runs elsewhere.
const REMOTE: &str =
    "\u{26a0} REMOTE, cannot be sandboxed: it sees what it is sent, and no file of yours by itself.";

/// One question, ready to draw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConsentView {
    /// Question id.
    pub(crate) id: String,
    /// "Claude Code wants to **write** ~/tax/summary.md (new file, 101 bytes)".
    pub(crate) headline: Vec<Span>,
    /// "Claude Code wants to write a file or folder", for those who see it from afar: no names of things.
    pub(crate) kind: String,
    /// Says that other settings than those of the user's account are in use.
    pub(crate) notice: Option<String>,
    /// The warning across the dialog, when the server is not sandboxed, or runs elsewhere.
    pub(crate) band: Option<&'static str>,
    /// Everything that would be done, the worst first, where the headline does not say it all.
    pub(crate) lines: Vec<LineView>,
    /// Arguments that no line tells.
    pub(crate) with: Vec<LineView>,
    /// Consequences of a yes beyond the lines.
    pub(crate) also: Vec<String>,
    /// Who, How.
    pub(crate) facts: Vec<Fact>,
    /// The text that would be written.
    pub(crate) preview: Option<TextBlock>,
    /// The texts that are sent and cut elsewhere, in full. A yes counts once it was read to its end.
    pub(crate) rest: Option<TextBlock>,
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
    /// Unusual: to be looked at twice.
    Warn,
    /// Wrong.
    Danger,
}

/// One line: something that would be done, or an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LineView {
    /// The verb, and what it is done to (of a path the last two names strong).
    pub(crate) words: Vec<Span>,
    /// The thing that is there now: "12 kB".
    pub(crate) note: Option<String>,
    /// The name that the agent used, when it is another; a link that leads out of its folder.
    pub(crate) notes: Vec<Span>,
}

/// One labelled row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fact {
    pub(crate) label: &'static str,
    pub(crate) lines: Vec<Vec<Span>>,
}

/// A text in lines of its own, which must be read to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextBlock {
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
        let mut rest = Rest::default();
        let below = headline::below(question, &mut rest, home);
        Self {
            id: question.id.clone(),
            headline: headline::headline(question, &mut rest, home),
            kind: headline::kind(question),
            notice: question.notice.as_ref().map(|notice| format!("\u{26a0} {}", text::line(notice))),
            band: band(question),
            lines: below.into_iter().chain(lines::lines(question, &mut rest, home)).collect(),
            with: lines::arguments(question, &mut rest),
            also: question.also.iter().map(|sentence| text::isolated(&text::line(sentence))).collect(),
            facts: facts::facts(question, home),
            preview: question.preview.as_ref().map(preview),
            rest: rest.into_block(),
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
            denial: text::isolated(&visible::ends(&text::line(&question.denial), DENIAL_CHARS)),
            deadline: question.deadline,
        }
    }

    /// The headline without its emphasis.
    pub(crate) fn sentence(&self) -> String {
        plain(&self.headline)
    }

    /// The worst that it would do, in full: "write ~/notes/plan.md (new file)".
    pub(crate) fn worst(&self) -> String {
        match self.lines.iter().find(|line| !line.words.is_empty()) {
            Some(line) => plain(&line.words),
            None => plain(self.headline.get(2..).unwrap_or_default()),
        }
    }

    /// The effect of Allow, in a sentence, and in a second one what is open anyway. Empty for a choice that is not there.
    pub(crate) fn outcome(&self, choice: usize, lifetime: Lifetime) -> String {
        let Some(choice) = self.choices.get(choice) else { return String::new() };
        let sentence = choice.sentence.trim_end_matches('.');
        let length = match lifetime {
            Lifetime::Once => ", once",
            Lifetime::Session => " until this session ends",
            Lifetime::QuarterHour => " for 15 minutes",
            Lifetime::Hour => " for 1 hour",
            Lifetime::Always => " until you revoke it",
        };
        let anything = if self.band == Some(NOT_SANDBOXED) { ANYTHING } else { "" };
        format!("{sentence}{length}.{anything}")
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

/// Returns `true` if the call reads one file and does nothing else.
fn reads_one_file(question: &Question) -> bool {
    let [only] = question.consequences.as_slice() else { return false };
    let one_path = matches!(only.object.as_slice(), [Piece::Path(_)]);
    // A folder has no size.
    let has_a_size = only.note.as_deref().is_some_and(|note| note.starts_with(|c: char| c.is_ascii_digit()));
    question.sandboxed && only.verb == Verb::Read && one_path && has_a_size && question.also.is_empty()
}

fn preview(preview: &Preview) -> TextBlock {
    match preview {
        Preview::Content(content) => {
            TextBlock { title: "What it would write", text: text::block(content), diff: false }
        }
        Preview::Diff(diff) => {
            let text = text::signs_first(&text::block(diff));
            TextBlock { title: "What it would change", text, diff: true }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
