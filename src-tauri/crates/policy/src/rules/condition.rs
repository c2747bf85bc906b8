//! Parsed conditions of a rule.

use crate::{HostPattern, HostPatterns, Resource, Role};
use ironcurtain_paths::CanonicalPath;

/// The `if` of a rule; all conditions that are set must hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleCondition {
    /// The tool has an argument with one of these roles, and the rule applies only to these of the judged roles.
    pub roles: Option<Vec<Role>>,
    /// The server is one of these.
    pub server: Option<Vec<String>>,
    /// The tool is one of these.
    pub tool: Option<Vec<String>>,
    /// The path is in a folder.
    pub paths: Option<PathsCondition>,
    /// The values of a role have these targets.
    pub domains: Option<DomainsCondition>,
    /// The values of a role are on these lists.
    pub lists: Option<Vec<ListCondition>>,
    /// The call has no resource, and its server has no reach ([`crate::ServerReach`]).
    pub reaches_nothing: bool,
}

/// A folder, for paths with these roles.
#[derive(Debug, Clone, PartialEq)]
pub struct PathsCondition {
    /// Roles of the paths.
    pub roles: Vec<Role>,
    /// Folder as written in the file.
    pub written: String,
    /// Resolved folder.
    pub within: CanonicalPath,
}

/// Hosts and repositories, for values with these roles.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainsCondition {
    /// Roles of the values.
    pub roles: Vec<Role>,
    /// Allowed targets.
    pub allowed: HostPatterns,
}

/// A list, for values with these roles.
#[derive(Debug, Clone, PartialEq)]
pub struct ListCondition {
    /// Roles of the values.
    pub roles: Vec<Role>,
    /// Allowed values.
    pub allowed: Vec<ListEntry>,
}

/// One entry of a list, with its way of matching.
#[derive(Debug, Clone, PartialEq)]
pub enum ListEntry {
    /// A host or repository.
    Domain(HostPattern),
    /// An email address in lower case.
    Email(String),
    /// An exact value.
    Identifier(String),
}

impl RuleCondition {
    /// Returns `true` if the condition applies to a role: every part with roles must name it; for lists, one is enough.
    pub(crate) fn speaks_about(&self, role: Role) -> bool {
        let of_lists = |lists: &Vec<ListCondition>| {
            lists.is_empty() || lists.iter().any(|list| list.roles.contains(&role))
        };
        self.roles.as_ref().is_none_or(|roles| roles.contains(&role))
            && self.paths.as_ref().is_none_or(|paths| paths.roles.contains(&role))
            && self.domains.as_ref().is_none_or(|domains| domains.roles.contains(&role))
            && self.lists.as_ref().is_none_or(of_lists)
    }

    /// Returns `true` if the condition applies to a tool of a server, by name.
    pub(crate) fn names(&self, server: &str, tool: &str) -> bool {
        let has = |names: &Option<Vec<String>>, name: &str| {
            names.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
        };
        has(&self.server, server) && has(&self.tool, tool)
    }
}

impl ListEntry {
    /// Returns `true` if the entry may be meant for a value that it does not cover, because the
    /// value is unknown or spelled differently.
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
            Resource::Text(text) => &**text,
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
