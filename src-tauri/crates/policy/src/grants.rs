//! Standing permissions that the judge takes into account.
//!
//! - A grant's owner, lifetime and storage are not modelled here. The caller passes only active grants.
//! - A grant covers only its own kinds of access: permission to write does not include permission to read.

use crate::{Access, Destination, ResolvedCall, Role, ToolUse};
use ironcurtain_paths::CanonicalPath;
use std::fmt;

/// Standing permission to access one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGrant {
    /// Id of the grant in permits and in the audit log.
    pub id: String,
    /// Time of creation, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// File or folder that the grant applies to.
    pub path: CanonicalPath,
    /// Extent of the grant.
    pub kind: GrantKind,
    /// Kinds of access that the grant permits.
    pub access: AccessSet,
}

/// Standing permission to connect to one port of one host. Such a connection needs no approval, even if a rule about
/// fetching or the server's allowed hosts would require it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostGrant {
    /// Id of the grant in permits and in the audit log.
    pub id: String,
    /// Time of creation, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// Host in the form that [`Destination::host_and_port`] returns.
    pub host: String,
    /// Port of the host.
    pub port: u16,
}

/// Standing permission to use a server's tools. It does not apply to paths, addresses or hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolGrant {
    /// Id of the grant in permits and in the audit log.
    pub id: String,
    /// Time of creation, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// Calls to which the grant applies.
    pub scope: ToolScope,
}

/// Calls to a server's tools to which a grant applies. A call that names a path, an address or a host is in no scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolScope {
    /// One tool with certain argument values.
    Use(ToolUse),
    /// One tool with any arguments.
    Tool(String),
    /// Every tool that only reads, according to its annotation.
    ReadOnly,
    /// Every tool.
    All,
}

/// Extent of a path grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantKind {
    /// The path itself only.
    File,
    /// The path and everything below it.
    Tree,
}

/// Set of kinds of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessSet {
    /// `true` if the set includes reading.
    pub read: bool,
    /// `true` if the set includes creating and changing.
    pub write: bool,
    /// `true` if the set includes deleting.
    pub delete: bool,
}

impl AccessSet {
    /// Creates a set that contains only this kind of access.
    #[must_use]
    pub fn only(access: Access) -> Self {
        Self::default().with(access)
    }

    /// Returns the set with this kind of access added.
    #[must_use]
    pub fn with(mut self, access: Access) -> Self {
        match access {
            Access::Read => self.read = true,
            Access::Write => self.write = true,
            Access::Delete => self.delete = true,
        }
        self
    }

    /// Returns `true` if the set contains this kind of access.
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
    /// Returns `true` if the call is in this scope.
    #[must_use]
    pub fn covers(&self, call: &ResolvedCall) -> bool {
        let Some(used) = ToolUse::from_call(call) else { return false };
        match self {
            Self::Use(granted) => used == *granted,
            Self::Tool(name) => call.request().is_none() && call.tool() == name,
            Self::ReadOnly => call.request().is_none() && call.only_reads(),
            Self::All => call.request().is_none(),
        }
    }

    /// Returns the tool's name, or `None` if the scope includes several tools.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::Use(granted) => Some(granted.tool()),
            Self::Tool(name) => Some(name),
            Self::ReadOnly | Self::All => None,
        }
    }
}

impl fmt::Display for ToolScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Use(granted) => granted.fmt(formatter),
            Self::Tool(name) => write!(formatter, "{name} with any arguments"),
            Self::ReadOnly => formatter.write_str("every tool that only reads"),
            Self::All => formatter.write_str("every tool"),
        }
    }
}

impl PathGrant {
    /// Returns `true` if the grant covers the kind of access to `path` that `role` implies.
    #[must_use]
    pub fn covers(&self, role: Role, path: &CanonicalPath) -> bool {
        role.access().is_some_and(|access| self.access.has(access)) && self.covers_path(path)
    }

    fn covers_path(&self, path: &CanonicalPath) -> bool {
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
