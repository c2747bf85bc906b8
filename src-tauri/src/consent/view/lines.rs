//! Builds the lines below the headline: the effects, and the arguments that no effect mentions.

use super::shorten::Rest;
use super::{LineView, Span, Tone, span};
use crate::consent::text;
use ironcurtain_consent::{Consequence, Question, TextPart, Verb};
use ironcurtain_visible as visible;
use std::path::Path;

/// Maximum length in characters of the agent's text in a line. Paths are limited by `PATH_MAX` and always shown in
/// full.
const TEXT_CHARS: usize = 300;
/// Maximum length in characters of the agent's text in a headline about several effects.
const HEADLINE_CHARS: usize = 80;
/// Maximum size of an argument in its row, in lines and in characters.
const ARGUMENT: (usize, usize) = (12, 400);
/// Maximum number of rows for effects, and of rows for arguments.
const MAX_LINES: usize = 200;
const MAX_ARGUMENTS: usize = 20;

/// Returns the most severe effect if all others are already allowed. The headline then contains that effect in full.
pub(super) fn only_asked(question: &Question) -> Option<&Consequence> {
    let (worst, others) = question.consequences.split_first()?;
    (others.is_empty() || !worst.allowed && others.iter().all(|other| other.allowed)).then_some(worst)
}

/// Returns all effects that the headline does not contain in full, most severe first.
pub(super) fn lines(question: &Question, rest: &mut Rest, home: &Path) -> Vec<LineView> {
    let is_in_headline = only_asked(question).is_some();
    let all = question.consequences.get(usize::from(is_in_headline)..).unwrap_or_default();
    let (shown, more) = all.split_at(all.len().min(MAX_LINES));
    // If all effects have the same verb, the headline contains that verb.
    let is_alike = !is_in_headline
        && all.iter().all(|deed| {
            matches!(deed.object.as_slice(), [TextPart::Path(_)])
                && all.first().is_some_and(|worst| deed.verb == worst.verb)
        });
    let mut lines: Vec<LineView> = shown.iter().map(|deed| line(deed, !is_alike, rest, home)).collect();
    if !more.is_empty() {
        let each: Vec<String> = more.iter().map(|deed| plain_words(deed, home)).collect();
        rest.add("and", &each.join("\n"));
        let words = vec![span(format!("and {} more, listed below", more.len()), Tone::Strong)];
        lines.push(LineView { words, note: None, notes: Vec::new() });
    }
    lines
}

/// Returns the line about an effect, with its verb if `verb` is `true`.
pub(super) fn line(deed: &Consequence, verb: bool, rest: &mut Rest, home: &Path) -> LineView {
    let mut words = if verb { vec![span(deed.verb.prefix(), Tone::Strong)] } else { Vec::new() };
    words.extend(object(deed, rest, home));
    let allowed = deed.allowed.then(|| "allowed already".to_owned());
    let note: Vec<String> = deed.note.iter().map(|note| text::line(note)).chain(allowed).collect();
    let note = (!note.is_empty()).then(|| text::isolated(&note.join(", ")));
    LineView { words, note, notes: notes(deed, rest, home) }
}

/// Returns a row for each argument that no effect mentions.
pub(super) fn arguments(question: &Question, rest: &mut Rest) -> Vec<LineView> {
    let (shown, more) = question.with.split_at(question.with.len().min(MAX_ARGUMENTS));
    let mut lines: Vec<LineView> = shown.iter().map(|(name, value)| argument(name, value, rest)).collect();
    for (name, value) in more {
        rest.add(name, value);
    }
    if !more.is_empty() {
        let words = vec![span(format!("with {} more, listed below", more.len()), Tone::Strong)];
        lines.push(LineView { words, note: None, notes: Vec::new() });
    }
    lines
}

/// Returns the object of an effect, and adds the full text of shortened parts to `rest`.
pub(super) fn object(deed: &Consequence, rest: &mut Rest, home: &Path) -> Vec<Span> {
    let mut name = if deed.verb == Verb::Run { "command" } else { deed.verb.word() };
    let mut spans = Vec::new();
    for piece in &deed.object {
        match piece {
            TextPart::Fixed(words) => spans.push(span(*words, Tone::Plain)),
            TextPart::Untrusted(said) => {
                let shown = rest.line(name, said, TEXT_CHARS);
                spans.push(span(visible::quoted(&shown.text), Tone::Strong));
                spans.extend(shown.mark.map(|mark| span(mark, Tone::Plain)));
                // Puts the tool's name before the value of its argument.
                if matches!(deed.verb, Verb::Use | Verb::Call) {
                    name = said;
                }
            }
            TextPart::Path(path) => {
                let (lead, strong) = text::path_parts(path, home);
                if !lead.is_empty() {
                    spans.push(span(lead, Tone::Quiet));
                }
                spans.push(span(strong, Tone::Strong));
            }
        }
    }
    spans
}

/// Returns a short form of the object. A line below shows it in full.
pub(super) fn short_object(deed: &Consequence, home: &Path) -> Vec<Span> {
    let piece = |piece: &TextPart| match piece {
        TextPart::Fixed(words) => span(*words, Tone::Plain),
        TextPart::Path(path) => span(text::tail(&text::last_names(path, home), HEADLINE_CHARS), Tone::Strong),
        TextPart::Untrusted(said) => {
            span(visible::quoted(&text::line(&visible::head_and_tail(said, HEADLINE_CHARS))), Tone::Strong)
        }
    };
    deed.object.iter().map(piece).collect()
}

/// Returns notes about the path that the agent used, and about a symlink that leads out of its folder.
pub(super) fn notes(deed: &Consequence, rest: &mut Rest, home: &Path) -> Vec<Span> {
    let is_path = deed.object.iter().any(|piece| matches!(piece, TextPart::Path(_)));
    let through = if is_path { "reached through" } else { "requested as" };
    let asked = deed.asked_for.as_ref().map(|asked| {
        let asked = if is_path { text::short_path(asked, home) } else { asked.clone() };
        span(format!("{through} {}", rest.line(through, &asked, TEXT_CHARS).text), Tone::Quiet)
    });
    let out_of = deed
        .out_of
        .as_ref()
        .map(|folder| span(format!("\u{26a0} link out of {}", text::short_path(folder, home)), Tone::Warn));
    asked.into_iter().chain(out_of).collect()
}

fn argument(name: &str, value: &str, rest: &mut Rest) -> LineView {
    let shown = rest.lines(name, value, ARGUMENT);
    let line = |line: &str| format!("\n\u{2502} {}", text::line(line));
    // Prefixes each line of the value, so that no line can look like IronCurtain's own text.
    let value = if shown.text.contains('\n') {
        shown.text.split_terminator('\n').map(line).collect()
    } else {
        text::line(&shown.text)
    };
    let mut words = vec![
        span("with ", Tone::Plain),
        span(rest.line("name", name, TEXT_CHARS).text, Tone::Strong),
        span(": ", Tone::Plain),
        span(value, Tone::Plain),
    ];
    words.extend(shown.mark.map(|mark| span(mark, Tone::Quiet)));
    LineView { words, note: None, notes: Vec::new() }
}

fn plain_words(deed: &Consequence, home: &Path) -> String {
    let line = line(deed, true, &mut Rest::default(), home);
    let note = line.note.map(|note| format!(" ({note})")).unwrap_or_default();
    super::plain(&line.words) + &note
}
