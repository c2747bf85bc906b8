//! Content of a question's dialog as a plain value. The dialog shows exactly this.
//!
//! - Depends only on the question and the user's home directory.
//! - INVARIANT: everything that the call would send is in [`ConsentView::headline`], `lines`, `with`, `preview` or
//!   `rest`.
//! - All text is plain and contains no control characters.

#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "several calls are answered together in the native dialog alone")
)]
mod batch;
mod details;
mod facts;
mod headline;
mod lines;
mod shorten;

pub(crate) use batch::CallView;
pub(crate) use facts::HOW;

use super::text;
use ironcurtain_consent::{Lifetime, Offer, Question, Reach, TextPart, UNSANDBOXED, Verb};
use ironcurtain_visible as visible;
use serde::Serialize;
use shorten::Rest;
use std::path::Path;
use std::time::Duration;

/// Maximum length in characters of the description of calls that a denial for the session covers.
const DENIAL_CHARS: usize = 80;
/// Warning about a server without a sandbox.
const NOT_SANDBOXED: &str = "\u{26a0} NOT SANDBOXED";
/// Warning about a remote server.
const REMOTE: &str = "\u{26a0} REMOTE, cannot be sandboxed: it sees everything that is sent to it.";

/// Everything that the dialog shows about a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConsentView {
    /// Question id.
    pub(crate) id: String,
    /// Sentence such as "Claude Code wants to **write** ~/tax/summary.md (new file, 101 bytes)".
    pub(crate) headline: Vec<Span>,
    /// Summary for notifications, such as "Claude Code wants to write a file or folder". It names no files or other
    /// objects.
    pub(crate) kind: String,
    /// Band with the name of the remote machine that asks, or `None` if the question is about this computer.
    pub(crate) host: Option<String>,
    /// Warning that IronCurtain uses settings other than those of the user's account.
    pub(crate) notice: Option<String>,
    /// Warning about an unsandboxed or remote server.
    pub(crate) band: Option<&'static str>,
    /// All effects, most severe first. Empty if the headline contains everything.
    pub(crate) lines: Vec<LineView>,
    /// Arguments that no effect mentions.
    pub(crate) with: Vec<LineView>,
    /// Effects of allowing, in addition to those in `lines`.
    pub(crate) also: Vec<String>,
    /// Name of the client, from which its icon is derived.
    #[serde(skip)]
    pub(crate) client: String,
    /// Containment of the server, which determines its icon.
    #[serde(skip)]
    pub(crate) server: ServerIcon,
    /// Rows about the client, and about the tool and server.
    pub(crate) facts: Vec<Fact>,
    /// Text that would be written.
    pub(crate) preview: Option<TextBlock>,
    /// Full text of everything shortened elsewhere. Allow is accepted only after this text has been read to the end.
    pub(crate) rest: Option<TextBlock>,
    /// All known facts, one per line.
    pub(crate) details: String,
    /// Permissions to choose from, narrowest first.
    pub(crate) choices: Vec<Choice>,
    /// Calls of a batch, or empty for a single question.
    #[serde(skip)]
    pub(crate) calls: Vec<CallView>,
    /// Description of the calls that a denial for the session covers.
    pub(crate) denial: String,
    /// Time after which the question expires if the user is inactive.
    #[serde(skip)]
    pub(crate) deadline: Duration,
}

/// Server icon, which shows how the server is contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerIcon {
    Sandboxed,
    Open,
    Remote,
}

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// Emphasis of text. The emphasis only repeats what the text says, so that users who cannot see colours miss nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tone {
    /// Ordinary, verified text.
    Plain,
    /// The most important text.
    Strong,
    /// Unverified or less important text.
    Quiet,
    /// Unusual text that the user should notice.
    Warn,
    Danger,
}

/// A line about an effect or an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LineView {
    /// Verb and object of the effect, with the last two components of a path emphasized.
    pub(crate) words: Vec<Span>,
    /// Note about the existing object, such as "12 kB".
    pub(crate) note: Option<String>,
    /// Path that the agent used, if it differs from the real path, and any symlink that leads out of its folder.
    pub(crate) notes: Vec<Span>,
}

/// A row with a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fact {
    pub(crate) label: &'static str,
    pub(crate) lines: Vec<Vec<Span>>,
}

/// Text with several lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextBlock {
    pub(crate) title: &'static str,
    pub(crate) text: String,
    /// `true` if the lines start with `+` or `-`.
    pub(crate) diff: bool,
}

/// Permission that the user can choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Choice {
    pub(crate) label: String,
    pub(crate) sentence: String,
    pub(crate) lifetimes: Vec<Lifetime>,
    /// `true` if the permission only lets a sandboxed server read one file.
    pub(crate) reads_one_file: bool,
    /// `true` if the offer is a decision that applies until the user changes it.
    pub(crate) is_decision: bool,
}

