//! Rules of a compiled policy, in order.
//!
//! - Order matters: the first rule that covers a value decides.
//! - Rules are indexed by server and tool, so that thousands of them stay cheap.

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
    /// Description for people.
    pub description: String,
    /// Principle behind the rule, for people.
    pub principle: String,
    /// Name, and the reason shown to the agent and the user.
    pub(crate) reason: RuleReason,
    /// Decision for calls that it covers.
    pub then: Decision,
    /// Parsed `if`.
    pub condition: RuleCondition,
    pub(crate) examples: Vec<Example>,
}

impl Policy {
    /// Returns every rule, in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the servers that rules name, without duplicates.
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

/// Rules that can apply to a tool, in order. Copy it to iterate again.
#[derive(Debug, Clone, Copy)]
pub struct RulesFor<'a> {
    rules: &'a [Rule],
    places: RuleNumbers<'a>,
}

impl RulesFor<'_> {
    /// Keeps only rules that can apply to a role.
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

/// Resolves the `within` of a rule, including `~`.
pub type ResolveWithin<'a> = dyn Fn(&str) -> Result<CanonicalPath, WithinError> + 'a;

/// Error of resolving a `within`.
pub type WithinError = Box<dyn Error + Send + Sync>;

impl Rule {
    /// Returns the name, unique in the policy.
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

    /// Iterates over the judged roles that it applies to.
    pub fn judged_roles(&self) -> impl Iterator<Item = Role> {
        let judged = Role::ALL.iter().copied().filter(|role| role.is_resource());
        judged.filter(|role| self.condition.speaks_about(*role))
    }

    /// Returns the folder that paths must be in, if any.
    #[must_use]
    pub fn within(&self) -> Option<&CanonicalPath> {
        self.condition.paths.as_ref().map(|paths| &paths.within)
    }
}
