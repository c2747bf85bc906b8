//! Who asks, how it would be done, and why it is asked.

use super::{Fact, Span, Tone, span};
use crate::consent::text;
use ironcurtain_daemon::consent::Question;
use ironcurtain_protocol::ClientView;
use std::path::Path;

/// The number of the programs that started the client that are named; the details have all.
const PARENTS: usize = 2;
/// Longest path in a row.
const PATH_CHARS: usize = 160;

pub(super) fn facts(question: &Question, home: &Path) -> Vec<Fact> {
    vec![
        Fact { label: "Who", lines: who(&question.client, home) },
        Fact { label: "How", lines: vec![how(question)] },
        Fact { label: "Why", lines: vec![why(question)] },
    ]
}

fn who(client: &ClientView, home: &Path) -> Vec<Vec<Span>> {
    let mut proved = match &client.exe {
        Some(exe) => vec![span(short(exe, home), Tone::Plain)],
        None => vec![span("a program that hides what it is", Tone::Danger)],
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
    if let Some(claim) = &client.says_it_is {
        lines.push(vec![span(format!("says it is \u{201c}{}\u{201d}", text::name(claim)), Tone::Quiet)]);
    }
    if let Some(label) = &client.label {
        lines.push(vec![span(format!("calls itself \u{201c}{}\u{201d}", text::name(label)), Tone::Quiet)]);
    }
    lines
}

fn how(question: &Question) -> Vec<Span> {
    let tool = question.tool.as_ref().map(|tool| format!(", {}", text::name(tool))).unwrap_or_default();
    let server = format!("{} server{tool}", text::name(&question.server));
    let mut spans = vec![span(server, Tone::Plain), span(", ", Tone::Plain)];
    spans.push(if question.remote {
        span("\u{26a0} REMOTE, cannot be sandboxed", Tone::Danger)
    } else if question.sandboxed {
        span("sandboxed", Tone::Plain)
    } else {
        span("\u{26a0} NOT SANDBOXED", Tone::Danger)
    });
    spans
}

fn why(question: &Question) -> Vec<Span> {
    vec![
        span(text::clip(&text::line(&question.reason), 300), Tone::Plain),
        span(format!(" (rule {})", text::name(&question.rule)), Tone::Quiet),
    ]
}

fn short(path: &str, home: &Path) -> String {
    text::clip(&text::short_path(path, home), PATH_CHARS)
}
