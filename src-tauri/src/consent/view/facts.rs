//! Builds the row about the client and the row about the tool and server.

use super::{Fact, Span, Tone, span};
use crate::consent::text;
use ironcurtain_consent::{Question, Verb};
use std::path::Path;

/// Label of the row about the server.
pub(crate) const HOW: &str = "How";
/// Maximum number of parent processes in the row about the client. The details list all of them.
const PARENTS: usize = 2;
/// Maximum length of a path in a row, in characters.
const PATH_CHARS: usize = 160;

pub(super) fn facts(question: &Question, home: &Path) -> Vec<Fact> {
    let mut facts = vec![Fact { label: "Who", lines: who(question, home) }];
    if question.has_server() {
        facts.push(Fact { label: HOW, lines: vec![how(question)] });
    }
    facts
}

fn who(question: &Question, home: &Path) -> Vec<Vec<Span>> {
    let client = &question.client;
    let mut proved = match &client.exe {
        Some(exe) => vec![span(short(exe, home), Tone::Plain)],
        None if !question.has_server() => vec![span("another desktop, not a program", Tone::Plain)],
        None => vec![span("a program whose file cannot be identified", Tone::Danger)],
    };
    let parents: Vec<String> =
        client.chain.iter().skip(1).take(PARENTS).map(|process| text::name(&process.name)).collect();
    if !parents.is_empty() {
        proved.push(span(format!(", started by {}", parents.join(" in ")), Tone::Plain));
    }
    if let Some(cwd) = &client.cwd {
        proved.push(span(format!(", in {}", short(cwd, home)), Tone::Plain));
    }
    let mut lines = vec![proved];
    if let Some(claim) = &client.claimed_name {
        lines.push(vec![span(format!("claims to be \u{201c}{}\u{201d}", text::name(claim)), Tone::Quiet)]);
    }
    if let Some(label) = &client.label {
        lines.push(vec![span(format!("calls itself \u{201c}{}\u{201d}", text::name(label)), Tone::Quiet)]);
    }
    lines
}

/// Returns a row such as "git_push, a tool of the server git, sandboxed", without facts that the headline or the
/// warning already contains.
fn how(question: &Question) -> Vec<Span> {
    let is_named = question.consequences.iter().any(|deed| matches!(deed.verb, Verb::Use | Verb::Call));
    let tool = question.tool.as_ref().filter(|_| !is_named);
    let tool = tool.map(|tool| format!("{}, a tool of ", text::name(tool))).unwrap_or_default();
    let sandboxed = if question.sandboxed && !question.remote { ", sandboxed" } else { "" };
    let server = text::name(&question.server);
    vec![span(format!("{tool}the server {server}{sandboxed}"), Tone::Plain)]
}

fn short(path: &str, home: &Path) -> String {
    text::clip(&text::short_path(path, home), PATH_CHARS)
}
