//! Proposes roles for the arguments of a tool, from its server's description. The user confirms them.
//!
//! - Pure, without a list of known tools: names, descriptions and schemas are evidence, and each proposal gives its reason.
//! - A server's hints can make a proposal stricter; its `readOnlyHint` never makes one less strict.
//! - In doubt, proposes the stricter role, and marks arguments without evidence as unknown. A tool whose nested arguments
//!   name resources cannot be annotated and stays refused.

mod clues;
mod context;
mod found;
mod git;
mod intent;
mod meaning;
mod named;
mod nested;
mod paths;
mod shape;
mod unclear;

use context::{Argument, Setting};
use found::Meaning;
use ironcurtain_policy::Role;
use nested::ResourceInside;
use serde_json::Value;
use shape::Shape;

/// A tool as described by its server.
#[derive(Debug, Clone, Copy)]
pub struct Tool<'a> {
    /// Server name chosen by the user.
    pub server: &'a str,
    /// Tool name.
    pub name: &'a str,
    /// Description.
    pub description: &'a str,
    /// Input schema.
    pub input_schema: &'a Value,
    /// Hints.
    pub hints: ProposalHints,
}

/// A server's hints about the effects of a tool; used only to make a proposal stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProposalHints {
    /// `readOnlyHint`.
    pub read_only: Option<bool>,
    /// `destructiveHint`.
    pub destructive: Option<bool>,
}

impl ProposalHints {
    /// Returns `true` if the hints declare that the tool changes something. A destructive tool does, regardless of other
    /// hints: in the protocol, a missing `readOnlyHint` means false.
    fn declare_changes(self) -> bool {
        self.read_only == Some(false) || self.destructive == Some(true)
    }
}

/// Confidence in a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// No evidence. The proposal is the least strict one and must be reviewed before it is written.
    Unknown,
    /// A guess on the strict side; should be reviewed.
    Low,
    /// Based on one clear piece of evidence.
    Medium,
    /// Based on the schema itself, or on name and tool together.
    High,
}

/// Proposal for one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// Roles for every argument.
    Annotated {
        /// Proposed arguments, in the order of the schema.
        arguments: Vec<ProposedArgument>,
        /// Set if a folder argument includes everything in the folder; `None` if the tool's name determines this.
        descends: Option<bool>,
    },
    /// The annotation format cannot express the tool, so it is omitted and refused.
    LeftOut {
        /// Reason in words.
        reason: String,
    },
}

/// Proposal for one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedArgument {
    /// Argument name.
    pub name: String,
    /// Proposed roles; never empty.
    pub roles: Vec<Role>,
    /// Confidence in the roles.
    pub confidence: Confidence,
    /// Reason in words.
    pub reason: String,
}

impl Confidence {
    /// Returns the name used in output.
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

/// Proposes the roles of every argument of a tool.
#[must_use]
pub fn propose(tool: &Tool<'_>) -> Proposal {
    let shape = Shape::of(tool.input_schema);
    if let Some(reason) = shape.unsupported() {
        return Proposal::LeftOut { reason: format!("the schema of its arguments {reason}") };
    }
    let setting = Setting::new(tool, &shape);
    let mut arguments = Vec::with_capacity(shape.fields.len());
    for (name, shape) in &shape.fields {
        match proposed(&setting, name, shape) {
            Ok(argument) => arguments.push(argument),
            Err(inside) => return Proposal::LeftOut { reason: inside.to_string() },
        }
    }
    let descends = paths::descends(&setting, &arguments).then_some(true);
    Proposal::Annotated { arguments, descends }
}

fn proposed(setting: &Setting, name: &str, shape: &Shape) -> Result<ProposedArgument, ResourceInside> {
    let mut found = meaning::of(setting, &Argument::new(name, shape));
    if shape.is_nested() {
        found = nested::meaning(setting, name, shape)?;
    }
    let (roles, confidence, reason) = match found.meaning {
        Meaning::Path => {
            let part = paths::roles(setting, &Argument::new(name, shape));
            (part.roles, part.confidence.min(found.confidence), format!("{}; {}", found.reason, part.reason))
        }
        Meaning::Is(role) => (vec![role], found.confidence, found.reason),
    };
    Ok(ProposedArgument { name: name.to_owned(), roles, confidence, reason })
}
