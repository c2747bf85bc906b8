//! Describes an available update of a server.

use ironcurtain_admin::install::{ToolChange, Update};
use ironcurtain_visible as visible;
use serde::Serialize;

/// Maximum length of a description, in characters.
const DESCRIPTION: usize = 300;

/// Available update, as the page shows it.
#[derive(Debug, Serialize)]
pub(super) struct FoundUpdate {
    from: String,
    to: Option<String>,
    note: Option<String>,
    tools: Vec<String>,
}

impl FoundUpdate {
    pub(super) fn newest(version: String) -> Self {
        Self { from: version, to: None, note: None, tools: Vec::new() }
    }

    pub(super) fn of(update: &Update) -> Self {
        let note = update.not_compared.as_ref();
        Self {
            from: update.from.clone(),
            to: Some(update.to.clone()),
            note: note.map(|problem| format!("Not compared, so review each of its tools: {problem}")),
            tools: update.tools.iter().map(change_in_words).collect(),
        }
    }
}

fn change_in_words(change: &ToolChange) -> String {
    let short = |text: &str| visible::line(&visible::head(text, DESCRIPTION));
    match change {
        ToolChange::Added { name, description } => {
            format!("{}: new, refused until you review it: {}", short(name), short(description))
        }
        ToolChange::Removed { name } => format!("{}: removed", short(name)),
        ToolChange::Changed { name, description, arguments, hints } => {
            let mut parts = Vec::new();
            if let Some((before, after)) = description {
                parts.push(format!(
                    "description was \u{201c}{}\u{201d}, now \u{201c}{}\u{201d}",
                    short(before),
                    short(after)
                ));
            }
            parts.extend(arguments.then(|| "takes other arguments".to_owned()));
            parts.extend(hints.then(|| "changed its hints about what it modifies or destroys".to_owned()));
            format!("{}: {}", short(name), parts.join("; "))
        }
    }
}
