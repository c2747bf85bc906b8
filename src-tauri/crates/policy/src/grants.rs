//! Standing permissions that the judge takes into account.
//!
//! - Owner, lifetime and storage of a grant are not modelled here; the caller passes only grants in
//!   force.
//! - A grant covers only its own kinds of access: permission to write does not include permission
//!   to read.

use crate::{Access, Destination, ResolvedCall, Role, ToolUse};
use ironcurtain_paths::CanonicalPath;

/// Standing permission to access one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGrant {
    /// Id that permits and the audit log refer to.
    pub id: String,
    /// File or folder that the grant applies to.
    pub path: CanonicalPath,
    /// Extent of the grant.
    pub kind: GrantKind,
    /// Kinds of access that the grant permits.
    pub access: AccessSet,
}

/// Standing permission to connect to one port of one host. Neither rules about fetching nor the server's
/// allowed hosts then require approval for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostGrant {
    /// Id that permits and the audit log refer to.
    pub id: String,
    /// Host in the form that [`Destination::host_and_port`] returns.
    pub host: String,
    /// Port of the host.
    pub port: u16,
}

/// Standing permission for one use of a tool. Covers no paths or addresses, and only these values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolGrant {
    /// Id that permits and the audit log refer to.
    pub id: String,
    /// Tool and values that the grant applies to.
    pub tool: ToolUse,
}

/// Extent of a path grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantKind {
    /// The path itself only.
    File,
    /// The path and everything below it.
    Tree,
}

/// Set of access kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessSet {
    /// `true` if the set contains reading.
    pub read: bool,
    /// `true` if the set contains creating and changing.
    pub write: bool,
    /// `true` if the set contains deleting.
    pub delete: bool,
}

impl AccessSet {
    /// Creates a set that contains only this access.
    #[must_use]
    pub fn only(access: Access) -> Self {
        Self::default().with(access)
    }

    /// Returns the set with this access added.
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

impl ToolGrant {
    /// Returns `true` if the call uses the granted tool with exactly the granted values.
    #[must_use]
    pub fn covers(&self, call: &ResolvedCall) -> bool {
        ToolUse::of(call).is_some_and(|tool| tool == self.tool)
    }
}

impl PathGrant {
    /// Returns `true` if the grant covers the access that `role` implies to `path`.
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
