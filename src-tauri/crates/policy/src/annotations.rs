//! Meaning of each known tool's arguments.
//!
//! - An unannotated tool is denied, unless its server's entry sets [`Unannotated::Ask`]. In that case, its arguments
//!   have no known meaning, and none of them is resolved.
//! - The first condition that holds selects the conditional roles. Comparisons are strict (`"true"` is not `true`),
//!   and a condition without an operator never holds. A condition either adds roles to the default or removes some of
//!   them. It never replaces one role with another.

mod accepted;
pub(crate) mod load;
mod requests;

use crate::{JudgedRequest, Roles};
pub(crate) use accepted::AcceptedArguments;
pub(crate) use requests::request_annotation;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Decision on calls to unannotated tools, as set in the server's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unannotated {
    /// Deny every call.
    #[default]
    Deny,
    /// Require approval for each call.
    Ask,
}

/// Annotated tools, by server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Annotations {
    servers: BTreeMap<String, BTreeMap<String, Arc<AnnotatedTool>>>,
}

/// A tool and its annotation, shared by all calls to the tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct AnnotatedTool {
    pub(crate) server: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) annotation: ToolAnnotation,
    /// `true` if the tool is unannotated. Its annotation is then empty.
    pub(crate) is_unannotated: bool,
    /// Request that this annotation describes, or `None` for a tool.
    pub(crate) request: Option<JudgedRequest>,
}

/// Meaning of one tool's arguments.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolAnnotation {
    /// Roles of each argument, in the order of the annotations file.
    pub arguments: Vec<(Arc<str>, ArgumentRoles)>,
    /// Input schema that the server declares, or `None` if the annotations file has none.
    pub input_schema: Option<Value>,
    /// `true` if the tool only reads, regardless of its arguments.
    pub read_only: bool,
    /// `true` if a folder argument includes everything in the folder. Set in the file or inferred from the tool's
    /// name.
    pub descends: bool,
    /// Arguments that make a call recursive if they are present and truthy.
    pub(crate) recursion_arguments: Vec<Arc<str>>,
    /// Arguments that a call may contain, with their schemas.
    pub(crate) accepted: AcceptedArguments,
}

/// Roles of one argument.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentRoles {
    /// Roles if none of the conditions in `when` holds.
    pub default: Roles,
    /// Conditional roles, in order. The first whose condition holds replaces `default`.
    pub when: Vec<ConditionalRoles>,
}

/// Roles of an argument that apply if a condition on another argument holds.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionalRoles {
    /// Name of the argument that the condition checks.
    pub argument: String,
    /// Condition on the value of that argument.
    pub condition: ArgumentCondition,
    /// Roles that apply if the condition holds.
    pub roles: Roles,
}

/// Condition on the value of an argument.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgumentCondition {
    /// The value equals the given value.
    Equals(Value),
    /// The value equals one of the given values.
    In(Vec<Value>),
    /// The argument is present and not null.
    Present,
    /// The argument is missing or null.
    Absent,
    /// The argument is present and is not null, `false`, zero or the empty string.
    Truthy,
    /// The argument is missing, null, `false`, zero or the empty string.
    Falsy,
    /// The condition has no operator and never holds.
    Never,
}

impl ToolAnnotation {
    /// Returns `true` if calls to the tool can be recursive. In a recursive call, a folder includes everything in it.
    #[must_use]
    pub fn can_be_recursive(&self) -> bool {
        self.descends || !self.recursion_arguments.is_empty()
    }

    /// Returns `true` if the presence of this argument makes a call recursive.
    #[must_use]
    pub fn makes_recursive(&self, argument: &str) -> bool {
        self.recursion_arguments.iter().any(|name| **name == *argument)
    }
}

impl AnnotatedTool {
    /// Creates the entry for an unannotated tool.
    pub(crate) fn unannotated(server: &str, tool: &str) -> Self {
        Self { server: server.into(), name: tool.into(), is_unannotated: true, ..Self::default() }
    }
}

impl Annotations {
    /// Returns the annotation of a tool or judged request, or `None` if it is unannotated.
    #[must_use]
    pub fn get(&self, server: &str, tool: &str) -> Option<&ToolAnnotation> {
        if let Some(request) = JudgedRequest::parse(tool) {
            return request_annotation(request);
        }
        self.annotated_tool(server, tool).map(|entry| &entry.annotation)
    }

    /// Returns a shared reference to an annotated tool, or `None` if the tool is unannotated.
    pub(crate) fn annotated_tool(&self, server: &str, tool: &str) -> Option<&Arc<AnnotatedTool>> {
        self.servers.get(server)?.get(tool)
    }

    /// Iterates over a server's annotated tools, sorted by name.
    pub fn tools(&self, server: &str) -> impl Iterator<Item = (&str, &ToolAnnotation)> {
        self.servers.get(server).into_iter().flatten().map(|(name, entry)| (name.as_str(), &entry.annotation))
    }

    /// Iterates over the servers that have at least one entry in the file.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }
}

impl ToolAnnotation {
    /// Returns `true` if a call may contain an argument with this name.
    #[must_use]
    pub fn accepts(&self, argument: &str) -> bool {
        self.accepted.contains(argument)
    }

    /// Returns the roles of every argument for a call with these arguments, in the order of the
    /// annotations file.
    pub fn roles<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Roles)> + 'a {
        self.arguments.iter().map(|(name, roles)| (name, roles.for_arguments(arguments)))
    }
}

impl ArgumentRoles {
    /// Returns the roles for a call with these arguments.
    #[must_use]
    pub fn for_arguments(&self, arguments: &Map<String, Value>) -> &Roles {
        self.when.iter().find(|guard| guard.holds(arguments)).map_or(&self.default, |guard| &guard.roles)
    }
}

impl ConditionalRoles {
    /// Returns `true` if the condition holds for a call with these arguments.
    #[must_use]
    pub fn holds(&self, arguments: &Map<String, Value>) -> bool {
        let value = arguments.get(&self.argument).unwrap_or(&Value::Null);
        match &self.condition {
            ArgumentCondition::Equals(expected) => is_same(value, expected),
            ArgumentCondition::In(expected) => expected.iter().any(|expected| is_same(value, expected)),
            ArgumentCondition::Present => !value.is_null(),
            ArgumentCondition::Absent => value.is_null(),
            ArgumentCondition::Truthy => is_truthy(value),
            ArgumentCondition::Falsy => !is_truthy(value),
            ArgumentCondition::Never => false,
        }
    }
}

/// Returns `true` if two values are the same string, number or boolean. Other values are never equal.
fn is_same(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::String(value), Value::String(expected)) => value == expected,
        (Value::Bool(value), Value::Bool(expected)) => value == expected,
        (Value::Number(value), Value::Number(expected)) => {
            value == expected || value.as_f64() == expected.as_f64()
        }
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

/// Returns `true` unless the value is null, false, zero or an empty string.
pub(crate) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}
