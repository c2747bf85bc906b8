//! Rules of a compiled policy, in order.
//!
//! - The first rule that covers a value decides.
//! - An index by server and tool keeps lookups fast with thousands of rules.

mod condition;
pub(crate) mod examples;
mod index;
pub(crate) mod load;

use crate::decision::MANAGED_PREFIX;
use crate::{Decision, Role, RuleReason};
pub use condition::{DomainsCondition, ListCondition, ListEntry, PathsCondition, RuleCondition};
use examples::Example;
use index::{Index, RulePositions};
use ironcurtain_paths::CanonicalPath;
use std::error::Error;
use std::sync::Arc;

/// A compiled policy.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    rules: Vec<Rule>,
    index: Index,
}

/// Layer of a rule. In each layer, the first rule that covers a value decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// The user's rules, or the built-in ones.
    User,
    /// Rules from the user's organization.
    Managed,
    /// Rules that enforce the settings of the user's organization.
    Setting,
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
    /// Layer of the rule.
    pub layer: Layer,
    /// Time at which a managed rule started to apply on this machine, in milliseconds since the Unix epoch. Older
    /// grants do not satisfy a managed rule that requires approval.
    pub(crate) since_ms: u64,
    pub(crate) examples: Vec<Example>,
}

impl Policy {
    /// Adds an organization's rules as layers above the policy's own rules. `since_ms` returns the time at which a
    /// rule started to apply on this machine, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn with_managed(self, managed: Self, since_ms: impl Fn(&Rule) -> u64) -> Self {
        let managed = managed.rules.into_iter().map(|mut rule| {
            rule.since_ms = since_ms(&rule);
            if rule.layer == Layer::User {
                rule.layer = Layer::Managed;
            }
            rule.reason.rule = format!("{MANAGED_PREFIX}{}", rule.reason.rule).into();
            rule
        });
        let rules: Vec<Rule> = managed.chain(self.rules).collect();
        let index = Index::new(&rules);
        Self { rules, index }
    }

    /// Adds the rules of a policy that was parsed from the same text with a different home directory. Each differing
    /// rule follows its counterpart.
    #[must_use]
    pub fn with_variants(self, others: Self) -> Self {
        let pairs = self.rules.into_iter().zip(others.rules);
        let rules = pairs.flat_map(|(rule, other)| {
            let other = (other.condition != rule.condition).then_some(other);
            std::iter::once(rule).chain(other)
        });
        let rules: Vec<Rule> = rules.collect();
        let index = Index::new(&rules);
        Self { rules, index }
    }

    /// Moves the rules to the layer of the organization's settings.
    #[must_use]
    pub fn into_settings_layer(mut self) -> Self {
        self.rules.iter_mut().for_each(|rule| rule.layer = Layer::Setting);
        self
    }

    /// Adds rules after the policy's own rules. Each rule keeps its layer.
    #[must_use]
    pub fn append(self, others: Self) -> Self {
        let rules: Vec<Rule> = self.rules.into_iter().chain(others.rules).collect();
        let index = Index::new(&rules);
        Self { rules, index }
    }

    /// Returns `true` if the policy contains an organization's rules.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.rules.first().is_some_and(Rule::is_managed)
    }

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
        RulesFor { rules: &self.rules, positions: self.index.positions_for(server, tool), layer: None }
    }
}

/// Iterator over the rules that can apply to a tool, in order. A clone continues independently from the same
/// position.
#[derive(Debug, Clone, Copy)]
pub struct RulesFor<'a> {
    rules: &'a [Rule],
    positions: RulePositions<'a>,
    layer: Option<Layer>,
}

impl RulesFor<'_> {
    /// Restricts the iterator to the rules of one layer.
    pub(crate) fn in_layer(self, layer: Layer) -> Self {
        Self { layer: Some(layer), ..self }
    }

    /// Restricts the iterator to rules that can apply to a role.
    pub(crate) fn for_role(self, role: Role) -> Self {
        Self { positions: self.positions.for_role(role), ..self }
    }
}

impl<'a> Iterator for RulesFor<'a> {
    type Item = &'a Rule;

    fn next(&mut self) -> Option<&'a Rule> {
        loop {
            let rule = self.rules.get(self.positions.next()?)?;
            if self.layer.is_none_or(|layer| rule.layer == layer) {
                return Some(rule);
            }
        }
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

    /// Returns `true` if the rule belongs to the user's organization.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.layer != Layer::User
    }

    /// Returns `true` if the rule belongs to the user's organization and denies calls or requires approval for them.
    pub(crate) fn restricts(&self) -> bool {
        self.is_managed() && self.then != Decision::Allow
    }

    /// Returns `true` if the rule overrides a grant created at this time: it denies, or it is a managed rule that
    /// requires approval and is newer than the grant.
    pub(crate) fn overrides_grant_of(&self, created_ms: u64) -> bool {
        match self.then {
            Decision::Deny => true,
            Decision::Escalate => self.is_managed() && created_ms <= self.since_ms,
            Decision::Allow => false,
        }
    }

    /// Returns `true` if the rule denies the calls it covers.
    #[must_use]
    pub fn denies(&self) -> bool {
        self.then == Decision::Deny
    }

    /// Iterates over the judged roles that the rule applies to.
    pub fn judged_roles(&self) -> impl Iterator<Item = Role> {
        let judged = Role::ALL.iter().copied().filter(|role| role.is_resource());
        judged.filter(|role| self.condition.applies_to_role(*role))
    }

    /// Returns the folder to which the rule is limited, or `None` if it has no path condition.
    #[must_use]
    pub fn within(&self) -> Option<&CanonicalPath> {
        self.condition.paths.as_ref().map(|paths| &paths.within)
    }
}
