//! Resolves paths component by component, as the kernel would.
//!
//! - A symlink before `..` is followed first. A dangling symlink is followed to the path at which a write through it
//!   would create a file.
//! - Components that do not exist or are below a file are appended as written, and a `..` there removes one
//!   component. The kernel would reject such a path, but this is safe because the resolved path is sent instead.
//! - A name that exists only in a different Unicode form is an error, because a server may treat the two forms as the
//!   same name.
//! - Other errors, after which the caller must deny access: a magic link (`/proc/self/fd/0`), a symlink loop, too
//!   many symlinks, a NUL, `~name`, an empty path, a symlink to a name that is not UTF-8, and a folder without search
//!   permission.
//! - A result can become outdated at any time, so a path must be resolved again before each later use.

#[cfg(target_os = "linux")]
mod no_symlinks;
mod unicode_twins;
mod walk;

/// Other platforms resolve every path by walking it.
#[cfg(not(target_os = "linux"))]
mod no_symlinks {
    pub(super) fn resolve(_: &str) -> Option<super::Resolution> {
        None
    }

    pub(super) fn is_magic_link(_: &str) -> bool {
        false
    }
}

use crate::CanonicalPath;
use std::borrow::Cow;
use std::io;
use walk::Walk;

/// Resolves paths, given a home directory and a base folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolver {
    home: CanonicalPath,
    base: CanonicalPath,
}

/// Result of resolving a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// Canonical path, without symlinks in the part that exists.
    pub path: CanonicalPath,
    /// Symlinks that were followed, in order.
    pub links: Vec<Link>,
    /// Type of the file at the canonical path.
    pub target: PathKind,
}

/// Symlink that was followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Path of the symlink.
    pub path: CanonicalPath,
    /// Target as stored in the symlink.
    pub target: String,
}

/// Type of the file at a path, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing exists at the path.
    Missing,
    /// A regular file.
    File {
        /// Size in bytes.
        bytes: u64,
    },
    /// A folder.
    Folder,
    /// A device, socket or named pipe.
    Special,
}

/// Reason a path cannot be resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path is empty.
    #[error("the path is empty")]
    Empty,
    /// The path contains a NUL byte.
    #[error("the path `{0}` contains a NUL character")]
    Nul(String),
    /// The path has the form `~name`, which shells use for another user's home directory.
    #[error(
        "`{0}` is another user's home directory; write the absolute path or, for a file with this name, `./` before it"
    )]
    OtherHome(String),
    /// The path has a symlink loop, or more symlinks than the kernel follows.
    #[error("`{0}` leads through too many symlinks or a symlink loop")]
    TooManyLinks(String),
    /// The path leads through a magic link such as `/proc/self/fd/0`, whose target is an open file.
    #[error(
        "`{0}` leads through a kernel link to an open file, not to a path; use the path of the file itself"
    )]
    MagicLink(String),
    /// The target of a symlink is not UTF-8.
    #[error("the symlink `{0}` leads to a name that is not UTF-8")]
    NotUtf8(String),
    /// Nothing exists at the path, but servers may treat an existing path as the same.
    #[error(
        "`{path}` does not exist, but `{found}` does, which is the same text in another Unicode form; use that spelling"
    )]
    OtherUnicodeForm {
        /// Path that does not exist.
        path: String,
        /// Path that exists, with unusual characters as code points.
        found: String,
    },
    /// The file system returned an error.
    #[error("failed to access `{path}`: {source}")]
    Unreadable {
        /// Path whose access failed.
        path: String,
        /// Underlying error.
        source: io::Error,
    },
}

impl Resolver {
    /// Creates a resolver that replaces `~` with `home` and resolves relative paths from `base`.
    ///
    /// Both are used as given. Resolve them first if they may contain symlinks.
    #[must_use]
    pub fn new(home: CanonicalPath, base: CanonicalPath) -> Self {
        Self { home, base }
    }

    /// Returns the home directory, which replaces `~`.
    #[must_use]
    pub fn home(&self) -> &CanonicalPath {
        &self.home
    }

    /// Returns the folder from which relative paths are resolved.
    #[must_use]
    pub fn base(&self) -> &CanonicalPath {
        &self.base
    }

    /// Resolves the path `raw`, which may be relative or start with `~/`.
    ///
    /// # Errors
    /// Returns [`PathError`] if the result is uncertain for any reason. The caller must then deny access.
    pub fn resolve(&self, raw: &str) -> Result<Resolution, PathError> {
        let absolute = self.absolute_path(raw)?;
        match no_symlinks::resolve(&absolute) {
            Some(resolution) => Ok(resolution),
            None => Walk::new(raw).run(&absolute),
        }
    }

    /// Resolves `raw` and returns only the canonical path.
    ///
    /// # Errors
    /// Returns the same errors as [`Resolver::resolve`].
    pub fn locate(&self, raw: &str) -> Result<CanonicalPath, PathError> {
        self.resolve(raw).map(|found| found.path)
    }

    /// Replaces the `~` of `~` or `~/x` with the home directory, without resolving the path. Returns `None` for any
    /// other text.
    #[must_use]
    pub fn expand_home(&self, raw: &str) -> Option<String> {
        let rest = raw.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
        Some(format!("{}{rest}", self.home))
    }

    /// Returns the absolute path to resolve, with `~` expanded and a relative path appended to the base folder.
    fn absolute_path<'a>(&self, raw: &'a str) -> Result<Cow<'a, str>, PathError> {
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
