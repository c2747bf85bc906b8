//! The conditions of a rule, read and ready to be held against values.

use crate::{HostPattern, HostPatterns, Resource, Role};
use ironcurtain_paths::CanonicalPath;

/// The `if` of a rule: every part that is there must hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleCondition {
    /// The tool has an argument that carries one of these; and of the judged roles, the rule speaks about these alone.
    pub roles: Option<Vec<Role>>,
    /// The server is one of these.
    pub server: Option<Vec<String>>,
    /// The tool is one of these.
    pub tool: Option<Vec<String>>,
    /// The path lies in a folder.
    pub paths: Option<PathsCondition>,
    /// The values of a role lead to these places.
    pub domains: Option<DomainsCondition>,
    /// The values of a role are on these lists.
    pub lists: Option<Vec<ListCondition>>,
    /// The call names no resource, and its server reaches nothing ([`crate::ServerReach`]).
    pub reaches_nothing: bool,
}

/// A folder, for paths of these roles.
#[derive(Debug, Clone, PartialEq)]
pub struct PathsCondition {
    /// The roles.
    pub roles: Vec<Role>,
    /// The folder as the file spells it.
    pub written: String,
    /// The folder that leads to.
    pub within: CanonicalPath,
}

/// Hosts and repositories, for values of these roles.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainsCondition {
    /// The roles.
    pub roles: Vec<Role>,
    /// The places.
    pub allowed: HostPatterns,
}

/// A list, for values of these roles.
#[derive(Debug, Clone, PartialEq)]
pub struct ListCondition {
    /// The roles.
    pub roles: Vec<Role>,
    /// The list.
    pub allowed: Vec<ListEntry>,
}

/// One entry of a list, in the way its list compares.
#[derive(Debug, Clone, PartialEq)]
pub enum ListEntry {
    /// A host or a repository.
    Domain(HostPattern),
    /// An address of mail, in lower case.
    Email(String),
    /// Exactly this.
    Identifier(String),
}

impl RuleCondition {
    /// Returns `true` if it is about values of a role: every part that names roles must name it; one of the lists is enough.
    pub(crate) fn speaks_about(&self, role: Role) -> bool {
        let of_lists = |lists: &Vec<ListCondition>| {
            lists.is_empty() || lists.iter().any(|list| list.roles.contains(&role))
        };
        self.roles.as_ref().is_none_or(|roles| roles.contains(&role))
            && self.paths.as_ref().is_none_or(|paths| paths.roles.contains(&role))
            && self.domains.as_ref().is_none_or(|domains| domains.roles.contains(&role))
            && self.lists.as_ref().is_none_or(of_lists)
    }

    /// Returns `true` if it is about a tool of a server, by their names.
    pub(crate) fn names(&self, server: &str, tool: &str) -> bool {
        let has = |names: &Option<Vec<String>>, name: &str| {
            names.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
        };
        has(&self.server, server) && has(&self.tool, tool)
    }
}

impl ListEntry {
    /// Returns `true` if it may be meant for a value that it does not cover: one in another spelling, or one that nobody
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
