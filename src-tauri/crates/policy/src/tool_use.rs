//! A use of a tool that a person can allow beyond one call: the tool, with the values that mean something.
//!
//! - There is none for a call that names a path, an address or a host to be opened: those are allowed by themselves.
//! - Bound to every value with a role, whether it is judged or not. What has no role may be another one the next time, and so may
//!   a command.
//! - Of a tool that nobody has annotated, it is bound to all arguments as they are: such a use is no other call's.

use crate::{ResolvedCall, Resource, Role, RoleSet};
use serde_json::{Map, Value};
use std::fmt;

/// A use of a tool, in terms that a later call can be held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    tool: String,
    values: Vec<BoundValue>,
}

/// A value that a use of a tool is bound to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BoundValue {
    /// The argument that it came in; empty for all of them together.
    pub argument: String,
    /// One of its roles.
    pub role: Role,
    /// The value, in canonical form.
    pub value: String,
}

impl ToolUse {
    /// A tool with the values that it is bound to.
    #[must_use]
    pub fn new(tool: String, mut values: Vec<BoundValue>) -> Self {
        values.sort();
        values.dedup();
        Self { tool, values }
    }

    /// The use that a call makes of its tool; nothing where that cannot be allowed beyond the call.
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

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The values that it is bound to, in order.
    #[must_use]
    pub fn values(&self) -> &[BoundValue] {
        &self.values
    }

    /// Returns `true` if it is bound to all arguments as they are.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.values.iter().any(BoundValue::is_whole)
    }

    /// The words on the values that it is bound to, each as `show` says it: "in provos/ironcurtain with to bob@a.org".
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
    /// All arguments, with their names in order.
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
