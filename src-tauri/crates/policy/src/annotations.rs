//! The meaning of the arguments of each known tool.
//!
//! - A tool that is not annotated is not known, and is denied, unless its server's entry says to ask: then nothing of its
//!   arguments is understood, and none of them is resolved.
//! - Conditional roles: the first condition that holds decides; comparing is strict (`"true"` is not `true`), a
//!   condition without operator never holds. A condition takes roles away from the default or adds to it; it never
//!   puts others in their place.

mod accepted;
pub(crate) mod load;
mod requests;

use crate::{JudgedRequest, Roles};
pub(crate) use accepted::AcceptedArguments;
pub(crate) use requests::meaning;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The answer to calls of tools that nobody has annotated, by the word of their server's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unannotated {
    /// They are denied.
    #[default]
    Deny,
    /// The person is asked about each.
    Ask,
}

/// The annotated tools, by server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Annotations {
    servers: BTreeMap<String, BTreeMap<String, Arc<AnnotatedTool>>>,
}

/// A tool with its names. Shared with the calls of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct AnnotatedTool {
    pub(crate) server: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) annotation: ToolAnnotation,
    /// Nobody has annotated it: its annotation is empty and says nothing.
    pub(crate) is_unannotated: bool,
    /// The request that is judged like a call of a tool; nothing for a tool.
    pub(crate) request: Option<JudgedRequest>,
}

/// The meaning of one tool's arguments.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolAnnotation {
    /// Roles of each argument, in the order of the file.
    pub arguments: Vec<(Arc<str>, ArgumentRoles)>,
    /// The shape of the arguments as the server declares it, where it is known.
    pub input_schema: Option<Value>,
    /// A folder given to the tool stands for all that is in it: by the word of the file, else by the tool's name.
    pub descends: bool,
    /// The arguments that say so of a call, where they are given and not false, by their names.
    pub(crate) deep: Vec<Arc<str>>,
    /// The values that a call may give for them.
    pub(crate) accepted: AcceptedArguments,
}

/// The roles of one argument.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentRoles {
    /// When no condition holds.
    pub default: Roles,
    /// RuleCondition, the first that holds decides.
    pub when: Vec<ConditionalRoles>,
}

/// Roles under a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionalRoles {
    /// The argument that is looked at.
    pub argument: String,
    /// The condition that its value must meet.
    pub condition: ArgumentCondition,
    /// The roles then.
    pub roles: Roles,
}

/// The condition that an argument must meet for a guard to hold.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgumentCondition {
    /// Exactly this value.
    Equals(Value),
    /// Exactly one of these.
    In(Vec<Value>),
    /// Given, and not null.
    Present,
    /// Not given, or null.
    Absent,
    /// Given, and not null, false, zero or empty text.
    Truthy,
    /// The opposite of truthy.
    Falsy,
    /// No operator: never holds.
    Never,
}

impl AnnotatedTool {
    /// A tool that nobody has annotated.
    pub(crate) fn nobody_s(server: &str, tool: &str) -> Self {
        Self { server: server.into(), name: tool.into(), is_unannotated: true, ..Self::default() }
    }
}

impl Annotations {
    /// Returns the annotation of a tool, or of a request that is judged like one, if it is known.
    #[must_use]
    pub fn get(&self, server: &str, tool: &str) -> Option<&ToolAnnotation> {
        if let Some(request) = JudgedRequest::parse(tool) {
            return meaning(request);
        }
        self.known(server, tool).map(|known| &known.annotation)
    }

    /// The annotation of a tool, with the names it is known by.
    pub(crate) fn known(&self, server: &str, tool: &str) -> Option<&Arc<AnnotatedTool>> {
        self.servers.get(server)?.get(tool)
    }

    /// The tools of a server, by name.
    pub fn tools(&self, server: &str) -> impl Iterator<Item = (&str, &ToolAnnotation)> {
        self.servers.get(server).into_iter().flatten().map(|(name, known)| (name.as_str(), &known.annotation))
    }

    /// The servers that have annotated tools.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }
}

impl ToolAnnotation {
    /// Returns `true` if a call may give an argument of this name.
    #[must_use]
    pub fn accepts(&self, argument: &str) -> bool {
        self.accepted.knows(argument)
    }

    /// The roles of every argument for a call with these arguments, in the order of the file.
    pub fn roles<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Roles)> + 'a {
        self.arguments.iter().map(|(name, roles)| (name, roles.given(arguments)))
    }
}

impl ArgumentRoles {
    /// The roles for a call with these arguments.
    #[must_use]
    pub fn given(&self, arguments: &Map<String, Value>) -> &Roles {
        self.when.iter().find(|guard| guard.holds(arguments)).map_or(&self.default, |guard| &guard.roles)
    }
}

impl ConditionalRoles {
    /// Returns `true` if it holds for a call with these arguments.
    #[must_use]
    pub fn holds(&self, arguments: &Map<String, Value>) -> bool {
        let value = arguments.get(&self.argument).unwrap_or(&Value::Null);
        match &self.condition {
            ArgumentCondition::Equals(wanted) => is_same(value, wanted),
            ArgumentCondition::In(wanted) => wanted.iter().any(|wanted| is_same(value, wanted)),
            ArgumentCondition::Present => !value.is_null(),
            ArgumentCondition::Absent => value.is_null(),
            ArgumentCondition::Truthy => is_truthy(value),
            ArgumentCondition::Falsy => !is_truthy(value),
            ArgumentCondition::Never => false,
        }
    }
}

/// Returns `true` if two values are the same text, number or truth value. Anything else is never the same.
fn is_same(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::String(value), Value::String(wanted)) => value == wanted,
        (Value::Bool(value), Value::Bool(wanted)) => value == wanted,
        (Value::Number(value), Value::Number(wanted)) => value == wanted || value.as_f64() == wanted.as_f64(),
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => false,
    }
}

/// Returns `true` if a value is given, and not null, false, zero or empty text.
pub(crate) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}
