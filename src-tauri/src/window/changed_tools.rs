//! Tools that a server changed or added: the changed text for the page, and the user's decision.
//!
//! - A decision applies only to the definition that was shown.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use crate::backend::Trusted;
use ironcurtain_admin::tool_pins::{ChangedDefinition, ToolPinError, changed_tools, changed_tools_of};
use ironcurtain_config::home::Home;
use ironcurtain_consent::definition::ChangedWords;
use ironcurtain_grants::PinDecision;
use ironcurtain_visible as visible;
use serde::{Deserialize, Serialize};

/// Tool changed or added by its server.
#[derive(Debug, Serialize)]
pub(super) struct ChangedToolRow {
    /// Identifier of the definition that is shown.
    change: String,
    tool: String,
    state: ChangedToolState,
    parts: Vec<PartRow>,
    hints: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ChangedToolState {
    Suspended,
    New,
    Kept,
    Removed,
}

#[derive(Debug, Serialize)]
struct PartRow {
    part: &'static str,
    words: Vec<WordsRow>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "text")]
enum WordsRow {
    Same(String),
    Removed(String),
    Added(String),
}

/// Decision sent by the page.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToolDecisionWord {
    Update,
    Keep,
    Remove,
}

/// Returns the changed tools of the server with this identity.
pub(super) fn changed_tool_rows(home: &Home, server: String) -> Result<Vec<ChangedToolRow>, ToolPinError> {
    Ok(changed_tools_of(home, server)?.iter().map(ChangedToolRow::of).collect())
}

/// Stores the user's decision. `change` identifies the definition that was shown.
pub(super) async fn decide_tool(
    state: &AppState,
    server: String,
    change: String,
    decision: ToolDecisionWord,
) -> Result<String, CommandError> {
    let Trusted { home, daemon, .. } = trusted(state)?;
    let decision = match decision {
        ToolDecisionWord::Update => PinDecision::Update,
        ToolDecisionWord::Keep => PinDecision::Keep,
        ToolDecisionWord::Remove => PinDecision::Remove,
    };
    let name = server.clone();
    let decide = move || {
        let shown = changed_tools(&home, &server)?.into_iter().find(|one| one.fingerprint() == change);
        let shown = shown.ok_or(ToolPinError::ChangedSince)?;
        shown.decide(&home, decision)?;
        Ok::<_, ToolPinError>(visible::line(&shown.tool))
    };
    let tool = run_blocking(decide).await?;
    daemon.apply_tool_decision(&name).await;
    Ok(match decision {
        PinDecision::Update => format!("Agents now get the new definition of {tool}."),
        PinDecision::Keep => format!("Agents get {tool} with its old definition."),
        PinDecision::Remove => format!("Agents no longer get {tool}."),
    })
}

impl ChangedToolRow {
    fn of(one: &ChangedDefinition) -> Self {
        let words = |words: &ChangedWords| match words {
            ChangedWords::Same(text) => WordsRow::Same(visible::lines(text)),
            ChangedWords::Removed(text) => WordsRow::Removed(visible::lines(text)),
            ChangedWords::Added(text) => WordsRow::Added(visible::lines(text)),
        };
        let parts = one.change.parts.iter();
        Self {
            change: one.fingerprint(),
            tool: visible::line(&one.tool),
            state: match (one.decided, one.is_new) {
                (Some(PinDecision::Remove), _) => ChangedToolState::Removed,
                (Some(PinDecision::Keep | PinDecision::Update), _) => ChangedToolState::Kept,
                (None, true) => ChangedToolState::New,
                (None, false) => ChangedToolState::Suspended,
            },
            parts: parts
                .map(|part| PartRow { part: part.part, words: part.words.iter().map(words).collect() })
                .collect(),
            hints: one.change.hints.iter().map(ToString::to_string).collect(),
        }
    }
}
