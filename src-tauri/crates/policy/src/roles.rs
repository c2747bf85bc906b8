//! Registry of argument roles.
//!
//! - Each role is a row of the table below. A row that lacks a column does not compile.
//! - A prompt shows a value with its role's verb, unless the tool's name implies a more harmful verb.
//! - No other code identifies a role by a string literal.

use crate::Verb;
use std::fmt;
use std::ops::Deref;
use std::slice;

/// Kind of resource that a role names, which determines how values are normalized and judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// File or folder, normalized to a canonical absolute path.
    Path,
    /// Network target, normalized as a URL.
    Url,
    /// Case-insensitive name, normalized to lower case.
    Identifier,
    /// Any other value. Left unchanged and never judged separately.
    Opaque,
}

/// Kind of access that a call has to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// Reads the file or folder.
    Read,
    /// Creates or changes the file or folder.
    Write,
    /// Deletes the file or folder, or moves it away.
    Delete,
}

macro_rules! roles {
    ($($role:ident $name:literal $category:ident $access:expr, $verb:expr, $description:literal;)+) => {
        /// Meaning of an argument.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Role {
            $(#[doc = $description] $role,)+
        }

        impl Role {
            /// All roles, in the order of the registry.
            pub const ALL: &'static [Self] = &[$(Self::$role),+];

            /// Returns the role with this name.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$role),)+
                    _ => None,
                }
            }

            /// Returns the name of the role in policy and annotations files.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$role => $name,)+ }
            }

            /// Returns the description shown to the user.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self { $(Self::$role => $description,)+ }
            }

            /// Returns the kind of resource that the role names.
            #[must_use]
            pub const fn category(self) -> Category {
                match self { $(Self::$role => Category::$category,)+ }
            }

            /// Returns the kind of access to a path, or `None` for roles that do not name a path.
            #[must_use]
            pub fn access(self) -> Option<Access> {
                match self { $(Self::$role => $access,)+ }
            }

            /// Returns the verb for prompts, or `None` for roles that only qualify another role.
            #[must_use]
            pub fn verb(self) -> Option<Verb> {
                match self { $(Self::$role => $verb,)+ }
            }
        }
    };
}

roles! {
    ReadPath "read-path" Path Some(Access::Read), Some(Verb::Read), "A file or folder to read.";
    WritePath "write-path" Path Some(Access::Write), Some(Verb::Write), "A file or folder to create or change.";
    DeletePath "delete-path" Path Some(Access::Delete), Some(Verb::Delete), "A file or folder to remove or move away.";
    WriteHistory "write-history" Path Some(Access::Write), Some(Verb::Record), "A repository whose history or references change.";
    DeleteHistory "delete-history" Path Some(Access::Delete), Some(Verb::Forget), "A repository whose references are removed.";
    FetchUrl "fetch-url" Url None, Some(Verb::Fetch), "A URL to fetch.";
    GitRemoteUrl "git-remote-url" Url None, Some(Verb::Push), "A git remote, as an address or a name.";
    GithubOwner "github-owner" Identifier None, Some(Verb::Publish), "The owner of the affected repository.";
    GithubRepo "github-repo" Identifier None, Some(Verb::Publish), "A repository, without its owner.";
    ProxyDomain "proxy-domain" Identifier None, Some(Verb::Reach), "A host to allow traffic to.";
    BranchName "branch-name" Opaque None, None, "A git branch.";
    CommitMessage "commit-message" Opaque None, None, "The text of a commit.";
    EmailAddress "email-address" Opaque None, Some(Verb::Send), "A recipient of a message.";
    EmailBody "email-body" Opaque None, None, "The text of a message.";
    SharePermission "share-permission" Opaque None, None, "The permission given to a recipient.";
    Command "command" Opaque None, Some(Verb::Run), "A command or code to run.";
    ResourceUri "resource-uri" Opaque None, Some(Verb::Read), "The URI of a resource on the server.";
    PromptName "prompt-name" Opaque None, Some(Verb::Use), "The name of a prompt on the server.";
    PromptArgument "prompt-argument" Opaque None, None, "A prompt or resource argument to complete.";
    None "none" Opaque None, None, "Not judged.";
}

impl Role {
    /// Returns `true` if a folder with this role always includes everything in it, as in a deletion.
    #[must_use]
    pub fn descends(self) -> bool {
        RoleSet::DESCENDING.contains(self)
    }

