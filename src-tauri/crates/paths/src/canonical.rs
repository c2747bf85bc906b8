//! Absolute paths in canonical form.
//!
//! - A canonical path contains no `.`, no `..`, no empty component, no trailing slash and no NUL. The root is `/`.
//! - Containment compares whole components: `/a/b` does not contain `/a/bc`.
//! - This module never accesses the disk.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Absolute path in canonical form.
///
/// The type guarantees only the form. A path from a `Resolver` contained no symlinks when it was resolved. A path
/// from [`CanonicalPath::assume_canonical`] may contain symlinks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CanonicalPath(Arc<str>);

/// Reason a string is not a canonical path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCanonicalError {
    /// The path is not absolute.
    #[error("`{0}` is not an absolute path")]
    Relative(String),
    /// The path contains a `.`, a `..`, or a doubled or trailing slash.
    #[error("`{0}` is not in canonical form; write it without `.`, `..`, doubled and trailing slashes")]
    Form(String),
    /// The path contains a NUL byte.
    #[error("`{0}` contains a NUL character")]
    Nul(String),
}

impl CanonicalPath {
    /// Creates a path from text that is already in canonical form.
    ///
    /// # Errors
    /// Returns an error if the text is not in canonical form. Symlinks are *not* checked, so untrusted paths must be
    /// resolved instead.
    pub fn assume_canonical(text: &str) -> Result<Self, NotCanonicalError> {
        match text.strip_prefix('/') {
            Some(relative) if is_canonical(relative) => Ok(Self(text.into())),
            _ if text.contains('\0') => Err(NotCanonicalError::Nul(text.replace('\0', "\\0"))),
            Some(_) => Err(NotCanonicalError::Form(text.to_owned())),
            None => Err(NotCanonicalError::Relative(text.to_owned())),
        }
    }

    /// Creates a path from the text that the resolver's walk produced, which is empty for the root.
    #[cfg(feature = "resolve")]
    pub(crate) fn from_walk(walked: &str) -> Self {
        Self(if walked.is_empty() { "/" } else { walked }.into())
    }

    /// Returns the root directory.
    #[must_use]
    pub fn root() -> Self {
        Self("/".into())
    }

    /// Returns the path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path as a [`Path`].
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(self.as_str())
    }

    /// Returns `true` if `other` is this path or below it. The root contains everything.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        let below = other.0.strip_prefix(&*self.0);
        below.is_some_and(|below| below.is_empty() || below.starts_with('/') || self.is_root())
    }

    /// Returns `true` if `other` is below this path, but not if the two are equal.
    #[must_use]
    pub fn strictly_contains(&self, other: &Self) -> bool {
        self != other && self.contains(other)
    }

    /// Returns `true` if one of the two paths contains the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.contains(other) || other.contains(self)
    }

    /// Returns `true` if the path is `/`.
    #[must_use]
    pub fn is_root(&self) -> bool {
        *self.0 == *"/"
    }

    /// Returns the parent folder; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (folder, _) = self.0.rsplit_once('/').filter(|_| !self.is_root())?;
        Some(if folder.is_empty() { Self::root() } else { Self(folder.into()) })
    }

    /// Returns the last component; `None` for the root.
    #[must_use]
    pub fn file_name(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(_, name)| name).filter(|name| !name.is_empty())
    }

    /// Iterates over the components, from the root downwards.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|part| !part.is_empty())
    }

    /// Returns the path as a `file` URI (RFC 8089), percent-encoded (RFC 3986).
    #[must_use]
    pub fn file_uri(&self) -> String {
        let mut uri = String::from("file://");
        for byte in self.as_str().bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                    uri.push(char::from(byte));
                }
                _ => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        uri
    }

    /// Appends a relative path without resolving symlinks in it.
    ///
    /// # Errors
    /// Returns an error if `below` is not a relative path in canonical form.
    pub fn join(&self, below: &str) -> Result<Self, NotCanonicalError> {
        let slash = if self.is_root() { "" } else { "/" };
        Self::assume_canonical(&format!("{}{slash}{below}", self.0))
    }
}

/// Returns `true` if no component is empty, `.` or `..`, or contains a NUL. The root is the empty text, without
/// components.
fn is_canonical(relative: &str) -> bool {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    relative.is_empty() || relative.split('/').all(is_plain)
}

impl fmt::Display for CanonicalPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl AsRef<Path> for CanonicalPath {
    fn as_ref(&self) -> &Path {
        self.as_path()
    }
}

impl TryFrom<&str> for CanonicalPath {
    type Error = NotCanonicalError;

    fn try_from(text: &str) -> Result<Self, Self::Error> {
        Self::assume_canonical(text)
    }
}

impl Serialize for CanonicalPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for CanonicalPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::assume_canonical(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_uris_are_percent_encoded() {
        for (path, uri) in [
            ("/", "file:///"),
            ("/a b/c", "file:///a%20b/c"),
            ("/a#b?c%d", "file:///a%23b%3Fc%25d"),
            ("/a\\b", "file:///a%5Cb"),
            ("/é", "file:///%C3%A9"),
            ("/~x/-_.", "file:///~x/-_."),
        ] {
            assert_eq!(CanonicalPath::assume_canonical(path).unwrap().file_uri(), uri);
        }
    }
}
