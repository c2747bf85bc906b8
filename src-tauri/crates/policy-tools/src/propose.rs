//! Proposes what the arguments of a tool mean, from what its server says of it. A person confirms.
//!
//! - Pure, and no list of known tools: names, descriptions and schemas are evidence, and each answer tells its own.
//! - What a server says can tighten a proposal; its `readOnlyHint` never loosens one.
//! - Unsure means the stricter; what nothing tells anything about is said to be that. A tool whose
//!   nested arguments name resources cannot be annotated, and stays refused.

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

/// A tool, as its server describes it.
#[derive(Debug, Clone, Copy)]
pub struct Tool<'a> {
    /// The name the person gave the server.
    pub server: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// The server's description of it.
    pub description: &'a str,
    /// The shape of its arguments.
    pub input_schema: &'a Value,
    /// The server's hints.
    pub hints: ProposalHints,
}

/// Hints of a server about the effects of a tool. Heard only where they tighten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProposalHints {
    /// `readOnlyHint`.
    pub read_only: Option<bool>,
    /// `destructiveHint`.
    pub destructive: Option<bool>,
}

impl ProposalHints {
    /// Returns `true` if they say that the tool changes something. One that destroys does, whatever else is said: a server
    /// that says nothing of `readOnlyHint` says by the protocol that it is false.
    fn tell_of_changes(self) -> bool {
        self.read_only == Some(false) || self.destructive == Some(true)
    }
}

/// The certainty of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// Nothing tells what it is. What is proposed is the least, not the strictest: not to be written unseen.
    Unknown,
    /// A guess, on the strict side: to be looked at.
    Low,
    /// Said by one clear piece of evidence.
    Medium,
    /// Said by the schema itself, or by name and tool together.
    High,
}

/// The proposal for one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// Roles for every argument.
    Annotated {
        /// In the order of the schema.
        arguments: Vec<ProposedArgument>,
        /// A folder given to the tool stands for all that is in it; nothing is said where its name tells.
        descends: Option<bool>,
    },
    /// The annotation format cannot say what it does: it is left out, and refused.
    LeftOut {
        /// Why, for people.
        reason: String,
    },
}

/// The proposal for one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedArgument {
    /// Its name.
    pub name: String,
    /// Its roles. Never empty.
    pub roles: Vec<Role>,
    /// The certainty of the roles.
    pub confidence: Confidence,
    /// Why, for people.
    pub reason: String,
}

impl Confidence {
    /// Its name, for people and programs.
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
    if let Some(reason) = shape.not_understood() {
        return Proposal::LeftOut { reason: format!("the shape of its arguments {reason}") };
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
