//! Standing permissions, as far as the judge needs them.
//!
//! - Owner, lifetime and storage are unknown here: the caller passes only live grants.
//! - A grant for one access never covers another.

use crate::{Access, Destination, ResolvedCall, Role, ToolUse};
use ironcurtain_paths::CanonicalPath;

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

/// A standing permission for a use of one tool. Covers no paths, addresses or other values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolGrant {
    /// Id of the grant, for permits and the audit log.
    pub id: String,
    /// Use that it applies to.
    pub tool: ToolUse,
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

impl ToolGrant {
    /// Returns `true` if the grant covers a call: the tool with exactly these values.
    #[must_use]
    pub fn covers(&self, call: &ResolvedCall) -> bool {
        ToolUse::of(call).is_some_and(|tool| tool == self.tool)
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
