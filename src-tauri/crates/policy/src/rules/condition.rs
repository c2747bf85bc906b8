//! Parsed conditions of a rule.

use crate::{HostPattern, HostPatterns, Resource, Role};
use ironcurtain_paths::CanonicalPath;

/// Conditions in a rule's `if` field. All conditions that are set must hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleCondition {
    /// The tool has an argument with one of these roles. The rule applies only to values with such a role.
    pub roles: Option<Vec<Role>>,
    /// The server has one of these names.
    pub server: Option<Vec<String>>,
    /// The tool has one of these names.
    pub tool: Option<Vec<String>>,
    /// The paths are in a folder.
    pub paths: Option<PathsCondition>,
    /// The URLs or identifiers are on certain hosts or repositories.
    pub domains: Option<DomainsCondition>,
    /// The values are on these lists.
    pub lists: Option<Vec<ListCondition>>,
    /// `true` if the call must have no resource and its server must reach nothing ([`crate::ServerReach`]).
    pub reaches_nothing: bool,
}

/// Folder that must contain the paths with certain roles.
#[derive(Debug, Clone, PartialEq)]
pub struct PathsCondition {
    /// Roles whose values must be in the folder.
    pub roles: Vec<Role>,
    /// Folder as written in the policy file.
    pub written: String,
    /// Canonical path of the folder.
    pub within: CanonicalPath,
}

/// Hosts and repositories that must cover the values with certain roles.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainsCondition {
    /// Roles whose values are checked.
    pub roles: Vec<Role>,
    /// Patterns, one of which must cover each value.
    pub allowed: HostPatterns,
}

/// List that must contain the values with certain roles.
#[derive(Debug, Clone, PartialEq)]
pub struct ListCondition {
    /// Roles whose values are checked.
    pub roles: Vec<Role>,
    /// List entries, one of which must match each value.
    pub allowed: Vec<ListEntry>,
}

/// List entry. Each kind of entry matches values differently.
#[derive(Debug, Clone, PartialEq)]
pub enum ListEntry {
    /// Matches a host or repository.
    Domain(HostPattern),
    /// Matches an email address regardless of case. Stored in lower case.
    Email(String),
    /// Matches exactly this value.
    Identifier(String),
}

impl RuleCondition {
    /// Returns `true` if the rule can apply to a role. Every condition with roles must include the role, except that
    /// only one of the list conditions has to include it.
    pub(crate) fn applies_to_role(&self, role: Role) -> bool {
        let lists_include_role = |lists: &Vec<ListCondition>| {
            lists.is_empty() || lists.iter().any(|list| list.roles.contains(&role))
        };
        self.roles.as_ref().is_none_or(|roles| roles.contains(&role))
            && self.paths.as_ref().is_none_or(|paths| paths.roles.contains(&role))
            && self.domains.as_ref().is_none_or(|domains| domains.roles.contains(&role))
            && self.lists.as_ref().is_none_or(lists_include_role)
    }

    /// Returns `true` if the rule can apply to a tool, judging by server and tool name only.
    pub(crate) fn applies_to_tool(&self, server: &str, tool: &str) -> bool {
        let has = |names: &Option<Vec<String>>, name: &str| {
            names.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
        };
        has(&self.server, server) && has(&self.tool, tool)
    }
}

impl ListEntry {
    /// Returns `true` if the entry's author may have meant a value that the entry does not match, because the value
    /// is unknown or spelled differently.
    pub(crate) fn may_match(&self, value: &Resource) -> bool {
        match (self, value) {
            (_, Resource::NonString) => true,
            (Self::Domain(pattern), Resource::Url(destination)) => pattern.may_match(destination),
            (Self::Domain(pattern), Resource::Text(text)) => pattern.may_match_host(text),
            (Self::Identifier(expected), Resource::Text(text)) => {
                expected.to_lowercase() == text.to_lowercase()
            }
            (Self::Domain(_) | Self::Email(_) | Self::Identifier(_), _) => false,
        }
    }

    /// Returns `true` if the entry is a path inside the given folder.
    pub(crate) fn is_inside(&self, folder: &Resource) -> bool {
        match (self, folder) {
            (Self::Identifier(path), Resource::Path(folder)) => {
                CanonicalPath::assume_canonical(path).is_ok_and(|path| folder.strictly_contains(&path))
            }
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
            Resource::NonString => return false,
        };
        match self {
            Self::Domain(pattern) => pattern.covers(text),
            Self::Email(expected) => *expected == text.to_lowercase(),
            Self::Identifier(expected) => expected == text,
        }
    }
}