    /// Returns `true` if values with this role are judged separately.
    #[must_use]
    pub fn is_resource(self) -> bool {
        match self.category() {
            Category::Path | Category::Url | Category::Identifier => true,
            Category::Opaque => false,
        }
    }
}

/// Set of roles, stored as a bit set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RoleSet(u32);

impl RoleSet {
    /// Roles that name paths.
    pub const PATHS: Self = Self::in_category(Category::Path);
    /// Roles that name network targets.
    pub(crate) const URLS: Self = Self::in_category(Category::Url);
    /// Roles that name case-insensitive identifiers.
    pub(crate) const IDENTIFIERS: Self = Self::in_category(Category::Identifier);

    /// Roles whose values are judged separately.
    pub(crate) const RESOURCES: Self = Self(Self::PATHS.0 | Self::URLS.0 | Self::IDENTIFIERS.0);

    /// Roles for which a folder always includes everything in it.
    pub(crate) const DESCENDING: Self = Self(Self::bit(Role::DeletePath));

    /// Returns the set of all roles in a category.
    const fn in_category(category: Category) -> Self {
        let (mut set, mut remaining) = (0, Role::ALL);
        while let [role, rest @ ..] = remaining {
            if role.category() as u8 == category as u8 {
                set |= Self::bit(*role);
            }
            remaining = rest;
        }
        Self(set)
    }

    /// Returns `true` if the set contains a role.
    #[must_use]
    pub fn contains(self, role: Role) -> bool {
        self.0 & Self::bit(role) != 0
    }

    /// Returns `true` if the sets have at least one role in common.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns `true` if the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Iterates over the roles in the order of the registry.
    pub fn iter(self) -> impl Iterator<Item = Role> {
        let mut remaining = self.0;
        std::iter::from_fn(move || {
            let at = remaining.trailing_zeros();
            remaining &= remaining.wrapping_sub(1);
            Role::ALL.get(at as usize).copied()
        })
    }

    /// Returns `true` if the set contains all roles in `other`.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Adds a role.
    pub fn insert(&mut self, role: Role) {
        self.0 |= Self::bit(role);
    }

    const fn bit(role: Role) -> u32 {
        1 << role as u32
    }
}

/// Roles of an argument, in the order of the annotations file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles {
    roles: Vec<Role>,
    /// All roles as a set, including `none`.
    pub(crate) all: RoleSet,
    /// All roles as a set, except `none`.
    pub(crate) without_none: RoleSet,
}

impl Deref for Roles {
    type Target = [Role];

    fn deref(&self) -> &[Role] {
        &self.roles
    }
}

impl From<Vec<Role>> for Roles {
    fn from(roles: Vec<Role>) -> Self {
        let without_none = roles.iter().copied().filter(|role| *role != Role::None).collect();
        Self { all: roles.iter().copied().collect(), without_none, roles }
    }
}

impl<'a> IntoIterator for &'a Roles {
    type Item = &'a Role;
    type IntoIter = slice::Iter<'a, Role>;

    fn into_iter(self) -> Self::IntoIter {
        self.roles.iter()
    }
}

impl FromIterator<Role> for RoleSet {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        let mut set = Self::default();
        roles.into_iter().for_each(|role| set.insert(role));
        set
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Display for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_is_found_by_its_name_and_only_path_roles_have_an_access() {
        assert_eq!(Role::ALL.len(), 20);
        for role in Role::ALL {
            assert_eq!(Role::parse(role.name()), Some(*role));
            assert_eq!(role.access().is_some(), role.category() == Category::Path, "{role}");
        }
        assert_eq!(Role::parse("read_path"), None);
    }

    #[test]
    fn a_set_contains_the_inserted_roles() {
        let some = [Role::None, Role::ReadPath, Role::FetchUrl, Role::ReadPath];
        let set: RoleSet = some.into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [Role::ReadPath, Role::FetchUrl, Role::None]);
        assert!(set.contains(Role::FetchUrl) && !set.contains(Role::WritePath));
        assert!(set.meets(RoleSet::PATHS) && !set.is_empty());
        assert!(!RoleSet::default().meets(set) && RoleSet::default().is_empty());
        let paths = Role::ALL.iter().copied().filter(|role| role.access().is_some());
        assert_eq!(RoleSet::PATHS, paths.collect());
        assert_eq!(Role::ALL.iter().copied().collect::<RoleSet>().iter().collect::<Vec<_>>(), Role::ALL);
    }
}
