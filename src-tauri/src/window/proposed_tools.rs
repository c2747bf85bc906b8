//! Describes the proposed annotations for a server's tools.

use ironcurtain_admin::annotate::{AnnotationChange, AnnotationChanges, Draft};
use ironcurtain_policy::Role;
use ironcurtain_policy_tools::propose::Proposal;
use ironcurtain_visible as visible;
use serde::Serialize;

/// Maximum length of a reason, in characters.
const REASON: usize = 300;

/// Proposed annotations for a server's tools, as the page shows them.
#[derive(Debug, Serialize)]
pub(super) struct ProposedTools {
    tools: Vec<ProposedTool>,
    gone: Vec<String>,
    changes: bool,
}

#[derive(Debug, Serialize)]
struct ProposedTool {
    name: String,
    left_out: Option<String>,
    change: &'static str,
    /// Descriptions of the differences from the stored annotation.
    differs: Vec<String>,
    arguments: Vec<ProposedMeaning>,
}

#[derive(Debug, Serialize)]
struct ProposedMeaning {
    name: String,
    roles: String,
    sure: &'static str,
    reason: String,
}

impl ProposedTools {
    pub(super) fn of(draft: &Draft, changes: &AnnotationChanges) -> Self {
        let tools = draft.tools.iter().zip(&changes.tools).map(|(tool, (_, change))| {
            let (left_out, arguments) = match &tool.proposal {
                Proposal::Unsupported { reason } => (Some(visible::line(reason)), [].as_slice()),
                Proposal::Annotated { arguments, .. } => (None, arguments.as_slice()),
            };
            let meanings = arguments.iter().map(|argument| ProposedMeaning {
                name: visible::line(&argument.name),
                roles: argument
                    .roles
                    .iter()
                    .filter(|role| **role != Role::None)
                    .map(|role| role.name())
                    .collect::<Vec<_>>()
                    .join(", "),
                sure: argument.confidence.name(),
                reason: visible::line(&visible::head(&argument.reason, REASON)),
            });
            ProposedTool {
                name: visible::line(&tool.listed.name),
                left_out,
                change: change_word(change),
                differs: differences(change),
                arguments: meanings.collect(),
            }
        });
        Self { tools: tools.collect(), gone: changes.unlisted_removed.clone(), changes: !changes.is_empty() }
    }
}

/// Describes the differences between a tool's stored and proposed annotations.
fn differences(change: &AnnotationChange) -> Vec<String> {
    let AnnotationChange::Changed { schema_changed, arguments } = change else { return Vec::new() };
    let schema = schema_changed.then(|| "the server changed the description of its arguments".to_owned());
    schema.into_iter().chain(arguments.iter().map(|words| visible::line(words))).collect()
}

fn change_word(change: &AnnotationChange) -> &'static str {
    match change {
        AnnotationChange::Added => "new",
        AnnotationChange::Unchanged => "unchanged",
        AnnotationChange::Changed { .. } => "changed",
        AnnotationChange::Removed => "will be refused",
        AnnotationChange::StillUnannotated => "stays refused",
    }
}
