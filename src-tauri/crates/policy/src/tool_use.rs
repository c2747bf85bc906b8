//! Use of a tool that the user can allow beyond one call: the tool with its values that have a role.
//!
//! - Calls that name a path, an address or a host have no tool use; those are allowed individually.
//! - Bound to every value with a role, judged or not. Values without a role may differ next time, and so may a command.
//! - For an unannotated tool it is bound to all arguments, so it matches only identical calls.

use crate::{ResolvedCall, Resource, Role, RoleSet};
use serde_json::{Map, Value};
use std::fmt;

/// A use of a tool, comparable with later calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    tool: String,
    values: Vec<BoundValue>,
}

/// A value that a tool use is bound to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BoundValue {
    /// Argument that contains it; empty for all arguments together.
    pub argument: String,
    /// One of its roles.
    pub role: Role,
    /// Canonical value.
    pub value: String,
}

impl ToolUse {
    /// Creates a use of a tool with bound values.
    #[must_use]
    pub fn new(tool: String, mut values: Vec<BoundValue>) -> Self {
        values.sort();
        values.dedup();
        Self { tool, values }
    }

    /// Returns the tool use of a call; `None` if it cannot be allowed beyond the call.
    #[must_use]
    pub fn of(call: &ResolvedCall) -> Option<Self> {
        let opens = |roles: RoleSet| {
            roles.meets(RoleSet::PATHS) || roles.meets(RoleSet::URLS) || roles.contains(Role::ProxyDomain)
        };
        if call.is_unannotated() {
            return Some(Self::new(
                call.tool().to_owned(),
                vec![BoundValue::whole(call.transport_arguments())],
            ));
        }
        let mut values = Vec::new();
        for given in call.given() {
            if opens(given.roles) {
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

    /// Returns the bound values, in order.
    #[must_use]
    pub fn values(&self) -> &[BoundValue] {
        &self.values
    }

    /// Returns `true` if it is bound to all arguments.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.values.iter().any(BoundValue::is_whole)
    }

    /// Describes the bound values, each formatted by `show`: "in provos/ironcurtain with to bob@a.org".
    pub fn bounds(&self, show: impl Fn(&str) -> String) -> String {
        let of = |role: Role| -> Vec<&str> {
            self.values.iter().filter(|bound| bound.role == role).map(|bound| bound.value.as_str()).collect()
        };
        let (owners, repos) = (of(Role::GithubOwner), of(Role::GithubRepo));
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
        words.extend(others.map(|bound| match bound.is_whole() {
            true => format!("with just {}", show(&bound.value)),
            false => format!("with {} {}", bound.argument, show(&bound.value)),
        }));
        words.join(" ")
    }
}

impl BoundValue {
    /// Binds all arguments, sorted by name.
    fn whole(arguments: &Map<String, Value>) -> Self {
        let mut arguments = Value::Object(arguments.clone());
        arguments.sort_all_objects();
        Self { argument: String::new(), role: Role::None, value: arguments.to_string() }
    }

    fn is_whole(&self) -> bool {
        self.argument.is_empty() && self.role == Role::None
    }
}

impl fmt::Display for ToolUse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.tool)?;
        let bounds = self.bounds(str::to_owned);
        if bounds.is_empty() { Ok(()) } else { write!(formatter, " {bounds}") }
    }
}