impl ConsentView {
    /// Creates the view of a question.
    pub(crate) fn new(question: &Question, home: &Path) -> Self {
        // Paths of a remote machine are not in this computer's home directory.
        let home = if question.host.is_some() { Path::new("/") } else { home };
        let mut rest = Rest::default();
        let below = headline::below(question, &mut rest, home);
        Self {
            id: question.id.clone(),
            headline: headline::headline(question, &mut rest, home),
            kind: headline::kind(question),
            host: question.host.as_deref().map(on_host),
            notice: question.notice.as_ref().map(|notice| format!("\u{26a0} {}", text::line(notice))),
            band: band(question),
            lines: below.into_iter().chain(lines::lines(question, &mut rest, home)).collect(),
            with: lines::arguments(question, &mut rest),
            also: question.also.iter().map(|sentence| text::isolated(&text::line(sentence))).collect(),
            client: text::name(&question.client.name),
            server: sign(question),
            facts: facts::facts(question, home),
            preview: preview(question),
            rest: rest.into_block(),
            details: details::details(question),
            choices: question
                .offers
                .iter()
                .map(|offer| Choice {
                    label: text::isolated(&text::line(&offer.label)),
                    sentence: sentence(question.host.as_deref(), offer),
                    lifetimes: offer.lifetimes.clone(),
                    reads_one_file: offer.reach == Reach::Paths && reads_one_file(question),
                    is_decision: offer.reach.is_decision(),
                })
                .collect(),
            calls: Vec::new(),
            denial: text::isolated(&visible::head_and_tail(&text::line(&question.denial), DENIAL_CHARS)),
            deadline: question.deadline,
        }
    }

    /// Returns the headline as plain text.
    pub(crate) fn sentence(&self) -> String {
        plain(&self.headline)
    }

    /// Returns the full text of the most severe effect, such as "write ~/notes/plan.md". Returns `None` if the headline
    /// contains it.
    pub(crate) fn worst(&self, question: &Question) -> Option<String> {
        let is_in_headline = lines::only_asked(question).is_some();
        let worst = self.lines.iter().find(|line| !line.words.is_empty())?;
        (!is_in_headline).then(|| plain(&worst.words))
    }

    /// Returns the label of the Allow button, in which `_` marks the access key.
    pub(crate) fn allow_words(&self, choice: usize, lifetime: Lifetime) -> &'static str {
        self.choices.get(choice).map_or("_Allow", |choice| allow_words(choice, lifetime))
    }

    /// Returns a sentence about the effect of Allow, followed by what Deny does not prevent if the server is not
    /// sandboxed. Returns an empty string for an invalid choice.
    pub(crate) fn outcome(&self, choice: usize, lifetime: Lifetime) -> String {
        let Some(choice) = self.choices.get(choice) else { return String::new() };
        let sentence = choice.sentence.trim_end_matches('.');
        let length = match lifetime {
            _ if choice.is_decision => "",
            Lifetime::Once => ", once",
            Lifetime::Session => " until this session ends",
            Lifetime::QuarterHour => " for 15 minutes",
            Lifetime::Hour => " for 1 hour",
            Lifetime::Always => " until you revoke it",
        };
        let limits = if self.band == Some(NOT_SANDBOXED) { format!(" {UNSANDBOXED}") } else { String::new() };
        format!("{sentence}{length}.{limits}")
    }
}

/// Returns the sentence of an offer. On a remote machine, a `~` in it is the home folder there, so the sentence begins
/// with the machine.
fn sentence(host: Option<&str>, offer: &Offer) -> String {
    let sentence = text::line(&offer.sentence);
    text::isolated(&host.map_or(sentence.clone(), |host| format!("On {}: {sentence}", text::name(host))))
}

fn on_host(host: &str) -> String {
    format!("Remote machine: {}. What you allow happens there, not on this computer.", text::name(host))
}

fn sign(question: &Question) -> ServerIcon {
    match (question.remote, question.sandboxed) {
        (true, _) => ServerIcon::Remote,
        (false, false) if question.has_server() => ServerIcon::Open,
        (false, _) => ServerIcon::Sandboxed,
    }
}

fn band(question: &Question) -> Option<&'static str> {
    match sign(question) {
        ServerIcon::Remote => Some(REMOTE),
        ServerIcon::Open => Some(NOT_SANDBOXED),
        ServerIcon::Sandboxed => None,
    }
}

/// Returns the label of the Allow button, in which `_` marks the access key.
fn allow_words(choice: &Choice, lifetime: Lifetime) -> &'static str {
    match lifetime {
        _ if choice.is_decision => "_Apply",
        Lifetime::Once => "_Allow once",
        Lifetime::Session => "_Allow for this session",
        Lifetime::QuarterHour => "_Allow for 15 minutes",
        Lifetime::Hour => "_Allow for 1 hour",
        Lifetime::Always => "_Allow always",
    }
}

/// Joins the text of spans without their emphasis.
pub(crate) fn plain(spans: &[Span]) -> String {
    spans.iter().map(|span| span.text.as_str()).collect()
}

/// Creates a span of left-to-right text.
pub(crate) fn span(text: impl Into<String>, tone: Tone) -> Span {
    Span { text: text::isolated(&text.into()), tone }
}

/// Returns `true` if the call only reads one file and its server is sandboxed.
fn reads_one_file(question: &Question) -> bool {
    let [only] = question.consequences.as_slice() else { return false };
    let one_path = matches!(only.object.as_slice(), [TextPart::Path(_)]);
    // A note about a folder contains no size.
    let has_a_size = only.note.as_deref().is_some_and(|note| note.starts_with(|c: char| c.is_ascii_digit()));
    question.sandboxed && only.verb == Verb::Read && one_path && has_a_size && question.also.is_empty()
}

fn preview(question: &Question) -> Option<TextBlock> {
    let preview = question.preview.as_ref()?;
    let (block, diff) = (text::block(preview.text()), preview.is_diff());
    let text = if diff { text::signs_first(&block) } else { block };
    Some(TextBlock { title: preview.title(), text, diff })
}

#[cfg(test)]
pub(super) mod tests;
