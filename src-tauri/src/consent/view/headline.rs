//! Builds the headline, which names the client and the call's most severe effect.

use super::lines::{notes, object, only_asked, short_object};
use super::shorten::Rest;
use super::{LineView, Span, Tone, span};
use crate::consent::text;
use ironcurtain_consent::{Consequence, Question, TextPart, Verb};
use std::path::Path;

/// Returns "Claude Code wants to", followed by the effect. If there are several effects, names the most severe one or
/// their number.
pub(super) fn headline(question: &Question, rest: &mut Rest, home: &Path) -> Vec<Span> {
    let mut spans =
        vec![span(text::name(&question.client.name), Tone::Strong), span(" wants to ", Tone::Plain)];
    let all = question.consequences.as_slice();
    if let Some(only) = only_asked(question) {
        spans.extend(deed(only, object(only, rest, home)));
    } else if let Some(words) = same_files(all, home) {
        spans.extend(words);
    } else {
        spans.extend(worst(all, home));
    }
    spans
}

/// Returns the notes about the effect in the headline, for display below it.
pub(super) fn below(question: &Question, rest: &mut Rest, home: &Path) -> Option<LineView> {
    let only = only_asked(question)?;
    let notes = notes(only, rest, home);
    (!notes.is_empty()).then(|| LineView { words: Vec::new(), note: None, notes })
}

/// Returns the summary for notifications, without the names of objects.
pub(super) fn kind(question: &Question) -> String {
    let client = text::name(&question.client.name);
    let Some(worst) = question.consequences.first() else { return text::isolated(&format!("{client} asks")) };
    let is_path = worst.object.iter().any(|piece| matches!(piece, TextPart::Path(_)));
    let verb = worst.verb;
    let what = if !question.has_server() {
        "pair with the remote machine".to_owned()
    } else if verb == Verb::Run {
        "run a command".to_owned()
    } else if verb == Verb::Plant {
        "write a program that runs later".to_owned()
    } else if matches!(verb, Verb::Use | Verb::Call) {
        "call a tool".to_owned()
    } else if matches!(verb, Verb::Reach | Verb::Fetch) {
        format!("{} an address", verb.word())
    } else if verb == Verb::List {
        format!("{} a folder", verb.word())
    } else {
        format!("{} {}", verb.word(), if is_path { "a file or folder" } else { "something" })
    };
    text::isolated(&format!("{client} wants to {what}"))
}

fn deed(deed: &Consequence, object: Vec<Span>) -> Vec<Span> {
    let mut spans = vec![span(deed.verb.prefix(), Tone::Strong)];
    spans.extend(object);
    spans.extend(deed.note.iter().map(|note| span(format!(" ({})", text::line(note)), Tone::Plain)));
    spans
}

/// Returns text such as "read 20 files in ~/Pictures/2026" if all effects have the same verb and concern files or
/// folders.
fn same_files(all: &[Consequence], home: &Path) -> Option<Vec<Span>> {
    let first = all.first()?;
    let path = |deed: &'_ Consequence| match deed.object.as_slice() {
        [TextPart::Path(path)] if deed.verb == first.verb => Some(path.clone()),
        _ => None,
    };
    let paths: Vec<String> = all.iter().map(path).collect::<Option<_>>()?;
    let is_folder = |deed: &Consequence| deed.note.as_deref().is_some_and(|note| note.starts_with("folder"));
    let things = match all.iter().filter(|deed| is_folder(deed)).count() {
        0 => "files",
        folders if folders == all.len() => "folders",
        _ => "files and folders",
    };
    let mut spans =
        vec![span(first.verb.prefix(), Tone::Strong), span(format!("{} {things}", all.len()), Tone::Strong)];
    if let Some(folder) = common_folder(&paths) {
        spans.extend([span(" in ", Tone::Plain), span(text::short_path(&folder, home), Tone::Strong)]);
    }
    Some(spans)
}

/// Returns the deepest folder that contains all paths, or `None` if that is the root folder.
fn common_folder(paths: &[String]) -> Option<String> {
    let mut folders = paths.iter().map(|path| Path::new(path).parent());
    let mut common = folders.next()??.to_path_buf();
    for folder in folders {
        while !folder?.starts_with(&common) {
            common.pop();
        }
    }
    (common.parent().is_some()).then(|| common.display().to_string())
}

fn worst(all: &[Consequence], home: &Path) -> Vec<Span> {
    let Some((worst, others)) = all.split_first() else { return Vec::new() };
    let others: Vec<&Consequence> = others.iter().filter(|other| !other.allowed).collect();
    let mut spans = vec![span(worst.verb.prefix(), Tone::Strong)];
    spans.extend(short_object(worst, home));
    if worst.verb >= Verb::Overwrite || worst.verb == Verb::Change {
        spans.extend(worst.note.iter().map(|note| span(format!(" ({})", text::line(note)), Tone::Plain)));
    }
    let more = match others.len() {
        0 => String::new(),
        n if others.iter().all(|other| other.verb == worst.verb) => format!(" and {n} more"),
        1 => " and 1 other thing".to_owned(),
        n => format!(" and {n} other things"),
    };
    spans.push(span(more, Tone::Plain));
    spans
}
