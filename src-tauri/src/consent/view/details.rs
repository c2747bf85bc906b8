//! Lists everything known about a question as plain text, one fact per line.

use crate::consent::text;
use ironcurtain_consent::{Question, TextPart};

pub(super) fn details(question: &Question) -> String {
    let mut lines = Vec::new();
    for consequence in &question.consequences {
        let object: String = consequence
            .object
            .iter()
            .map(|piece| match piece {
                TextPart::Fixed(words) => (*words).to_owned(),
                TextPart::Path(text) | TextPart::Untrusted(text) => value(text),
            })
            .collect();
        lines.push(format!("{}: {object}", consequence.verb.word()));
        if let Some(asked) = &consequence.asked_for {
            lines.push(format!("  requested as: {}", value(asked)));
        }
    }
    if let Some(tool) = &question.tool {
        lines.push(format!("tool: {}", value(tool)));
    }
    for (name, argument) in &question.arguments {
        lines.push(format!("  {}: {}", value(name), text::block(argument)));
    }
    if question.has_server() {
        lines.push(format!("server: {}", value(&question.server)));
        lines.push(format!("  command: {}", value(&question.server_command)));
        lines.push(format!("  sandboxed: {}", sandbox(question)));
        lines.push("agent and its parent processes:".to_owned());
    }
    for process in &question.client.chain {
        let exe = process.exe.as_deref().unwrap_or("file could not be read");
        lines.push(format!("  {} {} ({})", process.pid, value(&process.name), value(exe)));
    }
    lines.push(format!("why: {} (rule {})", value(&question.reason), value(&question.rule)));
    lines.push(format!("session: {}", value(&question.session)));
    lines.push(format!("question: {}", value(&question.id)));
    text::block(&lines.join("\n"))
}

fn sandbox(question: &Question) -> &'static str {
    if question.remote {
        "no, it is a remote server; it sees everything that is sent to it"
    } else if question.sandboxed {
        "yes, it can reach only what you granted"
    } else {
        "NO, it can reach everything you can reach"
    }
}

fn value(raw: &str) -> String {
    text::line(raw)
}
