//! Finds where a path really leads, one component after the other, as the kernel would.
//!
//! - A symlink before `..` is followed first; a dangling symlink is followed to where a write through it would land.
//! - The part that does not exist is appended verbatim, however deep; a `..` in it is an error.
//! - A loop, too many links, a NUL, `~name`, an empty path, a non-UTF-8 link, a folder that may not be searched
//!   and a file used as a folder are errors.
//! - The answer is true for the moment it was found. Whoever uses it later resolves again.

use crate::CanonicalPath;
use std::io;

/// The most symlinks followed in one path, as in the Linux kernel.
const MOST_LINKS: usize = 40;

/// Resolves paths for one person and one place that relative paths start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolver {
    home: CanonicalPath,
    base: CanonicalPath,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The path, free of symlinks in everything that exists.
    pub path: CanonicalPath,
    /// The symlinks followed on the way, in order.
    pub links: Vec<Link>,
    /// What is there.
    pub target: Target,
}

/// One symlink that was followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where the symlink is.
    pub at: CanonicalPath,
    /// What it says, verbatim.
    pub target: String,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
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
    /// A link to a name that is not text.
    #[error("the symlink `{0}` leads to a name that is not UTF-8")]
    NotText(String),
    /// A file where a folder is needed.
    #[error("`{0}` is not a folder")]
    NotAFolder(String),
    /// `..` below something that does not exist.
    #[error("`{0}` does not exist, so `..` below it leads nowhere")]
    ParentOfMissing(String),
    /// The disk would not say.
    #[error("`{path}` cannot be looked at: {source}")]
    Unreadable {
        /// What was looked at.
        path: String,
        /// Why not.
        source: io::Error,
    },
}

impl Resolver {
    /// A resolver for `~` as `home` and for relative paths from `base`.
    #[must_use]
    pub fn new(home: CanonicalPath, base: CanonicalPath) -> Self {
        Self { home, base }
    }

    /// The person's home.
    #[must_use]
    pub fn home(&self) -> &CanonicalPath {
        &self.home
    }

    /// Where relative paths start.
    #[must_use]
    pub fn base(&self) -> &CanonicalPath {
        &self.base
    }

    /// Finds where `raw` leads.
    ///
    /// # Errors
    /// See [`PathError`]: whatever is in doubt is an error, and the caller denies.
    pub fn resolve(&self, raw: &str) -> Result<Resolution, PathError> {
        let mut walk = Walk::begin(raw, self.start(raw)?);
        while let Some(part) = walk.ahead.pop() {
            walk.step(&part)?;
        }
        Ok(Resolution { path: walk.path(), links: walk.links, target: walk.target })
    }

    /// The whole path to walk, absolute.
    fn start(&self, raw: &str) -> Result<String, PathError> {
        if raw.is_empty() {
            return Err(PathError::Empty);
        }
        if raw.contains('\0') {
            return Err(PathError::Nul(raw.replace('\0', "\\0")));
        }
        if raw.starts_with('/') {
            return Ok(raw.to_owned());
        }
        let Some(rest) = raw.strip_prefix('~') else {
            return Ok(format!("{}/{raw}", self.base));
        };
        if rest.is_empty() || rest.starts_with('/') {
            return Ok(format!("{}{rest}", self.home));
        }
        Err(PathError::OtherHome(raw.to_owned()))
    }
}

/// A walk from the root, with what was walked and what lies ahead.
struct Walk<'a> {
    raw: &'a str,
    /// Canonical components so far.
    done: Vec<String>,
    /// Components to walk, the next one last.
    ahead: Vec<String>,
    links: Vec<Link>,
    /// What stands at `done`.
    target: Target,
}

impl<'a> Walk<'a> {
    fn begin(raw: &'a str, absolute: String) -> Self {
        let mut walk =
            Self { raw, done: Vec::new(), ahead: Vec::new(), links: Vec::new(), target: Target::Folder };
        walk.push_ahead(&absolute);
        walk
    }

    fn path(&self) -> CanonicalPath {
        CanonicalPath::from_components(&self.done)
    }

    /// Puts the components of `text` before what lies ahead. A trailing slash means `.`, as for the kernel.
    fn push_ahead(&mut self, text: &str) {
        if text.ends_with('/') {
            self.ahead.push(".".to_owned());
        }
        self.ahead.extend(text.split('/').rev().filter(|part| !part.is_empty()).map(str::to_owned));
    }

    fn step(&mut self, part: &str) -> Result<(), PathError> {
        match (self.target, part) {
            (Target::File { .. } | Target::Special, _) => Err(PathError::NotAFolder(self.path().to_string())),
            (Target::Missing, "..") => Err(PathError::ParentOfMissing(self.path().to_string())),
            (Target::Missing | Target::Folder, ".") => Ok(()),
            (Target::Folder, "..") => {
                // The parent of a folder that was walked through is a folder; the root is its own parent.
                self.done.pop();
                Ok(())
            }
            (Target::Missing, name) => {
                self.done.push(name.to_owned());
                Ok(())
            }
            (Target::Folder, name) => self.enter(name),
        }
    }

    /// Goes from an existing folder to `name` in it, following it when it is a symlink.
    fn enter(&mut self, name: &str) -> Result<(), PathError> {
        self.done.push(name.to_owned());
        let here = self.path();
        let found = match std::fs::symlink_metadata(here.as_path()) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.target = Target::Missing;
                return Ok(());
            }
            Err(source) => return Err(PathError::Unreadable { path: here.to_string(), source }),
        };
        if found.is_symlink() {
            return self.follow(here);
        }
        self.target = if found.is_dir() {
            Target::Folder
        } else if found.is_file() {
            Target::File { bytes: found.len() }
        } else {
            Target::Special
        };
        Ok(())
    }

    fn follow(&mut self, at: CanonicalPath) -> Result<(), PathError> {
        if self.links.len() >= MOST_LINKS {
            return Err(PathError::TooManyLinks(self.raw.to_owned()));
        }
        let target = match std::fs::read_link(at.as_path()) {
            Ok(target) => target,
            Err(source) => return Err(PathError::Unreadable { path: at.to_string(), source }),
        };
        let Some(target) = target.to_str().map(str::to_owned) else {
            return Err(PathError::NotText(at.to_string()));
        };
        self.done.pop();
        if target.starts_with('/') {
            self.done.clear();
        }
        self.push_ahead(&target);
        self.links.push(Link { at, target });
        Ok(())
    }
}
