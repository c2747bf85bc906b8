//! Proposed annotations of a server's tools.

use crate::inspect::{ListedTool, fingerprint};
use ironcurtain_policy_tools::propose::{Confidence, Proposal, ProposalHints, Tool, propose};
use ironcurtain_visible as visible;
use serde_json::{Map, Value, json};

/// Maximum length of the description stored as a comment with each tool, in characters.
const MAX_COMMENT_LEN: usize = 200;

/// Annotations proposed for one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Name of the server.
    pub server: String,
    /// Hash of the server's tool descriptions.
    pub input_hash: String,
    /// Tools, in the server's order.
    pub tools: Vec<DraftTool>,
    /// Annotations to keep for tools that the server no longer lists.
    pub(super) unlisted: Vec<Value>,
}

/// Annotation proposed for one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftTool {
    /// Tool as listed by the server.
    pub listed: ListedTool,
    /// Proposed roles and hints.
    pub proposal: Proposal,
    /// `true` if the tool is omitted because an argument's meaning is unknown. The user can then specify the
    /// argument's role.
    pub is_unclear: bool,
}

impl Draft {
    /// Proposes roles for all tools that a server lists.
    #[must_use]
    pub fn new(server: &str, listed: Vec<ListedTool>) -> Self {
        let input_hash = fingerprint(&listed);
        let tools = listed.into_iter().map(|listed| {
            let proposal = propose(&Tool {
                server,
                name: &listed.name,
                description: &listed.description,
                input_schema: &listed.input_schema,
                hints: ProposalHints {
                    read_only: listed.annotations.read_only_hint,
                    destructive: listed.annotations.destructive_hint,
                },
            });
            DraftTool { listed, proposal, is_unclear: false }
        });
        Self { server: server.to_owned(), input_hash, tools: tools.collect(), unlisted: Vec::new() }
    }

    /// Removes the annotations of tools that the server no longer lists.
    pub fn drop_unlisted(&mut self) {
        self.unlisted.clear();
    }

    /// Returns the draft in the format of the annotations file, without the omitted tools.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let listed = self.tools.iter().filter_map(|tool| tool.to_json(&self.server));
        let tools: Vec<Value> = listed.chain(self.unlisted.iter().cloned()).collect();
        json!({ "inputHash": self.input_hash, "tools": tools })
    }
}

impl DraftTool {
    /// Returns the first line of the tool's description, shortened and escaped for display.
    #[must_use]
    pub fn summary(&self) -> String {
        let first = self.listed.description.trim().lines().next().unwrap_or_default();
        visible::head(&visible::line(first), MAX_COMMENT_LEN)
    }

    /// Returns the names of arguments whose meaning is unknown.
    pub(super) fn unclear_arguments(&self) -> impl Iterator<Item = &str> {
        let arguments = match &self.proposal {
            Proposal::Annotated { arguments, .. } => arguments.as_slice(),
            Proposal::Unsupported { .. } => &[],
        };
        let unclear = arguments.iter().filter(|argument| argument.confidence == Confidence::Unknown);
        unclear.map(|argument| argument.name.as_str())
    }

    fn to_json(&self, server: &str) -> Option<Value> {
        let (arguments, descends) = match &self.proposal {
            Proposal::Annotated { arguments, descends } => (arguments, descends),
            Proposal::Unsupported { .. } => return None,
        };
        let args: Map<String, Value> = arguments
            .iter()
            .map(|argument| {
                let names: Vec<&str> = argument.roles.iter().map(|role| role.name()).collect();
                (argument.name.clone(), json!(names))
            })
            .collect();
        let mut tool = json!({
            "toolName": self.listed.name,
            "serverName": server,
            "comment": self.summary(),
            "args": args,
            "inputSchema": self.listed.input_schema,
        });
        if let (Some(descends), Some(tool)) = (descends, tool.as_object_mut()) {
            tool.insert("descends".to_owned(), json!(descends));
        }
        Some(tool)
    }
}
