//! Standing permissions, as far as the judge needs them.
//!
//! - Owner, lifetime and storage are unknown here: the caller passes only live grants.
//! - A grant for one access never covers another.

use crate::{Access, Destination, ResolvedCall, Role, ToolUse};
use ironcurtain_paths::CanonicalPath;
use std::fmt;

/// A standing permission for one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGrant {
    /// Id of the grant, for permits and the audit log.
    pub id: String,
    /// Path that it applies to.
    pub path: CanonicalPath,
    /// Extent of the grant.
    pub kind: GrantKind,
    /// Permitted accesses.
    pub access: AccessSet,
}

/// A standing permission for one port of one host. Neither rules about fetching nor the gate require approval for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostGrant {
    /// Id of the grant, for permits and the audit log.
    pub id: String,
    /// Host, spelled like [`Destination::host_and_port`].
    pub host: String,
    /// Port number.
    pub port: u16,
}

/// A standing permission for tools of a server. Covers no path, address or host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolGrant {
    /// Id of the grant, for permits and the audit log.
    pub id: String,
    /// Calls that it applies to.
    pub scope: ToolScope,
}

/// Calls of a server's tools that a grant covers. No scope covers a call that names a path, an address or a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolScope {
    /// One tool, with its meaningful values fixed.
    Use(ToolUse),
    /// One tool, with any arguments.
    Tool(String),
    /// Every tool that only reads, according to its annotation.
    Reading,
    /// Every tool.
    All,
}

/// Extent of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantKind {
    /// Only the path itself.
    File,
    /// The path and everything below it.
    Tree,
}

/// Set of accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessSet {
    /// Reading.
    pub read: bool,
    /// Creating and changing.
    pub write: bool,
    /// Deleting.
    pub delete: bool,
}

impl AccessSet {
    /// Creates a set with one access.
    #[must_use]
    pub fn only(access: Access) -> Self {
        Self::default().with(access)
    }

    /// Adds an access.
    #[must_use]
    pub fn with(mut self, access: Access) -> Self {
        match access {
            Access::Read => self.read = true,
            Access::Write => self.write = true,
            Access::Delete => self.delete = true,
        }
        self
    }

    /// Returns `true` if the set contains this access.
    #[must_use]
    pub fn has(self, access: Access) -> bool {
        match access {
            Access::Read => self.read,
            Access::Write => self.write,
            Access::Delete => self.delete,
        }
    }
}

impl HostGrant {
    /// Returns `true` if the grant covers the host and port of a destination.
    #[must_use]
    pub fn covers(&self, destination: &Destination) -> bool {
        destination.host_and_port() == Some((&self.host, self.port))
    }
}

impl ToolScope {
    /// Returns `true` if a grant with this scope covers a call.
    #[must_use]
    pub fn covers(&self, call: &ResolvedCall) -> bool {
        let Some(used) = ToolUse::of(call) else { return false };
        match self {
            Self::Use(granted) => used == *granted,
            Self::Tool(name) => call.request().is_none() && call.tool() == name,
            Self::Reading => call.request().is_none() && call.only_reads(),
            Self::All => call.request().is_none(),
        }
    }

    /// Returns the tool, unless the scope has several.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::Use(granted) => Some(granted.tool()),
            Self::Tool(name) => Some(name),
            Self::Reading | Self::All => None,
        }
    }
}

impl fmt::Display for ToolScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Use(granted) => granted.fmt(formatter),
            Self::Tool(name) => write!(formatter, "{name} with any arguments"),
            Self::Reading => formatter.write_str("every tool that only reads"),
            Self::All => formatter.write_str("every tool"),
        }
    }
}

impl PathGrant {
    /// Returns `true` if the grant covers the access of `role` to `path`.
    #[must_use]
    pub fn covers(&self, role: Role, path: &CanonicalPath) -> bool {
        role.access().is_some_and(|access| self.access.has(access)) && self.reaches(path)
    }

    fn reaches(&self, path: &CanonicalPath) -> bool {
        match self.kind {
            GrantKind::File => self.path == *path,
            GrantKind::Tree => self.path.contains(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_access_contains_no_other() {
        let all = [Access::Read, Access::Write, Access::Delete];
        for only in all {
            assert!(all.into_iter().all(|access| AccessSet::only(only).has(access) == (access == only)));
        }
    }
}
