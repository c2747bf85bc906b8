//! The meanings of arguments. The one registry of roles.
//!
//! - Adding a role is one row of the table below; a row with a part missing does not compile.
//! - The verb of a role is the one its values are shown with when a person is asked, unless the tool says a worse one.
//! - No role is named by a text literal anywhere else.

use crate::Verb;
use std::fmt;
use std::ops::Deref;
use std::slice;

/// The kind of thing a role names, and so the way its values are made canonical and judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// A file or folder: a canonical absolute path.
    Path,
    /// A place on the network: a normalized URL.
    Url,
    /// A name without case: lower case.
    Identifier,
    /// Anything else: unchanged, and never judged alone.
    Opaque,
}

/// An action of a call on the path it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// Looks.
    Read,
    /// Creates or changes.
    Write,
    /// Takes away.
    Delete,
}

macro_rules! roles {
    ($($role:ident $name:literal $category:ident $access:expr, $verb:expr, $description:literal;)+) => {
        /// The meaning of an argument.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Role {
            $(#[doc = $description] $role,)+
        }

        impl Role {
            /// Every role.
            pub const ALL: &'static [Self] = &[$(Self::$role),+];

            /// The role of this name.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$role),)+
                    _ => None,
                }
            }

            /// Its name in the files.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$role => $name,)+ }
            }

            /// Its meaning, for people.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self { $(Self::$role => $description,)+ }
            }

            /// The kind of thing it names.
            #[must_use]
            pub const fn category(self) -> Category {
                match self { $(Self::$role => Category::$category,)+ }
            }

            /// The action on a path; nothing for roles that name no path.
            #[must_use]
            pub fn access(self) -> Option<Access> {
                match self { $(Self::$role => $access,)+ }
            }

            /// The action on the thing it names, for people; nothing for roles that only tell more of another.
            #[must_use]
            pub fn verb(self) -> Option<Verb> {
                match self { $(Self::$role => $verb,)+ }
            }
        }
    };
}

roles! {
    ReadPath "read-path" Path Some(Access::Read), Some(Verb::Read), "A file or folder that is read.";
    WritePath "write-path" Path Some(Access::Write), Some(Verb::Write), "A file or folder that is created or changed.";
    DeletePath "delete-path" Path Some(Access::Delete), Some(Verb::Delete), "A file or folder that is removed or moved away.";
    WriteHistory "write-history" Path Some(Access::Write), Some(Verb::Record), "A repository whose history or references are changed.";
    DeleteHistory "delete-history" Path Some(Access::Delete), Some(Verb::Forget), "A repository whose references are removed.";
    FetchUrl "fetch-url" Url None, Some(Verb::Fetch), "An address that is fetched.";
    GitRemoteUrl "git-remote-url" Url None, Some(Verb::Push), "A git remote that is talked to, by address or by name.";
    GithubOwner "github-owner" Identifier None, Some(Verb::Publish), "The account that owns what is acted on.";
    GithubRepo "github-repo" Identifier None, Some(Verb::Publish), "A repository, without its owner.";
    ProxyDomain "proxy-domain" Identifier None, Some(Verb::Reach), "A host that is opened for traffic.";
    BranchName "branch-name" Opaque None, None, "A git branch.";
    CommitMessage "commit-message" Opaque None, None, "The text of a commit.";
    EmailAddress "email-address" Opaque None, Some(Verb::Send), "A person written to.";
    EmailBody "email-body" Opaque None, None, "The text of a message.";
    SharePermission "share-permission" Opaque None, None, "What a person it is shared with may do.";
    Command "command" Opaque None, Some(Verb::Run), "A command or a program text that is run.";
    ResourceUri "resource-uri" Opaque None, Some(Verb::Read), "The address of a resource that only its server knows.";
    PromptName "prompt-name" Opaque None, Some(Verb::Use), "The name of a prompt of the server.";
    PromptArgument "prompt-argument" Opaque None, None, "The argument of a prompt or resource that is completed.";
    None "none" Opaque None, None, "Nothing that is judged.";
}

impl Role {
    /// Returns `true` if a folder in this role always stands for all that is in it: taking a folder away takes its content.
    #[must_use]
    pub fn descends(self) -> bool {
        RoleSet::DESCENDING.contains(self)
    }

    /// Returns `true` if it names something that is judged by itself.
    #[must_use]
    pub fn is_resource(self) -> bool {
        match self.category() {
            Category::Path | Category::Url | Category::Identifier => true,
            Category::Opaque => false,
        }
    }
}

/// Some of the roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RoleSet(u32);

impl RoleSet {
    /// The roles that name paths.
    pub const PATHS: Self = Self::of(Category::Path);
    /// The roles that name places on the network.
    pub const URLS: Self = Self::of(Category::Url);
    /// The roles that name things without case.
    pub const IDENTIFIERS: Self = Self::of(Category::Identifier);

    /// The roles that are judged by themselves.
    pub const RESOURCES: Self = Self(Self::PATHS.0 | Self::URLS.0 | Self::IDENTIFIERS.0);

    /// The roles in which a folder always stands for all that is in it.
    pub const DESCENDING: Self = Self(Self::bit(Role::DeletePath));

    /// The roles of a category.
    const fn of(category: Category) -> Self {
        let (mut set, mut left) = (0, Role::ALL);
        while let [role, rest @ ..] = left {
            if role.category() as u8 == category as u8 {
                set |= Self::bit(*role);
            }
            left = rest;
        }
        Self(set)
    }

    /// Returns `true` if a role is among them.
    #[must_use]
    pub fn contains(self, role: Role) -> bool {
        self.0 & Self::bit(role) != 0
    }

    /// Returns `true` if both have a role in common.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns `true` if there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them, in the order of the registry.
    pub fn iter(self) -> impl Iterator<Item = Role> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let at = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            Role::ALL.get(at as usize).copied()
        })
    }

    /// Returns `true` if all of the other's are among them.
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

/// The roles of an argument, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles {
    roles: Vec<Role>,
    /// All of them.
    pub(crate) all: RoleSet,
    /// Those that mean something.
    pub(crate) meant: RoleSet,
}

impl Deref for Roles {
    type Target = [Role];

    fn deref(&self) -> &[Role] {
        &self.roles
    }
}

impl From<Vec<Role>> for Roles {
    fn from(roles: Vec<Role>) -> Self {
        let meant = roles.iter().copied().filter(|role| *role != Role::None).collect();
        Self { all: roles.iter().copied().collect(), meant, roles }
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
    fn a_set_holds_what_was_put_in() {
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
