//! Rules of a compiled policy, in order.
//!
//! - The first rule that covers a value decides.
//! - An index by server and tool keeps lookups fast with thousands of rules.

mod condition;
pub(crate) mod examples;
mod index;
pub(crate) mod load;

use crate::{Decision, Role, RuleReason};
pub use condition::{DomainsCondition, ListCondition, ListEntry, PathsCondition, RuleCondition};
use examples::Example;
use index::{Index, RuleNumbers};
use ironcurtain_paths::CanonicalPath;
use std::error::Error;
use std::sync::Arc;

/// A compiled policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    rules: Vec<Rule>,
    index: Index,
}

/// A policy rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Description of the rule for the user.
    pub description: String,
    /// Principle that the rule follows, for the user.
    pub principle: String,
    /// Name of the rule, and the reason shown to the agent and the user.
    pub(crate) reason: RuleReason,
    /// Decision on calls that the rule covers.
    pub then: Decision,
    /// Conditions from the `if` field.
    pub condition: RuleCondition,
    pub(crate) examples: Vec<Example>,
}

impl Policy {
    /// Returns all rules, in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the names of the servers that rules mention, without duplicates.
    #[must_use]
    pub fn servers(&self) -> Vec<&str> {
        let mut servers = Vec::new();
        for server in self.rules.iter().flat_map(|rule| rule.condition.server.iter().flatten()) {
            if !servers.contains(&server.as_str()) {
                servers.push(server.as_str());
            }
        }
        servers
    }

    /// Returns the rules that can apply to a tool, in order.
    #[must_use]
    pub fn rules_for(&self, server: &str, tool: &str) -> RulesFor<'_> {
        RulesFor { rules: &self.rules, places: self.index.about(server, tool) }
    }
}

/// Iterator over the rules that can apply to a tool, in order. A clone continues independently from the same
/// position.
#[derive(Debug, Clone, Copy)]
pub struct RulesFor<'a> {
    rules: &'a [Rule],
    places: RuleNumbers<'a>,
}

impl RulesFor<'_> {
    /// Restricts the iterator to rules that can apply to a role.
    pub(crate) fn speaking(self, role: Role) -> Self {
        Self { places: self.places.speaking(role), ..self }
    }
}

impl<'a> Iterator for RulesFor<'a> {
    type Item = &'a Rule;

    fn next(&mut self) -> Option<&'a Rule> {
        self.rules.get(self.places.next()?)
    }
}

/// Function that resolves a rule's `within` field, which may contain `~`, to a canonical path.
pub type ResolveWithin<'a> = dyn Fn(&str) -> Result<CanonicalPath, WithinError> + 'a;

/// Reason a `within` field could not be resolved.
pub type WithinError = Box<dyn Error + Send + Sync>;

impl Rule {
    /// Returns the name of the rule, unique in the policy.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.reason.rule
    }

    /// Returns the reason shown to the agent and the user.
    #[must_use]
    pub fn reason(&self) -> &Arc<str> {
        &self.reason.reason
    }

    /// Returns `true` if the rule denies the calls it covers.
    #[must_use]
    pub fn denies(&self) -> bool {
        self.then == Decision::Deny
    }

    /// Iterates over the judged roles that the rule applies to.
    pub fn judged_roles(&self) -> impl Iterator<Item = Role> {
        let judged = Role::ALL.iter().copied().filter(|role| role.is_resource());
        judged.filter(|role| self.condition.speaks_about(*role))
    }

    /// Returns the folder to which the rule is limited, or `None` if it has no path condition.
    #[must_use]
    pub fn within(&self) -> Option<&CanonicalPath> {
        self.condition.paths.as_ref().map(|paths| &paths.within)
    }
}
