//! The rules of a compiled policy, in order.
//!
//! - Order is meaning: the first rule that covers a value decides about it.
//! - Rules are found by server and tool, so that thousands of them stay cheap.

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

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// A description of the rule, for people.
    pub description: String,
    /// The principle it comes from, for people.
    pub principle: String,
    /// Its name, and why, as it is told to the agent and the person.
    pub(crate) reason: RuleReason,
    /// The decision for calls that it covers.
    pub then: Decision,
    /// Its `if`.
    pub condition: RuleCondition,
    pub(crate) examples: Vec<Example>,
}

impl Policy {
    /// Every rule, in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The servers that rules name, each once, in order.
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

    /// The rules that can speak about a tool, in order.
    #[must_use]
    pub fn rules_for(&self, server: &str, tool: &str) -> RulesFor<'_> {
        RulesFor { rules: &self.rules, places: self.index.about(server, tool) }
    }
}

/// The rules that can speak about a tool, in order. Copied to go through them again.
#[derive(Debug, Clone, Copy)]
pub struct RulesFor<'a> {
    rules: &'a [Rule],
    places: RuleNumbers<'a>,
}

impl RulesFor<'_> {
    /// Those that speak about a role.
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

/// Finds where the `within` of a rule leads, `~` included.
pub type ResolveWithin<'a> = dyn Fn(&str) -> Result<CanonicalPath, WithinError> + 'a;

/// The error of whoever looks where a `within` leads.
pub type WithinError = Box<dyn Error + Send + Sync>;

impl Rule {
    /// Its name, unique in the policy.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.reason.rule
    }

    /// Why, as told to the agent and the person.
    #[must_use]
    pub fn reason(&self) -> &Arc<str> {
        &self.reason.reason
    }

    /// Returns `true` if it denies what it covers.
    #[must_use]
    pub fn denies(&self) -> bool {
        self.then == Decision::Deny
    }

    /// The judged roles it speaks about.
    pub fn judged_roles(&self) -> impl Iterator<Item = Role> {
        let judged = Role::ALL.iter().copied().filter(|role| role.is_resource());
        judged.filter(|role| self.condition.speaks_about(*role))
    }

    /// The folder its paths must be in, where it names one.
    #[must_use]
    pub fn within(&self) -> Option<&CanonicalPath> {
        self.condition.paths.as_ref().map(|paths| &paths.within)
    }
}
