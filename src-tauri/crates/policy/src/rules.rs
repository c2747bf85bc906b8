//! The rules of a compiled policy, in order.
//!
//! - Order is meaning: the first rule that covers a value decides about it.
//! - Rules are found by server and tool, so that thousands of them stay cheap.

pub(crate) mod examples;
mod index;
mod lines;
pub(crate) mod load;

use crate::domains::{Pattern, Patterns};
use crate::{Reason, Resource, Role, SharedStr};
use examples::Example;
use index::{Index, Places};
use ironcurtain_paths::CanonicalPath;

pub use lines::RuleLines;

/// A compiled policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    rules: Vec<Rule>,
    index: Index,
}

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What it does, for people.
    pub description: String,
    /// The principle it comes from, for people.
    pub principle: String,
    /// Its name, and why, as it is told to the agent and the person.
    pub(crate) said: Reason,
    /// What it decides.
    pub then: Decision,
    pub(crate) condition: Conditions,
    examples: Vec<Example>,
}

/// What a rule decides, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// The call may happen.
    Allow,
    /// A person must say.
    Escalate,
    /// The call does not happen.
    Deny,
}

/// The `if` of a rule: every part that is there must hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Conditions {
    pub(crate) roles: Option<Vec<Role>>,
    pub(crate) server: Option<Vec<String>>,
    pub(crate) tool: Option<Vec<String>>,
    pub(crate) paths: Option<PathsCondition>,
    pub(crate) domains: Option<DomainsCondition>,
    pub(crate) lists: Option<Vec<ListCondition>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PathsCondition {
    pub(crate) roles: Vec<Role>,
    pub(crate) written: String,
    pub(crate) within: CanonicalPath,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DomainsCondition {
    pub(crate) roles: Vec<Role>,
    pub(crate) allowed: Patterns,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListCondition {
    pub(crate) roles: Vec<Role>,
    pub(crate) allowed: Vec<Entry>,
}

/// One entry of a list, in the way its list compares.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    Domain(Pattern),
    Email(String),
    Identifier(String),
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
    pub(crate) fn about(&self, server: &str, tool: &str) -> About<'_> {
        About { rules: &self.rules, places: self.index.about(server, tool) }
    }
}

/// The rules about a tool. Copied to go through them again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    rules: &'a [Rule],
    places: Places<'a>,
}

impl About<'_> {
    /// Those that speak about a role.
    pub(crate) fn speaking(self, role: Role) -> Self {
        Self { places: self.places.speaking(role), ..self }
    }
}

impl<'a> Iterator for About<'a> {
    type Item = &'a Rule;

    fn next(&mut self) -> Option<&'a Rule> {
        self.rules.get(self.places.next()?)
    }
}

/// Finds where the `within` of a rule leads, `~` included. A message says why it cannot be found.
pub type ResolveWithin<'a> = dyn Fn(&str) -> Result<CanonicalPath, String> + 'a;

impl Rule {
    /// Its name, unique in the policy.
    #[must_use]
    pub fn name(&self) -> &SharedStr {
        &self.said.rule
    }

    /// Why, as told to the agent and the person.
    #[must_use]
    pub fn reason(&self) -> &SharedStr {
        &self.said.reason
    }

    pub(crate) fn denies(&self) -> bool {
        self.then == Decision::Deny
    }

    /// The folder its paths must be in, where it names one.
    #[must_use]
    pub fn within(&self) -> Option<&CanonicalPath> {
        self.condition.paths.as_ref().map(|paths| &paths.within)
    }
}

impl Entry {
    /// Whether it may be meant for a value that it does not cover: one in another spelling, or one that nobody
    /// understands.
    pub(crate) fn may_mean(&self, value: &Resource) -> bool {
        match (self, value) {
            (_, Resource::Shapeless) => true,
            (Self::Domain(pattern), Resource::Url(destination)) => pattern.may_mean(destination),
            (Self::Domain(pattern), Resource::Text(text)) => pattern.may_mean_host(text),
            (Self::Identifier(wanted), Resource::Text(text)) => wanted.to_lowercase() == text.to_lowercase(),
            (Self::Domain(_) | Self::Email(_) | Self::Identifier(_), _) => false,
        }
    }

    pub(crate) fn covers(&self, value: &Resource) -> bool {
        let text = match value {
            Resource::Text(text) => text.as_str(),
            Resource::Path(path) => path.as_str(),
            Resource::Url(destination) => match (self, destination.domain()) {
                (Self::Domain(_), Some(domain)) => domain,
                (Self::Domain(_), None) => return false,
                (Self::Email(_) | Self::Identifier(_), _) => destination.text(),
            },
            Resource::Shapeless => return false,
        };
        match self {
            Self::Domain(pattern) => pattern.covers(text),
            Self::Email(wanted) => *wanted == text.to_lowercase(),
            Self::Identifier(wanted) => wanted == text,
        }
    }
}
