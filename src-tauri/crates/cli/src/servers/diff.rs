//! `servers diff`: shows tools whose definitions have changed, and stores the user's decisions about them.
//!
//! - Decisions are stored in the user's files, so no agent's message can change them.

use crate::screen::Screen;
use crate::text_lines::TextLines;
use clap::Args;
use ironcurtain_admin::tool_pins::{ChangedDefinition, changed_tools};
use ironcurtain_config::home::Home;
use ironcurtain_consent::definition::{ChangedWords, PartChange};
use ironcurtain_grants::PinDecision;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Maximum number of unchanged words shown between two changes.
const MAX_UNCHANGED: usize = 16;

/// Options of `diff`.
#[derive(Debug, Args)]
pub struct DiffOptions {
    /// Name of the server.
    name: String,
    /// Tool to show or decide about. Default: all changed tools.
    #[arg(long)]
    tool: Option<String>,
    /// Let agents use the new definition.
    #[arg(long, conflicts_with_all = ["keep", "remove"])]
    update: bool,
    /// Let agents use the tool with its old definition.
    #[arg(long, conflicts_with = "remove")]
    keep: bool,
    /// Do not let agents use the tool.
    #[arg(long)]
    remove: bool,
}

/// Shows a server's changed tools, or stores a decision about them.
pub fn perform(home: &Home, options: &DiffOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let mut changes = changed_tools(home, &options.name)?;
    changes.retain(|change| options.tool.as_ref().is_none_or(|tool| *tool == change.tool));
    if changes.is_empty() {
        let none = match &options.tool {
            Some(tool) => format!("The tool `{tool}` of {} has not changed.", options.name),
            None => format!("No tool of {} has changed.", options.name),
        };
        screen.show(&[none].into_iter().collect(), &json!({ "changes": [] }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let decision = match (options.update, options.keep, options.remove) {
        (true, _, _) => Some(PinDecision::Update),
        (_, true, _) => Some(PinDecision::Keep),
        (_, _, true) => Some(PinDecision::Remove),
        (false, false, false) => None,
    };
    if screen.is_json() || decision.is_some() || !screen.has_terminal() {
        let text = changes.iter().fold(TextLines::default(), |mut text, change| {
            text.append(&describe(change));
            text
        });
        screen.show(&text, &json!({ "changes": changes.iter().map(value).collect::<Vec<_>>() }))?;
        for change in changes.iter().filter(|_| decision.is_some()) {
            decide(home, change, decision, screen)?;
        }
        if decision.is_none() {
            screen.note("Decide with --update, --keep or --remove, for one tool with --tool NAME.")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    for change in &changes {
        screen.show(&describe(change), &Value::Null)?;
        let question = match change.is_new {
            true => format!(
                "Keep the new tool `{}` (u) or remove it (r)? [u/r, Enter to decide later]",
                change.tool
            ),
            false => format!(
                "Update `{}` to its new definition (u), keep the old one (k), or remove the tool (r)? [u/k/r, Enter to decide later]",
                change.tool
            ),
        };
        let decision = match screen.answer(&question)?.to_lowercase().as_str() {
            "u" | "update" => Some(PinDecision::Update),
            "k" | "keep" if !change.is_new => Some(PinDecision::Keep),
            "r" | "remove" => Some(PinDecision::Remove),
            _ => None,
        };
        decide(home, change, decision, screen)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn decide(
    home: &Home,
    change: &ChangedDefinition,
    decision: Option<PinDecision>,
    screen: Screen,
) -> anyhow::Result<()> {
    let Some(decision) = decision else { return screen.note("Not decided.") };
    // A new tool has no old definition, so keeping and updating are the same.
    let decision =
        if change.is_new && decision == PinDecision::Keep { PinDecision::Update } else { decision };
    change.decide(home, decision)?;
    let done = match decision {
        PinDecision::Update if change.is_new => "available to agents",
        PinDecision::Update => "agents get its new definition",
        PinDecision::Keep => "agents get its old definition",
        PinDecision::Remove => "unavailable to agents",
    };
    screen.note(&format!("{}: {done} the next time they list tools.", change.tool))
}

/// Returns a description of the user's decision about a changed definition.
fn state(change: &ChangedDefinition) -> &'static str {
    match change.decided {
        None if change.is_new => "new",
        None => "suspended",
        Some(PinDecision::Keep) => "kept as it was",
        Some(PinDecision::Remove) => "removed",
        Some(PinDecision::Update) => "updated",
    }
}

fn describe(change: &ChangedDefinition) -> TextLines {
    let mut text = TextLines::default();
    let what = if change.is_new { "added" } else { "changed" };
    text.line(format_args!("{}: {what} by the server, {}", change.tool, state(change)));
    for part in &change.change.parts {
        text.quoting(format_args!("  {}: {}", part.part, marked(&part.words)));
    }
    for hint in &change.change.hints {
        text.line(format_args!("  Hint: {hint}."));
    }
    text
}

/// Marks removed words as `[-words-]` and added words as `{+words+}`, and shortens unchanged text.
fn marked(words: &[ChangedWords]) -> String {
    let mark = |words: &ChangedWords| match words {
        ChangedWords::Same(text) => shortened(text),
        ChangedWords::Removed(text) => wrapped("[-", text, "-]"),
        ChangedWords::Added(text) => wrapped("{+", text, "+}"),
    };
    words.iter().map(mark).collect()
}

/// Surrounds a text with marks, except for its trailing whitespace.
fn wrapped(before: &str, text: &str, after: &str) -> String {
    let words = text.trim_end();
    format!("{before}{words}{after}{}", text.get(words.len()..).unwrap_or_default())
}

fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
    let (half, last) = (MAX_UNCHANGED / 2, words.len().saturating_sub(MAX_UNCHANGED / 2));
    if words.len() <= MAX_UNCHANGED {
        return text.to_owned();
    }
    let part = |range: Option<&[&str]>| range.unwrap_or_default().concat();
    format!("{}\u{2026} {}", part(words.get(..half)), part(words.get(last..)))
}

fn value(change: &ChangedDefinition) -> Value {
    let words = |words: &[ChangedWords]| -> Vec<Value> {
        let one = |words: &ChangedWords| match words {
            ChangedWords::Same(text) => json!({ "same": text }),
            ChangedWords::Removed(text) => json!({ "removed": text }),
            ChangedWords::Added(text) => json!({ "added": text }),
        };
        words.iter().map(one).collect()
    };
    let part = |part: &PartChange| json!({ "part": part.part, "words": words(&part.words) });
    json!({
        "tool": change.tool,
        "state": state(change),
        "parts": change.change.parts.iter().map(part).collect::<Vec<_>>(),
        "hints": change.change.hints.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_words_are_marked_and_long_unchanged_text_is_shortened() {
        let same = (0..20).map(|n| format!("{n} ")).collect::<String>();
        let words = [
            ChangedWords::Same(same),
            ChangedWords::Removed("one ".to_owned()),
            ChangedWords::Added("every ".to_owned()),
            ChangedWords::Same("file".to_owned()),
        ];
        let expected = "0 1 2 3 4 5 6 7 \u{2026} 12 13 14 15 16 17 18 19 [-one-] {+every+} file";
        assert_eq!(marked(&words), expected);
    }
}
