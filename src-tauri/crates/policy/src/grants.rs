//! Standing permissions, as far as judging needs them.
//!
//! - Whose grant it is, how long it lives and where it is kept is not known here: the caller passes live ones only.
//! - A grant for one access never covers another.

use crate::{Access, Destination, ResolvedCall, Role, ToolUse};
use ironcurtain_paths::CanonicalPath;

/// A standing permission for one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGrant {
    /// Names the grant in permits and in the audit log.
    pub id: String,
    /// The path that it is for.
    pub path: CanonicalPath,
    /// The extent to which it reaches.
    pub kind: GrantKind,
    /// The actions that it permits there.
    pub access: AccessSet,
}

/// A standing permission for one port of one host: what is fetched from there is not asked about, and no gate asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostGrant {
    /// Names the grant in permits and in the audit log.
    pub id: String,
    /// The host, as [`Destination::host_and_port`] spells it.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A standing permission for a use of one tool. It covers no path, no address, and no other value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolGrant {
    /// Names the grant in permits and in the audit log.
    pub id: String,
    /// The use that it is for.
    pub tool: ToolUse,
}

/// The extent to which a grant reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantKind {
    /// That path alone.
    File,
    /// That path and all below it.
    Tree,
}

/// Which accesses a grant gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessSet {
    /// Looking.
    pub read: bool,
    /// Creating and changing.
    pub write: bool,
    /// Taking away.
    pub delete: bool,
}

impl AccessSet {
    /// Just this access.
    #[must_use]
    pub fn only(access: Access) -> Self {
        Self::default().with(access)
    }

    /// This set and that access.
    #[must_use]
    pub fn with(mut self, access: Access) -> Self {
        match access {
            Access::Read => self.read = true,
            Access::Write => self.write = true,
            Access::Delete => self.delete = true,
        }
        self
    }

    /// Returns `true` if the set has this access.
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
    /// Returns `true` if it opens the host and the port of a destination.
    #[must_use]
    pub fn covers(&self, destination: &Destination) -> bool {
        destination.host_and_port() == Some((&self.host, self.port))
    }
}

impl ToolGrant {
    /// Returns `true` if it covers a call: the tool, with exactly its values.
    #[must_use]
    pub fn covers(&self, call: &ResolvedCall) -> bool {
        ToolUse::of(call).is_some_and(|tool| tool == self.tool)
    }
}

impl PathGrant {
    /// Returns `true` if it covers what `role` does to `path`.
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
    fn just_one_access_is_that_access_and_no_other() {
        let all = [Access::Read, Access::Write, Access::Delete];
        for only in all {
            assert!(all.into_iter().all(|access| AccessSet::only(only).has(access) == (access == only)));
        }
    }
}
