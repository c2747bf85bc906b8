//! Tool uses that a grant can permit beyond one call: a tool and the values of its arguments that have a role.
//!
//! - A call that names a path, an address or a host has no tool use, because these are granted individually.
//! - A tool use includes every value with a role, whether or not the value is judged. Later calls may differ in
//!   commands and in values without a role.
//! - For an unannotated tool, the tool use includes all arguments, so it matches only identical calls.

use crate::{ResolvedCall, Resource, Role, RoleSet};
use serde_json::{Map, Value};
use std::fmt;

/// Tool and values that a grant permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    tool: String,
    values: Vec<BoundValue>,
}

/// Value that a call must repeat to match a tool use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BoundValue {
    /// Name of the argument that contains the value. Empty if the value is the JSON text of all arguments.
    pub argument: String,
    /// Role of the argument.
    pub role: Role,
    /// Canonical value.
    pub value: String,
}

impl ToolUse {
    /// Creates a tool use from the values that a call must repeat, in any order.
    #[must_use]
    pub fn new(tool: String, mut values: Vec<BoundValue>) -> Self {
        values.sort();
        values.dedup();
        Self { tool, values }
    }

    /// Returns a call's tool use, or `None` if it cannot be granted beyond the call.
    #[must_use]
    pub fn from_call(call: &ResolvedCall) -> Option<Self> {
        let names_resource = |roles: RoleSet| {
            roles.meets(RoleSet::PATHS) || roles.meets(RoleSet::URLS) || roles.contains(Role::ProxyDomain)
        };
        if call.is_unannotated() {
            return Some(Self::new(
                call.tool().to_owned(),
                vec![BoundValue::all_arguments(call.transport_arguments())],
            ));
        }
        let mut values = Vec::new();
        for given in call.given() {
            if names_resource(given.roles) {
                return None;
            }
            for role in given.roles.iter().filter(|role| !matches!(role, Role::None | Role::Command)) {
                let Resource::Text(text) = &given.value else { return None };
                let argument = call.argument(given).to_string();
                values.push(BoundValue { argument, role, value: text.to_string() });
            }
        }
        Some(Self::new(call.tool().to_owned(), values))
    }

    /// Returns the tool name.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns the values that a call must repeat, sorted.
    #[must_use]
    pub fn values(&self) -> &[BoundValue] {
        &self.values
    }

    /// Returns `true` if a call must repeat all arguments.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.values.iter().any(BoundValue::is_all_arguments)
    }

    /// Describes the values for the user, such as "in provos/ironcurtain with to bob@a.org". Formats each value with
    /// `show`.
    pub fn describe_values(&self, show: impl Fn(&str) -> String) -> String {
        let values_of = |role: Role| -> Vec<&str> {
            self.values.iter().filter(|bound| bound.role == role).map(|bound| bound.value.as_str()).collect()
        };
        let (owners, repos) = (values_of(Role::GithubOwner), values_of(Role::GithubRepo));
        let mut words = Vec::new();
        match (owners.as_slice(), repos.as_slice()) {
            ([], []) => {}
            (owners, []) => words.push(format!("in {}", show(&owners.join(", ")))),
            ([], repos) => words.push(format!("in {}", show(&repos.join(", ")))),
            (owners, repos) => {
                words.push(format!("in {}", show(&format!("{}/{}", owners.join(", "), repos.join(", ")))))
            }
        }
        let others =
            self.values.iter().filter(|bound| !matches!(bound.role, Role::GithubOwner | Role::GithubRepo));
        words.extend(others.map(|bound| match bound.is_all_arguments() {
            true => format!("with just {}", show(&bound.value)),
            false => format!("with {} {}", bound.argument, show(&bound.value)),
        }));
        words.join(" ")
    }
}

impl BoundValue {
    /// Creates the value that represents all arguments, sorted by name.
    fn all_arguments(arguments: &Map<String, Value>) -> Self {
        let mut arguments = Value::Object(arguments.clone());
        arguments.sort_all_objects();
        Self { argument: String::new(), role: Role::None, value: arguments.to_string() }
    }

    fn is_all_arguments(&self) -> bool {
        self.argument.is_empty() && self.role == Role::None
    }
}

impl fmt::Display for ToolUse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.tool)?;
        let description = self.describe_values(str::to_owned);
        if description.is_empty() { Ok(()) } else { write!(formatter, " {description}") }
    }
}
