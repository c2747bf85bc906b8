//! Resolves paths component by component, as the kernel would.
//!
//! - A symlink before `..` is followed first; a dangling symlink is followed to where a write through it would land.
//! - Components that do not exist, or are below a file, are appended verbatim, and a `..` there removes one component.
//!   The kernel would refuse such a path. Here it is safe, because the resolved path is sent instead.
//! - A missing name that exists in another Unicode form is an error: a server may confuse the two.
//! - Errors, on which the caller denies: a kernel link (`/proc/self/fd/0`), a loop, too many links, a NUL, `~name`, an
//!   empty path, a link to a name that is not UTF-8, and a folder without search permission.
//! - A result may be outdated at once; resolve again before a later use.

mod unicode_twins;
mod walk;
#[cfg(target_os = "linux")]
mod without_links;

/// Other platforms always use the walk.
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

/// Resolves paths for one home and one base folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolver {
    home: CanonicalPath,
    base: CanonicalPath,
}

/// A resolved path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The path, without symlinks in its existing part.
    pub path: CanonicalPath,
    /// Symlinks that were followed, in order.
    pub links: Vec<Link>,
    /// Type of the target.
    pub target: PathKind,
}

/// One followed symlink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Path of the symlink.
    pub at: CanonicalPath,
    /// Its target text, verbatim.
    pub target: String,
}

/// Type of the file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing exists there.
    Missing,
    /// A regular file.
    File {
        /// Size in bytes.
        bytes: u64,
    },
    /// A folder.
    Folder,
    /// A device, a socket or a pipe.
    Special,
}

/// Reason why a path cannot be resolved and is denied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path is empty.
    #[error("the path is empty")]
    Empty,
    /// The path has a NUL byte.
    #[error("the path `{0}` contains a NUL character")]
    Nul(String),
    /// The path has the form `~name`.
    #[error(
        "`{0}` is the home of another user: write the absolute path (for a file with this name, write `./` before it)"
    )]
    OtherHome(String),
    /// The path has a symlink loop or more symlinks than the kernel follows.
    #[error("`{0}` has too many symlinks or a loop of them")]
    TooManyLinks(String),
    /// A kernel link such as `/proc/self/fd/0`, or a symlink to one.
    #[error("`{0}` leads through a kernel link to an open file, not to a path: name the file itself")]
    Magic(String),
    /// A symlink target is not UTF-8.
    #[error("the symlink `{0}` leads to a name that is not UTF-8")]
    NotText(String),
    /// A missing name that a server may confuse with an existing one.
    #[error(
        "`{path}` does not exist, but `{found}` does, which is the same text in another Unicode form: use that spelling"
    )]
    OtherForm {
        /// Missing path.
        path: String,
        /// Existing path, with its unusual characters as code points.
        found: String,
    },
    /// The file system returned an error.
    #[error("failed to access `{path}`: {source}")]
    Unreadable {
        /// Path that was accessed.
        path: String,
        /// Underlying error.
        source: io::Error,
    },
}

impl Resolver {
    /// Creates a resolver with `home` for `~` and `base` for relative paths.
    ///
    /// Resolves neither of them; resolve them first if they may contain symlinks.
    #[must_use]
    pub fn new(home: CanonicalPath, base: CanonicalPath) -> Self {
        Self { home, base }
    }

    /// Returns the user's home.
    #[must_use]
    pub fn home(&self) -> &CanonicalPath {
        &self.home
    }

    /// Returns the folder for relative paths.
    #[must_use]
    pub fn base(&self) -> &CanonicalPath {
        &self.base
    }

    /// Resolves `raw`.
    ///
    /// # Errors
    /// [`PathError`] in any case of doubt; the caller denies.
    pub fn resolve(&self, raw: &str) -> Result<Resolution, PathError> {
        let absolute = self.start(raw)?;
        match without_links::resolve(&absolute) {
            Some(resolution) => Ok(resolution),
            None => Walk::new(raw).run(&absolute),
        }
    }

    /// Resolves `raw` and returns only the path.
    ///
    /// # Errors
    /// Those of [`Resolver::resolve`].
    pub fn locate(&self, raw: &str) -> Result<CanonicalPath, PathError> {
        self.resolve(raw).map(|found| found.path)
    }

    /// Replaces the `~` of `~` and `~/x` with the home, without resolving; returns `None` for any other spelling.
    #[must_use]
    pub fn expand_home(&self, raw: &str) -> Option<String> {
        let rest = raw.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
        Some(format!("{}{rest}", self.home))
    }

    /// Returns the absolute path to walk.
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
