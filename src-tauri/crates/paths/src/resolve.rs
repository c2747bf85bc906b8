//! Finds where a path really leads, one component after the other, as the kernel would.
//!
//! - A symlink before `..` is followed first; a dangling symlink is followed to where a write through it would land.
//! - What does not exist, or lies below a file, is appended verbatim, however deep, and a `..` there takes back one
//!   component. The kernel would refuse such a path; here it is safe, because what is judged is what is sent.
//! - A missing name whose text stands there in another Unicode form is an error: a server may take it for that one.
//! - A link of the kernel's own (`/proc/self/fd/0`), a loop, too many links, a NUL, `~name`, an empty path, a link
//!   to a name that is not UTF-8 and a folder that may not be searched are errors: the caller denies.
//! - The answer is true for the moment it was found. Whoever uses it later resolves again.

mod unicode_twins;
mod walk;
#[cfg(target_os = "linux")]
mod without_links;

/// Elsewhere the walk finds out.
#[cfg(not(target_os = "linux"))]
mod without_links {
    pub(super) fn resolve(_: &str) -> Option<super::Resolution> {
        None
    }

    pub(super) fn is_magic(_: &str) -> bool {
        false
    }
}

use crate::CanonicalPath;
use std::borrow::Cow;
use std::io;
use walk::Walk;

/// Resolves paths for one person and one place that relative paths start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolver {
    home: CanonicalPath,
    base: CanonicalPath,
}

/// The place that a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The path, free of symlinks in everything that exists.
    pub path: CanonicalPath,
    /// The symlinks followed on the way, in order.
    pub links: Vec<Link>,
    /// The kind of thing that is there.
    pub target: PathKind,
}

/// One symlink that was followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The place of the symlink.
    pub at: CanonicalPath,
    /// Its text, verbatim.
    pub target: String,
}

/// The kind of thing at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing.
    Missing,
    /// A regular file of this many bytes.
    File {
        /// Its size.
        bytes: u64,
    },
    /// A folder.
    Folder,
    /// A device, a socket or a pipe.
    Special,
}

/// Why a path cannot be resolved, and so is denied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// No path at all.
    #[error("the path is empty")]
    Empty,
    /// A NUL byte.
    #[error("the path `{0}` contains a NUL character")]
    Nul(String),
    /// `~name`.
    #[error(
        "`{0}` names another person's home: write the absolute path (for a file of that name, put `./` before it)"
    )]
    OtherHome(String),
    /// More links than the kernel follows, or a loop.
    #[error("`{0}` has too many symlinks or a loop of them")]
    TooManyLinks(String),
    /// A link of the kernel's own, or one that leads to it, such as `/proc/self/fd/0`.
    #[error(
        "`{0}` leads by a link of the kernel's own to what is open there, and not to a path: name the file itself"
    )]
    Magic(String),
    /// A link to a name that is not text.
    #[error("the symlink `{0}` leads to a name that is not UTF-8")]
    NotText(String),
    /// A missing name that a server may take for one that is there.
    #[error(
        "`{path}` does not exist, but `{found}` does, which is the same text in another Unicode form: write it as it stands there"
    )]
    OtherForm {
        /// The missing path.
        path: String,
        /// The path that is there, with its unusual characters as code points.
        found: String,
    },
    /// The disk would not say.
    #[error("`{path}` cannot be looked at: {source}")]
    Unreadable {
        /// The path that was looked at.
        path: String,
        /// Why not.
        source: io::Error,
    },
}

impl Resolver {
    /// A resolver for `~` as `home` and for relative paths from `base`.
    ///
    /// Both are taken as they are: resolve them first, when they may hold symlinks.
    #[must_use]
    pub fn new(home: CanonicalPath, base: CanonicalPath) -> Self {
        Self { home, base }
    }

    /// The person's home.
    #[must_use]
    pub fn home(&self) -> &CanonicalPath {
        &self.home
    }

    /// The folder that relative paths start from.
    #[must_use]
    pub fn base(&self) -> &CanonicalPath {
        &self.base
    }

    /// Finds where `raw` leads.
    ///
    /// # Errors
    /// See [`PathError`]: whatever is in doubt is an error, and the caller denies.
    pub fn resolve(&self, raw: &str) -> Result<Resolution, PathError> {
        let absolute = self.start(raw)?;
        match without_links::resolve(&absolute) {
            Some(resolution) => Ok(resolution),
            None => Walk::new(raw).run(&absolute),
        }
    }

    /// Finds where `raw` leads, whatever is there.
    ///
    /// # Errors
    /// Those of [`Resolver::resolve`].
    pub fn locate(&self, raw: &str) -> Result<CanonicalPath, PathError> {
        self.resolve(raw).map(|found| found.path)
    }

    /// Writes the person's home for the `~` of `~` and `~/x`, and resolves nothing; nothing for any other spelling.
    #[must_use]
    pub fn expand_home(&self, raw: &str) -> Option<String> {
        let rest = raw.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
        Some(format!("{}{rest}", self.home))
    }

    /// The whole path to walk, absolute.
    fn start<'a>(&self, raw: &'a str) -> Result<Cow<'a, str>, PathError> {
        if raw.is_empty() {
            return Err(PathError::Empty);
        }
        if raw.starts_with('/') {
            return Ok(Cow::Borrowed(raw));
        }
        if !raw.starts_with('~') {
            return Ok(Cow::Owned(format!("{}/{raw}", self.base)));
        }
        self.expand_home(raw).map(Cow::Owned).ok_or_else(|| PathError::OtherHome(raw.to_owned()))
    }
}
