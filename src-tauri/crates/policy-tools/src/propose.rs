//! Proposes roles for a tool's arguments, based on its server's description of the tool. The user confirms them.
//!
//! - Pure and without a list of known tools: names, descriptions and schemas are the evidence, and each proposal
//!   states its reason.
//! - A server's hints can make a proposal stricter. Its `readOnlyHint` never makes a proposal less strict.
//! - In case of doubt, the stricter role is proposed, and arguments without evidence are marked as unknown. A tool
//!   with resources inside nested arguments cannot be annotated, so its calls remain denied.

mod by_name;
mod clues;
mod context;
mod fallback;
mod git;
mod inference;
mod intent;
mod meaning;
mod nested;
mod paths;
mod shape;

use context::{Argument, ToolContext};
use inference::Meaning;
use ironcurtain_policy::Role;
use nested::NestedResource;
use serde_json::Value;
use shape::Shape;

/// A tool's description, as declared by its server.
#[derive(Debug, Clone, Copy)]
pub struct Tool<'a> {
    /// The user's name for the server.
    pub server: &'a str,
    /// Tool name.
    pub name: &'a str,
    /// Description that the agent reads.
    pub description: &'a str,
    /// JSON Schema of the arguments.
    pub input_schema: &'a Value,
    /// Hints about the tool's effects.
    pub hints: ProposalHints,
}

/// A server's hints about a tool's effects. Used only to make a proposal stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProposalHints {
    /// Value of `readOnlyHint`, if declared.
    pub read_only: Option<bool>,
    /// Value of `destructiveHint`, if declared.
    pub destructive: Option<bool>,
}

impl ProposalHints {
    /// Returns `true` if the hints declare that the tool changes something. A destructive tool counts as changing
    /// something regardless of `readOnlyHint`, which defaults to false in MCP.
    fn declare_changes(self) -> bool {
        self.read_only == Some(false) || self.destructive == Some(true)
    }
}

/// Confidence in a proposed role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// No evidence. The proposed role is the least strict one, and the user must review it before it is saved.
    Unknown,
    /// A guess that errs on the strict side. The user should review it.
    Low,
    /// One clear piece of evidence.
    Medium,
    /// Evidence in the schema itself, or in both the argument's name and the tool.
    High,
}

/// Proposed annotation of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// Every argument has proposed roles.
    Annotated {
        /// Proposed arguments, in the order of the schema.
        arguments: Vec<ProposedArgument>,
        /// `Some(true)` if a folder argument includes everything in the folder. `None` if the tool's name already
        /// implies the answer.
        descends: Option<bool>,
    },
    /// The annotation format cannot describe the tool, so it remains unannotated and its calls are denied.
    Unsupported {
        /// Reason no annotation is proposed.
        reason: String,
    },
}

/// Proposed roles of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedArgument {
    /// Argument name.
    pub name: String,
    /// Proposed roles. Never empty.
    pub roles: Vec<Role>,
    /// Confidence in the roles.
    pub confidence: Confidence,
    /// Evidence for the roles.
    pub reason: String,
}

impl Confidence {
    /// Returns the confidence as a word for output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Proposes roles for every argument of a tool.
#[must_use]
pub fn propose(tool: &Tool<'_>) -> Proposal {
    let shape = Shape::flatten(tool.input_schema);
    if let Some(reason) = shape.unsupported() {
        return Proposal::Unsupported { reason: format!("the schema of its arguments {reason}") };
    }
    let context = ToolContext::new(tool, &shape);
    let mut arguments = Vec::with_capacity(shape.fields.len());
    for (name, shape) in &shape.fields {
        match propose_argument(&context, name, shape) {
            Ok(argument) => arguments.push(argument),
            Err(resource) => return Proposal::Unsupported { reason: resource.to_string() },
        }
    }
    let descends = paths::is_recursive(&context, &arguments).then_some(true);
    Proposal::Annotated { arguments, descends }
}

fn propose_argument(
    context: &ToolContext,
    name: &str,
    shape: &Shape,
) -> Result<ProposedArgument, NestedResource> {
    let mut inference = meaning::infer(context, &Argument::new(name, shape));
    if shape.is_nested() {
        inference = nested::infer(context, name, shape)?;
    }
    let (roles, confidence, reason) = match inference.meaning {
        Meaning::Path => {
            let path_roles = paths::roles(context, &Argument::new(name, shape));
            (
                path_roles.roles,
                path_roles.confidence.min(inference.confidence),
                format!("{}; {}", inference.reason, path_roles.reason),
            )
        }
        Meaning::Role(role) => (vec![role], inference.confidence, inference.reason),
    };
    Ok(ProposedArgument { name: name.to_owned(), roles, confidence, reason })
}
